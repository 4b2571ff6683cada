"""Replays a history with the production engine, from event to event, until everybody has left again.

People do what they did: they come when they came, and whoever left by hand leaves after the same time, unless it is
decided by then. Whoever came again comes after the same pause, unless it has merged by then. Those about whom no test
had a say are never tested.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count

from msgspec import Struct

from mergeyard.domain import events as e
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import Instant, later
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.states import Mergeability, QueueState
from mergeyard.domain.targets import ALL
from mergeyard.sim.racing.driver import STANDSTILL, begin
from mergeyard.sim.racing.light_host import TARGET
from mergeyard.sim.racing.policy import Orders, Trial
from mergeyard.sim.racing.race import Diverged
from mergeyard.sim.replaying.history import End, History, Order, Place, Setting
from mergeyard.sim.replaying.truth import Stack, Truth

TURNS_FOR_EACH = 200
"""Arrivals, results and waits need a few turns for each pull request; whatever needs so many does not end."""


class Outcome(Struct, frozen=True):
    came_at: Instant
    ended_at: Instant
    end: End


class Rerun(Struct):
    tested: tuple[Place, ...]
    started_at: Instant
    ended_at: Instant
    seen: bool
    """The very same was really run."""


class Replayed(Struct, frozen=True, kw_only=True):
    outcomes: Mapping[Place, Outcome]
    """Whoever had no need to come again is not among them."""
    runs: tuple[Rerun, ...]


Doing = Callable[[Instant], e.Event | None]


class Replay:
    def __init__(self, history: History, truth: Truth, settings: Sequence[Setting]) -> None:
        self.history = history
        self.truth = truth
        self.driver = begin(settings[0].config)
        self.agenda: list[tuple[Instant, int, Doing]] = []
        self.numbers = count()
        self.push_at: Instant | None = None
        self.came: dict[Place, Instant] = {}
        self.leaving = set[Place]()
        self.outcomes: dict[Place, Outcome] = {}
        self.merged: dict[Place, int] = {}
        """In their order."""
        self.asked = Counter[tuple[Stack, int]]()
        self.runs: dict[Trial, Rerun] = {}
        self.next_stay = {
            arrival.after: place for place, arrival in enumerate(history.arrivals) if arrival.after is not None
        }
        self._plan(settings)

    def run(self) -> Replayed:
        turns = TURNS_FOR_EACH * (len(self.history.arrivals) + 1)
        while instants := self._coming_instants():
            turns -= 1
            if turns < 0:
                raise Diverged("the replay does not end")
            self._take_turn(min(instants))
        if len(self.outcomes) < len(self.came):
            raise Diverged(f"{len(self.came) - len(self.outcomes)} pull requests would never be decided")
        return Replayed(outcomes=self.outcomes, runs=tuple(self.runs.values()))

    def _plan(self, settings: Sequence[Setting]) -> None:
        """What was ordered goes before who came at the same time. A queue that was left paused goes on in the end."""
        for setting in settings[1:]:
            self._at(setting.at, lambda _, config=setting.config: e.SettingsSaved(config=config))
        for order in (*self.history.orders, Order(self.history.until, QueueState.RUNNING)):
            self._at(order.at, lambda _, state=order.state: e.StateRequested(state=state))
        for push in self.history.pushes:
            self._at(push, lambda _: self.driver.push_from_outside())
        for place, arrival in enumerate(self.history.arrivals):
            if arrival.after is None:
                self._at(arrival.at, partial(self._come, place))

    def _at(self, instant: Instant, doing: Doing) -> None:
        heappush(self.agenda, (instant, next(self.numbers), doing))

    def _coming_instants(self) -> list[Instant]:
        asked_for = (self.driver.wake_at, self.push_at)
        return [at for at, _, _ in self.agenda[:1]] + [Instant(at) for at in asked_for if at is not None]

    def _take_turn(self, now: Instant) -> None:
        events = list[e.Event]()
        while self.agenda and self.agenda[0][0] <= now:
            event = heappop(self.agenda)[2](now)
            events += () if event is None else (event,)
        if self.push_at is not None and self.push_at <= now:
            events.append(self.driver.push_from_outside())
        woken = self.driver.wake_at is not None and self.driver.wake_at <= now
        if events or woken:
            orders = Orders()
            self.driver.take_turns(events, now, orders)
            self._carry_out(orders, now)
            self.push_at = later(now, STANDSTILL) if self.driver.stands_still else None

    def _come(self, place: Place, now: Instant) -> e.Event:
        arrival = self.history.arrivals[place]
        pull = PullRequest(
            number=PrNumber(place),
            head=_head(place),
            base=TARGET,
            author=arrival.author,
            draft=arrival.end is End.BESIDE,
            mergeability=Mergeability.MERGEABLE,
            contains={PrNumber(other): _head(other) for other in arrival.stands_upon},
        )
        self.driver.host.pulls[pull.number] = pull
        self.came[place] = now
        if arrival.end in (End.LEFT, End.BESIDE):
            self._at(later(now, arrival.stayed), partial(self._go, place))
        return e.PrSubmitted(
            pull=pull,
            as_of=self.driver.as_of,
            priority=arrival.priority,
            no_batch=arrival.no_batch,
            targets=ALL if arrival.targets is None else arrival.targets,
        )

    def _go(self, place: Place, _: Instant) -> e.Event | None:
        if place in self.outcomes:
            return None
        self.leaving.add(place)
        return e.CancelRequested(number=PrNumber(place))

    def _end(self, trial: Trial, green: bool, _: Instant) -> e.Event | None:
        """One that was stopped meanwhile says nothing any more."""
        return self.driver.result(trial, green) if trial in self.driver.runs else None

    def _carry_out(self, orders: Orders, now: Instant) -> None:
        for verdict in orders.decided:
            self._decide(verdict.number, verdict.merged, now)
        for trial in orders.start:
            self._start(trial, now)
        for trial in orders.stop:
            self.runs[trial].ended_at = now

    def _decide(self, place: Place, merged: bool, now: Instant) -> None:
        left = self.history.arrivals[place].end if place in self.leaving else End.FAILED
        ended = End.MERGED if merged else left
        self.outcomes[place] = Outcome(self.came[place], now, ended)
        if merged:
            self.merged[place] = len(self.merged)
        elif place in self.next_stay:
            again = self.next_stay[place]
            pause = self.history.arrivals[again].at - self.history.arrivals[place].ended_at
            self._at(later(now, pause), partial(self._come, again))

    def _start(self, trial: Trial, now: Instant) -> None:
        run = self.driver.plans[trial]
        stack = tuple(int(member.number) for member in run.stack)
        asked = self.asked[stack, run.tests]
        self.asked[stack, run.tests] += 1
        ends_at = later(now, self.truth.length(stack, run.tests, asked))
        green = self.truth.is_green(stack, run.tests, asked, by_rule=not self._red_by_rule(trial))
        tested = stack[len(stack) - run.tests :]
        self.runs[trial] = Rerun(tested, now, ends_at, self.truth.knows(stack, run.tests, asked))
        self._at(ends_at, partial(self._end, trial, green))

    def _red_by_rule(self, trial: Trial) -> bool:
        base = len(self.merged) if trial.base is None else trial.base
        return self.truth.is_red_by_rule(trial.stack, lambda other: self.merged.get(other, base) < base)


def _head(place: Place) -> Sha:
    return Sha(f"h{place}")
