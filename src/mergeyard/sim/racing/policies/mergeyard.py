"""Mergeyard itself: the production engine decides, over a host that does everything at once.

Three settings race. The chain and best-first guesses run in parallel mode, with the parts as impacted targets. Batches
run in parallel mode too, because in one line a single red batch would start all behind it again.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import Config, Mode, OptimizationMode, Speculation
from mergeyard.domain.decision import Decision
from mergeyard.domain.ids import PrNumber, QueueId, RunId, Sha
from mergeyard.domain.instants import HOUR, SECOND, Instant
from mergeyard.domain.landing import Landed
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import CheckState, Mergeability, PrState
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.domain.targets import named
from mergeyard.engine.decide import decide
from mergeyard.engine.work import work
from mergeyard.sim.racing.light_host import REQUIRED, ROOT, TARGET, LightHost
from mergeyard.sim.racing.policy import Change, News, Orders, Trial

TURN = 5 * SECOND
"""News of so long goes into one turn, as when the service is busy; nobody is decided sooner because of it."""

STANDSTILL = HOUR
"""After so long somebody pushes to a target that all are held back from because a flaky run made it look broken."""

CHAIN = Config(mode=Mode.PARALLEL)
BEST_FIRST = Config(mode=Mode.PARALLEL, speculation=Speculation.BEST_FIRST, can_optimistically_merge=True)
"""Whoever is green speaks for those beneath, so that nobody waits for the slowest run ahead."""
BATCH = Config(
    mode=Mode.PARALLEL,
    batch=True,
    batching_min_size=100,
    batching_max_wait_time_minutes=20,
    optimization_mode=OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS,
)
"""They are to be full when they have waited, and not before: the engine looks for company among four times as many."""

Engine = Callable[[Queue, Sequence[e.Event], Instant], Decision]


class Mergeyard:
    def __init__(self, config: Config, workers: int, engine: Engine = decide) -> None:
        self.decide = engine
        target = TargetBranch(
            name=TARGET,
            tip=ROOT,
            history=(Landed(ROOT, None),),
            required=REQUIRED,
            proofs={ROOT: (frozenset(),)},
        )
        config = _within(config, workers)
        self.queue = Queue(id=QueueId("race"), target=target, config=config, mode=config.mode)
        self.host = LightHost()
        self.trials: dict[RunId, Trial] = {}
        self.runs: dict[Trial, RunId] = {}
        """Those that are under way."""
        self.heard: list[e.Event] = []
        self.turn_at: int | None = None
        self.wake_at: int | None = None
        self.push_at: int | None = None

    def move(self, news: News, now: int) -> Orders:
        orders = Orders()
        self._hear(news, now)
        if min(self._asked_for(), default=now + 1) <= now:
            self._take_turns(Instant(now), orders)
        orders.wake_at = min(self._asked_for(), default=None)
        return orders

    def _hear(self, news: News, now: int) -> None:
        self.heard += map(self._submission, news.arrived)
        self.heard += (self._result(trial, green) for trial, green in news.finished)
        if self.push_at is not None and self.push_at <= now:
            self.heard.append(self.host.push_from_outside(self.queue.counters.turns))
            self.turn_at = now
        elif self.heard and self.turn_at is None:
            self.turn_at = now + TURN

    def _asked_for(self) -> list[int]:
        return [instant for instant in (self.turn_at, self.wake_at, self.push_at) if instant is not None]

    def _submission(self, change: Change) -> e.Event:
        pull = PullRequest(
            number=PrNumber(change.number),
            head=Sha(f"h{change.number}"),
            base=TARGET,
            author=change.author,
            mergeability=Mergeability.MERGEABLE,
        )
        self.host.pulls[pull.number] = pull
        return e.PrSubmitted(pull=pull, as_of=self.queue.counters.turns, targets=named(*map(str, change.parts)))

    def _result(self, trial: Trial, green: bool) -> e.Event:
        state = CheckState.PASSED if green else CheckState.FAILED
        checks = dict.fromkeys(REQUIRED.statuses, state)
        return e.ChecksSeen(run=self.runs.pop(trial), checks=checks, as_of=self.queue.counters.turns)

    def _take_turns(self, now: Instant, orders: Orders) -> None:
        """Until nothing is left to be done outside."""
        events, self.heard, self.turn_at = self.heard, [], None
        while True:
            decision = self.decide(self.queue, events, now)
            self.queue, self.wake_at = decision.queue, decision.wake_at
            for stay in decision.concluded:
                if stay.state is not PrState.MERGED:
                    orders.fail(int(stay.number), *self._evidence(stay.run))
            tasks = work(self.queue)
            if not tasks:
                break
            events = [self._perform(task, orders) for task in tasks]
        stands_still = self.queue.held and not self.runs and self.wake_at is None
        self.push_at = now + STANDSTILL if stands_still else None

    def _perform(self, task: t.Task, orders: Orders) -> e.Event:
        event = self.host.perform(task, self.queue.counters.turns)
        match task, event:
            case t.BuildRun(), e.RunBuilt():
                orders.start.append(self._begun(task.run, event))
            case t.DeleteBranch(), _:
                trial = self.trials[task.run]
                if self.runs.pop(trial, None) is not None:
                    orders.stop.append(trial)
            case t.Land(), _:
                for member in task.members:
                    own = self.queue.submissions[member.ticket].run
                    orders.merge(int(member.number), *self._evidence(task.run, own))
            case _:
                pass
        return event

    def _begun(self, run: RunId, built: e.RunBuilt) -> Trial:
        held = self.host.commits[built.steps[-1].commit]
        trial = Trial(stack=held.stack, tests=self.queue.runs[run].tests, base=held.base)
        self.trials[run], self.runs[trial] = trial, run
        return trial

    def _evidence(self, *runs: RunId | None) -> tuple[Trial, ...]:
        return tuple(self.trials[run] for run in runs if run is not None and run in self.trials)


def _within(config: Config, workers: int) -> Config:
    """Bisections have slots of their own, and together they are the workers. Without batches nobody is searched for."""
    searching = max(1, workers // 5) if config.batch else 0
    return replace(config, concurrency=workers - searching, bisection_concurrency=max(1, searching))
