"""Mergeyard itself: the production engine decides, over a host that does everything at once.

Three settings race. The chain and best-first guesses run in parallel mode, with the parts as impacted targets. Batches
run in parallel mode too, because in one line a single red batch would start all behind it again.
"""

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.config import Config, Mode, OptimizationMode, Speculation
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import SECOND, Instant
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.states import Mergeability
from mergeyard.domain.targets import named
from mergeyard.engine.decide import decide
from mergeyard.sim.racing.driver import STANDSTILL, Engine, begin
from mergeyard.sim.racing.light_host import TARGET
from mergeyard.sim.racing.policy import Change, News, Orders

TURN = 5 * SECOND
"""News of so long goes into one turn, as when the service is busy; nobody is decided sooner because of it."""

CHAIN = Config(mode=Mode.PARALLEL)
BEST_FIRST = Config(mode=Mode.PARALLEL, speculation=Speculation.BEST_FIRST, can_optimistically_merge=True)
"""Whoever is green speaks for those beneath, so that nobody waits for the slowest run ahead."""
BATCH = replace(
    BEST_FIRST,
    batch=True,
    batching_min_size=100,
    batching_max_wait_time_minutes=20,
    optimization_mode=OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS,
)
"""They are to be full when they have waited, and not before: the engine looks for company among four times as many."""


class Mergeyard:
    def __init__(self, config: Config, workers: int, engine: Engine = decide) -> None:
        self.driver = begin(_within(config, workers), engine)
        self.heard: list[e.Event] = []
        self.turn_at: int | None = None
        self.push_at: int | None = None

    def move(self, news: News, now: int) -> Orders:
        orders = Orders()
        self._hear(news, now)
        if min(self._asked_for(), default=now + 1) <= now:
            events, self.heard, self.turn_at = self.heard, [], None
            self.driver.take_turns(events, Instant(now), orders)
            self.push_at = now + STANDSTILL if self.driver.stands_still else None
        orders.wake_at = min(self._asked_for(), default=None)
        return orders

    def _hear(self, news: News, now: int) -> None:
        self.heard += map(self._submission, news.arrived)
        self.heard += (self.driver.result(trial, green) for trial, green in news.finished)
        if self.push_at is not None and self.push_at <= now:
            self.heard.append(self.driver.push_from_outside())
            self.turn_at = now
        elif self.heard and self.turn_at is None:
            self.turn_at = now + TURN

    def _asked_for(self) -> list[int]:
        instants = (self.turn_at, self.driver.wake_at, self.push_at)
        return [instant for instant in instants if instant is not None]

    def _submission(self, change: Change) -> e.Event:
        pull = PullRequest(
            number=PrNumber(change.number),
            head=Sha(f"h{change.number}"),
            base=TARGET,
            author=change.author,
            mergeability=Mergeability.MERGEABLE,
        )
        self.driver.host.pulls[pull.number] = pull
        return e.PrSubmitted(pull=pull, as_of=self.driver.as_of, targets=named(*map(str, change.parts)))


def _within(config: Config, workers: int) -> Config:
    """Bisections have slots of their own, and together they are the workers. Without batches nobody is searched for."""
    searching = max(1, workers // 5) if config.batch else 0
    return replace(config, concurrency=workers - searching, bisection_concurrency=max(1, searching))
