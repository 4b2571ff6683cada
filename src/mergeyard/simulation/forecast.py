"""Forecasts when pull requests merge, by simulating many possible courses of a queue."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from itertools import chain, islice
from math import ceil, exp, prod, sqrt
from random import Random
from time import process_time

from msgspec import msgpack
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.ids import PullRequestNumber, SubmissionId
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.sorted_map import SortedMap
from mergeyard.domain.states import Mergeability, PullRequestState, RunStatus
from mergeyard.domain.timestamps import Instant, MergeEstimate, completed_durations, later, stopped_durations
from mergeyard.engine import speculation
from mergeyard.engine.estimates import MAX_FORECAST_SUBMISSIONS
from mergeyard.engine.pass_rate_model import pass_probability
from mergeyard.simulation import engine_driver
from mergeyard.simulation.process import serve_requests

MAX_FORECAST_TARGET_NAMES = 20_000
"""Names of impacted targets in total: encoding the queue for the forecast process must stay fast."""


def select_for_forecast(queue: Queue) -> Queue | None:
    """None if no durations are known, no run can start, nothing is admitted, or the queue is too large."""
    if not queue.durations or not queue.can_start_runs or queue.target_branch.tip is None:
        return None
    admitted = chain(queue.submission_ids_under_test, *queue.waiting.values(), queue.held)
    selected = sorted(islice(admitted, MAX_FORECAST_SUBMISSIONS + 1))
    targets = [queue.submissions[submission_id].impacted_targets for submission_id in selected]
    name_count = sum(len(impacted.names) for impacted in targets if impacted is not None)
    if not 0 < len(selected) <= MAX_FORECAST_SUBMISSIONS or name_count > MAX_FORECAST_TARGET_NAMES:
        return None
    return _reduce_queue(queue, selected)


def _reduce_queue(queue: Queue, selected: Sequence[SubmissionId]) -> Queue:
    submissions = SortedMap[SubmissionId, Submission]()
    submission_by_number = SortedMap[PullRequestNumber, SubmissionId]()
    refresh_requested = queue.refresh_requested
    for submission_id in selected:
        submission = queue.submissions[submission_id]
        submissions = submissions.put(submission_id, submission)
        submission_by_number = submission_by_number.put(submission.number, submission_id)
    for submission_id in queue.refresh_requested:
        if submission_id not in submissions:
            refresh_requested = refresh_requested.drop(submission_id)
    return replace(
        queue,
        submissions=submissions,
        submission_by_number=submission_by_number,
        refresh_requested=refresh_requested,
        not_ready=SortedMap(),
    )


DURATION_SIGMA = 0.5
"""Standard deviation of the logarithm of the typical run duration when one duration is known; shrinks with the square
root of their number."""

TestedSubmissionIds = tuple[SubmissionId, ...]


class SampledOutcomes:
    def __init__(self, queue: Queue, now: Instant, rng: Random) -> None:
        completed = completed_durations(queue.durations)
        scale = rng.lognormvariate(0, DURATION_SIGMA / sqrt(len(completed)))
        self._rng = rng
        self._durations = [round(duration * scale) for duration in completed]
        self._duration_by_tested: dict[TestedSubmissionIds, int] = {}
        # Short runs end first: without running and stopped ones, the estimate would be too short.
        self._durations += [self._sample_longer_than(elapsed) for elapsed in stopped_durations(queue.durations)]
        for run in queue.runs.values():
            if run.status is RunStatus.IN_PROGRESS:
                self._duration_by_tested[_tested_ids(run)] = self._sample_longer_than(_elapsed_ms(run, now))
        self._durations += self._duration_by_tested.values()
        self.bad = frozenset(_sample_bad(queue, rng))

    def duration_ms(self, run: Run) -> int:
        """In milliseconds. The same submissions take the same time when they are tested again."""
        tested = _tested_ids(run)
        if tested not in self._duration_by_tested:
            self._duration_by_tested[tested] = self._rng.choice(self._durations)
        return self._duration_by_tested[tested]

    def remaining_ms(self, run: Run, now: Instant) -> int:
        """Remaining time of a run in progress."""
        return max(0, self.duration_ms(run) - _elapsed_ms(run, now))

    def _sample_longer_than(self, elapsed: int) -> int:
        """Samples a known duration that exceeds the elapsed time; if none does, extrapolates."""
        longer = [duration for duration in self._durations if duration > elapsed]
        return self._rng.choice(longer) if longer else round(elapsed * exp(abs(self._rng.gauss(0, DURATION_SIGMA))))


def _elapsed_ms(run: Run, now: Instant) -> int:
    return 0 if run.started_at is None else max(0, now - run.started_at - run.outage_ms)


def _tested_ids(run: Run) -> TestedSubmissionIds:
    return tuple(member.submission_id for member in run.tested_members)


def _sample_bad(queue: Queue, rng: Random) -> Iterator[SubmissionId]:
    for distribution in dict.fromkeys(speculation.predict_outcomes(queue).values()):
        (failed_batches,) = rng.choices(list(distribution.outcomes), list(distribution.outcomes.values()))
        for batch_id in sorted(failed_batches):
            # A submission that passed merges, whatever the model predicts.
            not_passed = [
                submission_id
                for submission_id in queue.active.by_id[batch_id].submission_ids
                if queue.submissions[submission_id].state is not PullRequestState.TESTS_PASSED
            ]
            yield from _sample_at_least_one_bad(queue, not_passed, rng)
    for bisection in queue.bisections:
        yield from _sample_at_least_one_bad(queue, bisection.members, rng)
    for bucket in (*queue.waiting.values(), queue.held):
        yield from (
            submission_id for submission_id in bucket if rng.random() >= _pass_probability(queue, submission_id)
        )


def _sample_at_least_one_bad(
    queue: Queue, submission_ids: Sequence[SubmissionId], rng: Random
) -> Iterator[SubmissionId]:
    """At least one of them: the distribution of repeated draws until one is bad."""
    probabilities, found_bad = [_pass_probability(queue, submission_id) for submission_id in submission_ids], False
    for index, submission_id in enumerate(submission_ids):
        all_good = 0.0 if found_bad else prod(probabilities[index:])
        if rng.random() * (1 - all_good) < 1 - probabilities[index]:
            found_bad = True
            yield submission_id


def _pass_probability(queue: Queue, submission_id: SubmissionId) -> float:
    return pass_probability(queue, queue.submissions[submission_id])


MAX_DECISIONS_PER_SUBMISSION = 100
"""Each submission needs a few decisions for results and waits; one that is not decided after so many never is."""


class QueueSimulation:
    def __init__(self, queue: Queue, now: Instant, sample: SampledOutcomes) -> None:
        self._sample = sample
        self._now = now
        self._submission_by_number: dict[engine_driver.ChangeNumber, SubmissionId] = {
            number: queue.submission_by_number[number] for number in queue.submission_by_number
        }
        self._undecided = set(self._submission_by_number)
        self._merged: dict[SubmissionId, Instant] = {}
        self._run_ends: list[tuple[Instant, int, engine_driver.SimulatedRun]] = []
        self._started_count = 0
        self._driver = engine_driver.EngineDriver(queue, _build_host(queue))
        for planned_run in queue.runs.values():
            if planned_run.status is RunStatus.IN_PROGRESS:
                self._schedule_end(
                    self._driver.track_run(planned_run, planned_run.chain), sample.remaining_ms(planned_run, now)
                )

    def merge_times(self) -> Mapping[SubmissionId, Instant]:
        """The merge time of every submission that merges. Undecided ones are missing."""
        with suppress(engine_driver.SimulationDiverged):
            self._simulate()
        return self._merged

    def _simulate(self) -> None:
        self._decide(())
        for _ in range(MAX_DECISIONS_PER_SUBMISSION * len(self._submission_by_number)):
            next_time = self._next_time()
            if next_time is None or not self._undecided:
                return
            self._now = max(self._now, next_time)
            self._decide(self._collect_results())

    def _next_time(self) -> Instant | None:
        """Skips runs that were stopped meanwhile."""
        while self._run_ends and self._run_ends[0][2] not in self._driver.active_run_ids:
            heappop(self._run_ends)
        end_times = [at for at, _, _ in self._run_ends[:1]]
        wake_times = [] if self._driver.wake_at is None else [Instant(self._driver.wake_at)]
        return min(end_times + wake_times, default=None)

    def _decide(self, events: tuple[e.Event, ...]) -> None:
        actions = engine_driver.Actions()
        self._driver.decide_until_idle(events, self._now, actions)
        for decision in actions.decisions:
            self._undecided.discard(decision.number)
            if decision.merged:
                self._merged[self._submission_by_number[decision.number]] = self._now
        for run in actions.runs_to_start:
            self._schedule_end(run, self._sample.duration_ms(self._driver.planned_runs[run]))

    def _schedule_end(self, run: engine_driver.SimulatedRun, duration: int) -> None:
        self._started_count += 1
        heappush(self._run_ends, (later(self._now, duration), self._started_count, run))

    def _collect_results(self) -> tuple[e.Event, ...]:
        finished = list[engine_driver.SimulatedRun]()
        while self._run_ends and self._run_ends[0][0] <= self._now:
            finished.append(heappop(self._run_ends)[2])
        return tuple(
            self._driver.build_result(run, passed=not self._fails(run))
            for run in finished
            if run in self._driver.active_run_ids
        )

    def _fails(self, run: engine_driver.SimulatedRun) -> bool:
        """Submissions that have merged count as good."""
        submissions = self._driver.queue.submissions
        stack = self._driver.planned_runs[run].stack
        return any(member.submission_id in self._sample.bad and member.submission_id in submissions for member in stack)


def _build_host(queue: Queue) -> engine_driver.LightHost:
    """Admitted pull requests count as mergeable, even where the host does not know it at the moment."""
    host = engine_driver.LightHost(queue.target_branch.tip, queue.target_branch.required_statuses, prefix="forecast-")
    for submission in queue.submissions.values():
        host.pull_requests[submission.number] = replace(submission.pull_request, mergeability=Mergeability.MERGEABLE)
    return host


MIN_SIMULATIONS = 9
"""With nine simulations the latest is the 90th percentile; with fewer it cannot be estimated."""


def forecast_merges(
    queue: Queue, now: Instant, generators: Iterable[Random]
) -> Mapping[SubmissionId, MergeEstimate | None]:
    """One simulation per generator. None for a submission that merges in less than half of them, or that is held: no
    simulation knows its conflicts."""
    merge_times, simulation_count = defaultdict[SubmissionId, list[Instant]](list), 0
    for rng in generators:
        simulation_count += 1
        simulation = QueueSimulation(queue, now, SampledOutcomes(queue, now, rng))
        for submission_id, merge_time in simulation.merge_times().items():
            merge_times[submission_id].append(merge_time)
    if simulation_count < MIN_SIMULATIONS:
        return {}
    likely = {
        submission_id
        for submission_id, times in merge_times.items()
        if 2 * len(times) >= simulation_count and submission_id not in queue.held
    }
    return {
        submission_id: _estimate(merge_times[submission_id]) if submission_id in likely else None
        for submission_id in queue.submissions
    }


def _estimate(merge_times: Sequence[Instant]) -> MergeEstimate:
    ordered = sorted(merge_times)
    return MergeEstimate(median=_quantile(ordered, 0.5), p90=_quantile(ordered, 0.9))


def _quantile(ordered: Sequence[Instant], quantile: float) -> Instant:
    """The next value falls into each gap between the known ones, before the first and after the last, with equal
    probability. Hence the rank is computed from n + 1, which matters for few values."""
    rank = ceil(quantile * (len(ordered) + 1))
    return ordered[min(rank, len(ordered)) - 1]


MAX_SIMULATIONS = 39
"""Simulations per forecast."""
SOFT_CPU_LIMIT_S, HARD_CPU_LIMIT_S = 1.0, 10.0
"""CPU time: after the first, the minimum number of simulations suffices; after the second, there is no forecast."""


def iterate_generators() -> Iterator[Random]:
    """The same seeds every time, so that a forecast changes only when the queue does."""
    started = process_time()
    for seed in range(MAX_SIMULATIONS):
        if process_time() - started > (HARD_CPU_LIMIT_S if seed < MIN_SIMULATIONS else SOFT_CPU_LIMIT_S):
            return
        yield Random(seed)


decode_request = msgpack.Decoder[tuple[Queue, Instant]](tuple[Queue, Instant]).decode


def respond(request: bytes) -> bytes:
    queue, now = decode_request(request)
    return msgpack.encode(forecast_merges(queue, now, iterate_generators()))


if __name__ == "__main__":
    serve_requests(respond)
