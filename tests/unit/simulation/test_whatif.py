"""Results of what-if replays: metrics, confidence, reasons and assumptions."""

import pytest
from msgspec import json
from msgspec.structs import replace

from mergeyard.domain.config import Config
from mergeyard.domain.timestamps import MINUTE
from mergeyard.simulation.history import ConfigChange, History
from mergeyard.simulation.report import AssumptionKind, Confidence
from mergeyard.simulation.whatif import WhatIfRequest, WhatIfResult, compute_whatif
from tests.support.replay_histories import a_history, at_minute, failed_run, merged_arrival, passed_run, removed_arrival

pytestmark = pytest.mark.long


def a_steady_day(count: int = 120) -> History:
    """Every half an hour a pull request arrives, is tested for ten minutes, and merges."""
    return a_history(
        *(merged_arrival(at=30 * index, until=30 * index + 10) for index in range(count)),
        runs=[passed_run(index, since=30 * index, until=30 * index + 10) for index in range(count)],
    )


def whatif(history: History, **settings: object) -> WhatIfResult:
    return compute_whatif(WhatIfRequest(history, dict(settings)))


def test_a_complete_history_is_replayed_without_error():
    found = whatif(a_steady_day())
    assert found.baseline == found.actual
    assert (found.actual.merged, found.actual.runs, found.actual.runs_per_merge) == (120, 120, 1)
    assert (found.actual.median_ms, found.actual.p95_ms, found.actual.ci_ms) == (
        10 * MINUTE,
        10 * MINUTE,
        1200 * MINUTE,
    )
    assert (found.confidence, found.reasons, found.assumptions) == (Confidence.HIGH, (), ())


def test_proposed_settings_change_only_the_proposed_metrics():
    found = whatif(a_steady_day(), batch=True, batching_min_size=2, batching_max_wait_time_minutes=30)
    assert found.proposed is not None
    assert found.baseline == found.actual
    assert found.proposed.median.merged == 120
    assert 55 <= found.proposed.median.runs <= 65
    assert found.proposed.minimum.ci_ms < found.proposed.median.ci_ms < found.proposed.maximum.ci_ms


def test_few_merges_lower_the_confidence():
    assert whatif(a_steady_day(19), concurrency=1).confidence is Confidence.LOW
    assert whatif(a_steady_day(99), concurrency=1).confidence is Confidence.MEDIUM
    (reason,) = whatif(a_steady_day(19), concurrency=1).reasons
    assert (
        reason
        == "Only 19 pull requests merged in this period: choose a longer period, or try again when 20 have merged."
    )


def test_an_empty_history_has_a_reason_that_says_what_to_do():
    found = whatif(a_history(), concurrency=3)
    assert (found.actual.merged, found.actual.median_ms, found.actual.runs_per_merge) == (0, None, None)
    assert found.reasons[0].startswith("Nothing merged in this period: choose a longer period")


def test_the_error_of_the_replay_is_a_reason():
    history = a_steady_day(30)
    slow = replace(
        history,
        arrivals=tuple(replace(each, ended_at=at_minute(each.admitted_at / MINUTE + 20)) for each in history.arrivals),
    )
    found = whatif(slow, concurrency=2)
    assert found.confidence is Confidence.LOW
    assert found.reasons[0].startswith("Replayed with the actual settings, the median time to merge is 50 % off")


def test_assumptions_are_counted_and_lower_the_confidence():
    history = a_steady_day(30)
    with_removed = a_history(
        *history.arrivals,
        *(removed_arrival(at=30 * index, until=30 * index + 5) for index in range(10)),
        runs=history.runs,
    )
    found = whatif(with_removed, concurrency=2)
    assumptions = {assumption.about: (assumption.count, assumption.of) for assumption in found.assumptions}
    assert (assumptions[AssumptionKind.OUTCOMES], assumptions[AssumptionKind.LENGTHS]) == ((10, 40), (10, 40))
    assert "The history of 25 % of the pull requests is incomplete, so assumptions are made." in found.reasons


def test_parallel_mode_without_impacted_targets_has_the_lowest_confidence():
    found = whatif(a_steady_day(30), mode="parallel")
    assert found.confidence is Confidence.LOW
    (assumption,) = [assumption for assumption in found.assumptions if assumption.about is AssumptionKind.TARGETS]
    assert (
        assumption.message
        == "30 of 30 pull requests have no impacted targets: the replay assumes that they impact ALL."
    )


def test_a_proposed_setting_that_changed_in_the_period_lowers_the_confidence():
    history = a_steady_day()
    moved = replace(
        history, config_changes=(*history.config_changes, ConfigChange(at_minute(100), Config(concurrency=7)))
    )
    assert whatif(moved, batch=True).confidence is Confidence.HIGH
    found = whatif(moved, concurrency=9)
    assert found.confidence is Confidence.MEDIUM
    assert found.reasons[0].startswith("Concurrency was changed in this period")


def test_unreadable_changes_of_settings_are_an_assumption():
    found = whatif(replace(a_steady_day(), unreadable_changes=2), concurrency=9)
    assert found.confidence is Confidence.MEDIUM
    (assumption,) = found.assumptions
    assert (assumption.about, assumption.count, assumption.of) == (AssumptionKind.SETTINGS, 2, 2)


def test_a_broken_base_is_a_reason():
    history = a_steady_day(30)
    broken = replace(
        history, runs=(*history.runs, replace(failed_run(since=5, until=6, tests=0), base=history.arrivals[0].head))
    )
    found = whatif(broken, concurrency=9)
    assert "The target branch itself failed its tests 1 time, which is not replayed." in found.reasons


def test_arrivals_that_are_not_counted_are_replayed_too():
    history = a_history(
        merged_arrival(at=0, until=10, is_counted=False),
        merged_arrival(at=0, until=20),
        runs=[passed_run(0, since=0, until=10), passed_run(0, 1, since=10, until=20)],
        concurrency=1,
    )
    found = whatif(history)
    assert found.actual == found.baseline
    assert (found.actual.merged, found.actual.runs, found.actual.median_ms) == (1, 1, 20 * MINUTE)


def test_requests_and_results_survive_encoding_and_decoding():
    request = WhatIfRequest(a_steady_day(3), {"mode": "parallel", "concurrency": 3})
    again = json.decode(json.encode(request), type=WhatIfRequest)
    assert again == request
    assert json.decode(json.encode(compute_whatif(again)), type=WhatIfResult) == compute_whatif(request)
