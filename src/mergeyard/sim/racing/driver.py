"""Drives the production engine over a host that does everything at once: news goes in, orders come out."""

from collections.abc import Callable, Sequence

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import Config
from mergeyard.domain.decision import Decision
from mergeyard.domain.ids import QueueId, RunId
from mergeyard.domain.instants import HOUR, Instant
from mergeyard.domain.landing import Landed
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run, Step
from mergeyard.domain.states import CheckState, PrState
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.engine.decide import decide
from mergeyard.engine.work import work
from mergeyard.sim.racing.light_host import REQUIRED, ROOT, TARGET, LightHost
from mergeyard.sim.racing.policy import Orders, Trial
from mergeyard.sim.racing.race import Diverged

STANDSTILL = HOUR
"""After so long somebody pushes to a target that all are held back from because a flaky run made it look broken."""
MOST_TURNS = 10_000
"""At one time: a few for each landing, and as many landings as there are lanes."""

Engine = Callable[[Queue, Sequence[e.Event], Instant], Decision]


class Driver:
    def __init__(self, queue: Queue, host: LightHost, engine: Engine = decide) -> None:
        self.decide = engine
        self.queue = queue
        self.host = host
        self.trials: dict[RunId, Trial] = {}
        self.runs: dict[Trial, RunId] = {}
        """Those that are under way."""
        self.plans: dict[Trial, Run] = {}
        """What each was to test, as the engine planned it."""
        self.wake_at: int | None = None

    @property
    def as_of(self) -> int:
        """The turn in which whoever looks now began to."""
        return self.queue.counters.turns

    @property
    def stands_still(self) -> bool:
        return bool(self.queue.held) and not self.runs and self.wake_at is None

    def result(self, trial: Trial, green: bool) -> e.Event:
        state = CheckState.PASSED if green else CheckState.FAILED
        checks = dict.fromkeys(self.plans[trial].required, state)
        return e.ChecksSeen(run=self.runs.pop(trial), checks=checks, as_of=self.as_of)

    def push_from_outside(self) -> e.Event:
        return self.host.push_from_outside(self.as_of)

    def take_turns(self, events: Sequence[e.Event], now: Instant, orders: Orders) -> None:
        """Until nothing is left to be done outside."""
        for _ in range(MOST_TURNS):
            decision = self.decide(self.queue, events, now)
            self.queue, self.wake_at = decision.queue, decision.wake_at
            for stay in decision.concluded:
                if stay.state is not PrState.MERGED:
                    orders.fail(int(stay.number), *self._evidence(stay.run))
            tasks = work(self.queue)
            if not tasks:
                return
            events = [self._perform(task, orders) for task in tasks]
        raise Diverged("there is always something left to be done outside")

    def _perform(self, task: t.Task, orders: Orders) -> e.Event:
        event = self.host.perform(task, self.as_of)
        match task, event:
            case t.BuildRun(), e.RunBuilt():
                orders.start.append(self.watch(self.queue.runs[task.run], event.steps))
            case t.DeleteBranch(), _:
                trial = self.trials.get(task.run)
                if trial is not None and self.runs.pop(trial, None) is not None:
                    orders.stop.append(trial)
            case t.Land(), _:
                for member in task.members:
                    own = self.queue.submissions[member.ticket].run
                    orders.merge(int(member.number), *self._evidence(task.run, own))
            case _:
                pass
        return event

    def watch(self, run: Run, steps: tuple[Step, ...]) -> Trial:
        """From now on it is under way."""
        held = self.host.commits[steps[-1].commit]
        trial = Trial(stack=held.stack, tests=run.tests, base=held.base)
        self.trials[run.id], self.runs[trial], self.plans[trial] = trial, run.id, run
        return trial

    def _evidence(self, *runs: RunId | None) -> tuple[Trial, ...]:
        return tuple(self.trials[run] for run in runs if run is not None and run in self.trials)


def begin(config: Config, engine: Engine = decide) -> Driver:
    """With an empty queue, upon a target that was seen green."""
    target = TargetBranch(
        name=TARGET,
        tip=ROOT,
        history=(Landed(ROOT, None),),
        required=REQUIRED,
        proofs={ROOT: (frozenset(),)},
    )
    return Driver(Queue(id=QueueId("race"), target=target, config=config, mode=config.mode), LightHost(), engine)
