"""Small histories of a queue for replays, in minutes: arrivals, runs and how each ended.

a_history(
    merged_arrival(at=0, until=10), failed_arrival(at=0, until=20),
    runs=[passed_run(0, since=0, until=10), failed_run(1, since=10, until=20)],
    concurrency=1,
)
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.policy_race.policies.mergeyard import Mergeyard
from benchmarks.policy_race.race import run_race
from benchmarks.policy_race.workload import Trace
from mergeyard.domain import events as e
from mergeyard.domain.config import Config
from mergeyard.domain.ids import PullRequestNumber, QueueId, Sha
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import Decision, Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import RunStatus
from mergeyard.domain.timestamps import HOUR, MINUTE, Instant, later
from mergeyard.engine.decide import decide
from mergeyard.ports.store import Store
from mergeyard.ports.writes import SaveDecision
from mergeyard.service import persistence
from mergeyard.simulation.engine_driver import start_driver
from mergeyard.simulation.history import (
    Arrival,
    ArrivalIndex,
    ConfigChange,
    EndState,
    History,
    RecordedRun,
    build_history,
)
from mergeyard.simulation.outcomes import build_outcome_model
from mergeyard.simulation.replay import Replay, ReplayResult
from mergeyard.simulation.whatif import propose_config_changes

END_MINUTE = 10_000


def at_minute(number: float) -> Instant:
    return Instant(round(number * MINUTE))


def merged_arrival(*, at: float, until: float, **more: Any) -> Arrival:
    return _arrival(EndState.MERGED, at, until, more)


def failed_arrival(*, at: float, until: float, **more: Any) -> Arrival:
    return _arrival(EndState.FAILED, at, until, more)


def removed_arrival(*, at: float, until: float, **more: Any) -> Arrival:
    return _arrival(EndState.REMOVED, at, until, more)


def passed_run(*stack: ArrivalIndex, since: float, until: float, tests: int = 1) -> RecordedRun:
    return _recorded_run(RunStatus.SUCCEEDED, stack, since, until, tests)


def failed_run(*stack: ArrivalIndex, since: float, until: float, tests: int = 1) -> RecordedRun:
    return _recorded_run(RunStatus.FAILED, stack, since, until, tests)


def cancelled_run(*stack: ArrivalIndex, since: float, until: float, tests: int = 1) -> RecordedRun:
    return _recorded_run(RunStatus.CANCELLED, stack, since, until, tests)


def a_history(*arrivals: Arrival, runs: Sequence[RecordedRun] = (), **settings: Any) -> History:
    """Pull requests are numbered in this order, unless they have a number."""
    numbered = [
        replace(each, number=each.number or PullRequestNumber(index + 1), head=each.head or Sha(f"head of {index}"))
        for index, each in enumerate(arrivals)
    ]
    return History(
        since=at_minute(0),
        until=at_minute(END_MINUTE),
        arrivals=tuple(numbered),
        runs=tuple(sorted(runs, key=lambda run: run.started_at)),
        config_changes=(ConfigChange(at_minute(0), replace(Config(), **settings)),),
    )


def run_replay(history: History, **settings: Any) -> ReplayResult:
    return Replay(history, build_outcome_model(history), propose_config_changes(history, settings)).run()


def end_states(replayed: ReplayResult) -> list[tuple[str, float]]:
    """End state and end minute of each pull request, in order of arrival."""
    return [(each.end_state.value, each.ended_at / MINUTE) for _, each in sorted(replayed.outcomes.items())]


def _arrival(end: EndState, at: float, until: float, more: dict[str, Any]) -> Arrival:
    defaults: dict[str, Any] = {"number": PullRequestNumber(0), "head": Sha("")}
    return Arrival(**defaults | more, admitted_at=at_minute(at), end_state=end, ended_at=at_minute(until))


def _recorded_run(
    status: RunStatus, stack: tuple[ArrivalIndex, ...], since: float, until: float, tests: int
) -> RecordedRun:
    return RecordedRun(
        stack=stack,
        tested_count=tests,
        base=Sha("base"),
        started_at=at_minute(since),
        decided_at=at_minute(until),
        status=status,
    )


PERIOD_START, PERIOD_END = Instant(0), Instant(10_000 * HOUR)
ENDED_AT = PERIOD_END


class Recorder:
    """The production engine; records what a store would have kept."""

    def __init__(self) -> None:
        self.submissions: list[Submission] = []
        self.runs: list[Run] = []

    def __call__(self, queue: Queue, events: Sequence[e.Event], now: Instant) -> Decision:
        decision = decide(queue, events, now)
        self.submissions += decision.concluded_submissions
        self.runs += decision.finished_runs
        return decision


class Recording(Struct, frozen=True):
    config: Config
    submissions: tuple[Submission, ...]
    runs: tuple[Run, ...]

    def history(self) -> History:
        period = History(
            since=PERIOD_START, until=PERIOD_END, config_changes=(ConfigChange(PERIOD_START, self.config),)
        )
        return build_history(self.submissions, self.runs, period)

    def ending_at(self, now: Instant) -> "Recording":
        """The same recording, shifted so that its last change happened at this time."""
        by = now - max(each.state_changed_at for each in self.submissions)
        return Recording(
            self.config,
            tuple(_shift_submission(each, by) for each in self.submissions),
            tuple(_shift_run(run, by) for run in self.runs),
        )


def record_race(trace: Trace, config: Config) -> Recording:
    """What a queue with these settings did with the trace."""
    recorder = Recorder()
    policy = Mergeyard(config, trace.workload.workers)
    policy.driver = start_driver(config, recorder)
    run_race(trace, policy)
    runs = (*recorder.runs, *policy.driver.queue.runs.values())
    ended = tuple(run for run in runs if run.started_at is not None and run.decided_at is not None)
    return Recording(config, tuple(recorder.submissions), ended)


async def store_recording(store: Store, queue: QueueId, version: int, recording: Recording) -> None:
    """Writes the recording as the history of a queue that is at this version and has no history."""
    submissions = tuple(persistence.to_submission_row(each, ENDED_AT) for each in recording.submissions)
    runs = tuple(persistence.to_run_row(run, ENDED_AT) for run in recording.runs)
    await store.commit(SaveDecision(queue=queue, version=version + 1, submissions=submissions, runs=runs))


def _shift_submission(submission: Submission, by: int) -> Submission:
    admitted = None if submission.admitted_at is None else later(submission.admitted_at, by)
    return replace(
        submission,
        submitted_at=later(submission.submitted_at, by),
        admitted_at=admitted,
        state_changed_at=later(submission.state_changed_at, by),
    )


def _shift_run(run: Run, by: int) -> Run:
    started, decided = run.started_at or PERIOD_START, run.decided_at or PERIOD_START
    return replace(run, started_at=later(started, by), decided_at=later(decided, by))
