"""Pasts to replay: recorded from a race, just as a store would have kept them, and put into one."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.config import Config
from mergeyard.domain.decision import Decision
from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import HOUR, Instant, later
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.engine.decide import decide
from mergeyard.ports.store import Store
from mergeyard.ports.writes import SaveTurn
from mergeyard.service import shelving
from mergeyard.sim.racing.driver import begin
from mergeyard.sim.racing.policies.mergeyard import Mergeyard
from mergeyard.sim.racing.race import race
from mergeyard.sim.racing.trace import Trace
from mergeyard.sim.replaying.history import History, Setting
from mergeyard.sim.replaying.reading import Period, read

LONG_AGO, FAR_AHEAD = Instant(0), Instant(10_000 * HOUR)
ENDED_AT = FAR_AHEAD


class Recorder:
    """The production engine, and all that a store would have kept of what it decided."""

    def __init__(self) -> None:
        self.stays: list[Submission] = []
        self.runs: list[Run] = []

    def __call__(self, queue: Queue, events: Sequence[e.Event], now: Instant) -> Decision:
        decision = decide(queue, events, now)
        self.stays += decision.concluded
        self.runs += decision.finished
        return decision


class Recording(Struct, frozen=True):
    config: Config
    stays: tuple[Submission, ...]
    runs: tuple[Run, ...]

    def history(self) -> History:
        period = Period(since=LONG_AGO, until=FAR_AHEAD, settings=(Setting(LONG_AGO, self.config),))
        return read(self.stays, self.runs, period)

    def ending_at(self, now: Instant) -> "Recording":
        """The same, so that the last thing happened just then."""
        by = now - max(stay.state_changed_at for stay in self.stays)
        return Recording(
            self.config,
            tuple(_moved_stay(stay, by) for stay in self.stays),
            tuple(_moved_run(run, by) for run in self.runs),
        )


def recorded(trace: Trace, config: Config) -> Recording:
    """What a queue with just these settings made of the day."""
    recorder = Recorder()
    policy = Mergeyard(config, trace.workload.workers)
    policy.driver = begin(config, recorder)
    race(trace, policy)
    runs = (*recorder.runs, *policy.driver.queue.runs.values())
    ended = tuple(run for run in runs if run.started_at is not None and run.decided_at is not None)
    return Recording(config, tuple(recorder.stays), ended)


async def plant(store: Store, queue: QueueId, version: int, past: Recording) -> None:
    """As if the queue, which is at this version and has none of its own, had had this past."""
    stays = tuple(shelving.stay_row(stay, ENDED_AT) for stay in past.stays)
    runs = tuple(shelving.run_row(run, ENDED_AT) for run in past.runs)
    await store.commit(SaveTurn(queue=queue, version=version + 1, stays=stays, runs=runs))


def _moved_stay(stay: Submission, by: int) -> Submission:
    admitted = None if stay.admitted_at is None else later(stay.admitted_at, by)
    return replace(
        stay,
        submitted_at=later(stay.submitted_at, by),
        admitted_at=admitted,
        state_changed_at=later(stay.state_changed_at, by),
    )


def _moved_run(run: Run, by: int) -> Run:
    started, decided = run.started_at or LONG_AGO, run.decided_at or LONG_AGO
    return replace(run, started_at=later(started, by), decided_at=later(decided, by))
