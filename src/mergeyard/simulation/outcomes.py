"""Outcome model of a replay: the result and duration of every run, inferred from recorded runs."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.ids import Sha
from mergeyard.domain.timestamps import MINUTE
from mergeyard.simulation.engine_driver import deterministic_random
from mergeyard.simulation.history import ArrivalIndex, EndState, History, RecordedRun


class FailureRules(Struct, frozen=True, kw_only=True):
    bad: frozenset[ArrivalIndex] = frozenset()
    conflicts: Mapping[ArrivalIndex, Set[ArrivalIndex]] = {}
    """For each arrival those it conflicts with; each passes alone."""
    ambiguous: frozenset[ArrivalIndex] = frozenset()
    """Arrivals that conflict with one of several others, and it is unknown with which."""

    def predicts_failure(self, stack: Sequence[ArrivalIndex], merged: Callable[[ArrivalIndex], bool]) -> bool:
        """`merged` returns whether an arrival outside the stack is part of its base."""
        ahead = set[ArrivalIndex]()
        for member in stack:
            others = self.conflicts.get(member, ())
            if member in self.bad or any(other in ahead or merged(other) for other in others):
                return True
            ahead.add(member)
        return False

    def predicts_recorded_failure(self, history: History, run: RecordedRun) -> bool:
        """Whether the rules predict failure for a recorded run."""
        return self.predicts_failure(run.stack, lambda other: history.was_merged(other, run.started_at))


def attribute_failures(history: History) -> FailureRules:
    broken = find_broken_bases(history)
    runs = [run for run in history.runs if run.is_decided and run.base not in broken]
    passed_runs = defaultdict[ArrivalIndex, list[RecordedRun]](list)
    failed_runs = defaultdict[ArrivalIndex, list[RecordedRun]](list)
    for run in runs:
        for index in run.tested_arrivals if run.is_failed else run.stack:
            (failed_runs if run.is_failed else passed_runs)[index].append(run)
    failed = _list_failed(history)
    bad = frozenset(index for index in failed if not passed_runs[index])
    conflicts, ambiguous = defaultdict[ArrivalIndex, set[ArrivalIndex]](set), set[ArrivalIndex]()
    for index in failed:
        if index in bad:
            continue
        unexplained = [run for run in failed_runs[index] if bad.isdisjoint(run.stack)]
        candidates = _find_conflict_candidates(history, index, unexplained, passed_runs[index])
        if candidates:
            conflicts[index].add(candidates[-1])
            conflicts[candidates[-1]].add(index)
        if len(candidates) > 1:
            ambiguous.add(index)
    rules = FailureRules(bad=bad, conflicts=conflicts, ambiguous=frozenset(ambiguous))
    removed_culprits = frozenset(_find_sole_suspects(history, runs, passed_runs, rules))
    return replace(rules, bad=bad | removed_culprits)


def find_broken_bases(history: History) -> frozenset[Sha]:
    """Bases on which the target branch failed its own tests: a failed run on such a base proves nothing."""
    return frozenset(run.base for run in history.runs if run.is_failed and not run.stack)


def _list_failed(history: History) -> list[ArrivalIndex]:
    """Arrivals that finally failed, and whose head never merged."""
    merged = {(arrival.number, arrival.head) for arrival in history.arrivals if arrival.end_state is EndState.MERGED}
    return [
        index
        for index, arrival in enumerate(history.arrivals)
        if arrival.end_state is EndState.FAILED and (arrival.number, arrival.head) not in merged
    ]


def _find_conflict_candidates(
    history: History, index: ArrivalIndex, failed_runs: Sequence[RecordedRun], passed_runs: Sequence[RecordedRun]
) -> list[ArrivalIndex]:
    """Arrivals that were ahead in every failed run and in no passed one, the most recent last."""
    if not failed_runs:
        return []
    known_good = {other for passed in passed_runs for other in passed.stack}
    last_passed_at = max(passed.started_at for passed in passed_runs)
    ahead_of_failures = [set(_list_ahead(history, index, failed_run)) for failed_run in failed_runs]
    return [
        other
        for other in _list_ahead(history, index, failed_runs[-1])
        if other not in known_good
        and not history.was_merged(other, last_passed_at)
        and all(other in ahead for ahead in ahead_of_failures)
    ]


def _list_ahead(history: History, index: ArrivalIndex, run: RecordedRun) -> list[ArrivalIndex]:
    merged = [other for other in range(len(history.arrivals)) if history.was_merged(other, run.started_at)]
    merged.sort(key=lambda other: history.arrivals[other].ended_at)
    return [*merged, *run.stack[: run.stack.index(index)]]


def _find_sole_suspects(
    history: History,
    runs: Sequence[RecordedRun],
    passed_runs: Mapping[ArrivalIndex, Sequence[RecordedRun]],
    rules: FailureRules,
) -> Iterator[ArrivalIndex]:
    for run in runs:
        if not run.is_failed or not run.is_stack_complete or rules.predicts_recorded_failure(history, run):
            continue
        suspects = [
            index
            for index in run.stack
            if history.arrivals[index].end_state in (EndState.REMOVED, EndState.STILL_QUEUED)
        ]
        if len(suspects) == 1 and not passed_runs.get(suspects[0]):
            yield suspects[0]


DEFAULT_DURATION_MS = 30 * MINUTE
"""If no run ever completed."""


class RunDurations(Struct, frozen=True):
    by_arrival: tuple[int, ...]
    """By arrival index, in milliseconds."""
    typical: int
    unknown: frozenset[ArrivalIndex]
    """Arrivals without a completed run of their own."""

    def longest_of(self, tested: Sequence[ArrivalIndex]) -> int:
        return max((self.by_arrival[index] for index in tested), default=self.typical)


def measure_durations(history: History, bad: frozenset[ArrivalIndex]) -> RunDurations:
    """Bad arrivals take as long as their failed runs, good ones as long as their passed runs: failed runs can end
    early."""
    runs_by_arrival = defaultdict[ArrivalIndex, list[RecordedRun]](list)
    for run in history.runs:
        for index in run.tested_arrivals:
            runs_by_arrival[index].append(run)
    passed = [run.duration_ms for run in history.runs if run.is_decided and not run.is_failed and run.tested_count]
    typical = _median(passed or [run.duration_ms for run in history.runs if run.is_decided]) or DEFAULT_DURATION_MS
    own_durations = [
        _own_duration(runs_by_arrival[index], failed=index in bad) for index in range(len(history.arrivals))
    ]
    return RunDurations(
        by_arrival=tuple(
            own or max([typical, *_stopped_durations(runs_by_arrival[index])])
            for index, own in enumerate(own_durations)
        ),
        typical=typical,
        unknown=frozenset(index for index, own in enumerate(own_durations) if own is None),
    )


def _own_duration(runs: Sequence[RecordedRun], *, failed: bool) -> int | None:
    """Prefers runs that tested only this arrival."""
    decided = [run for run in runs if run.is_decided]
    matching = [run for run in decided if run.is_failed == failed] or decided
    return _median(
        [run.duration_ms for run in matching if run.tested_count == 1] or [run.duration_ms for run in matching]
    )


def _stopped_durations(runs: Sequence[RecordedRun]) -> list[int]:
    """A stopped run would have taken longer; the replay assumes twice as long."""
    return [2 * run.duration_ms for run in runs if not run.is_decided]


def _median(durations: Sequence[int]) -> int | None:
    return round(median(durations)) if durations else None


ArrivalStack = tuple[ArrivalIndex, ...]
FLAKE_QUESTION, DURATION_QUESTION = 3, 4
"""Distinguish the random values of a run that is not recorded."""
DURATION_JITTER = 0.1
"""In later draws, such a run takes up to half of this share longer or shorter than expected."""


class RecordedResult(Struct, frozen=True):
    """Result of a recorded run."""

    length: int
    decided: bool
    surprising: bool
    """The opposite of what the rules predict."""


class OutcomeModel(Struct, frozen=True, kw_only=True):
    rules: FailureRules
    durations: RunDurations
    recorded_results: Mapping[tuple[ArrivalStack, int], tuple[RecordedResult, ...]]
    """By stack and number of tested arrivals, in the order of their start."""
    flake_rate: float
    """The share of runs that failed without a cause."""
    undetermined: frozenset[ArrivalIndex]
    """Arrivals whose result is unknown; assumed to pass."""
    broken_base_count: int
    draw: int = 0
    """Random values differ between draws; in draw 0 every run takes as long as expected."""

    def is_recorded(self, stack: ArrivalStack, tests: int, repeat: int) -> bool:
        return self._find_recorded(stack, tests, repeat) is not None

    def passes(self, stack: ArrivalStack, tests: int, repeat: int, by_rule: bool) -> bool:
        """`repeat`: how often this exact stack was tested before. `by_rule`: the result that the rules predict."""
        recorded = self._find_recorded(stack, tests, repeat)
        if recorded is not None and recorded.decided:
            return by_rule != recorded.surprising
        return by_rule and deterministic_random(FLAKE_QUESTION, self.draw, stack, tests, repeat) >= self.flake_rate

    def duration_ms(self, stack: ArrivalStack, tests: int, repeat: int) -> int:
        """A stopped run would have taken longer than recorded."""
        recorded = self._find_recorded(stack, tests, repeat)
        if recorded is not None and recorded.decided:
            return recorded.length
        jitter = (
            DURATION_JITTER * (deterministic_random(DURATION_QUESTION, self.draw, stack, tests, repeat) - 0.5)
            if self.draw
            else 0
        )
        expected = round(self.durations.longest_of(stack[len(stack) - tests :]) * (1 + jitter))
        return expected if recorded is None else max(expected, recorded.length + 1)

    def _find_recorded(self, stack: ArrivalStack, tests: int, repeat: int) -> RecordedResult | None:
        results = self.recorded_results.get((stack, tests), ())
        return results[repeat] if repeat < len(results) else None


def build_outcome_model(history: History) -> OutcomeModel:
    rules, broken = attribute_failures(history), find_broken_bases(history)
    recorded, flaky_count, decided_count = defaultdict[tuple[ArrivalStack, int], list[RecordedResult]](list), 0, 0
    for run in history.runs:
        is_reliable = run.is_decided and run.base not in broken
        is_explained = rules.predicts_recorded_failure(history, run) == run.is_failed
        surprising = is_reliable and run.is_stack_complete and not is_explained
        decided_count += is_reliable
        flaky_count += surprising and run.is_failed
        if run.is_stack_complete:
            recorded[run.stack, run.tested_count].append(RecordedResult(run.duration_ms, run.is_decided, surprising))
    return OutcomeModel(
        rules=rules,
        durations=measure_durations(history, rules.bad),
        recorded_results={stack: tuple(runs) for stack, runs in recorded.items()},
        flake_rate=flaky_count / decided_count if decided_count else 0.0,
        undetermined=_find_undetermined(history, rules),
        broken_base_count=len(broken),
    )


def _find_undetermined(history: History, rules: FailureRules) -> frozenset[ArrivalIndex]:
    """Arrivals that left before a run decided them."""
    passed = {index for run in history.runs if run.is_decided and not run.is_failed for index in run.stack}
    removed = (EndState.REMOVED, EndState.STILL_QUEUED)
    departed = {index for index, arrival in enumerate(history.arrivals) if arrival.end_state in removed}
    return frozenset(departed - passed - rules.bad)
