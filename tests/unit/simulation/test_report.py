"""The confidence of a replay, its caveats, and the spread over draws."""

from typing import Any

import pytest
from msgspec.structs import replace

from mergeyard.domain.timestamps import MINUTE
from mergeyard.simulation.outcomes import build_outcome_model
from mergeyard.simulation.report import (
    Confidence,
    MetricsSpread,
    PeriodMetrics,
    ReplayFindings,
    compute_replay_error,
    compute_spread,
    find_unknown_facts,
    list_caveats,
    overall_confidence,
)
from tests.support.replay_histories import a_history, merged_arrival, passed_run

METRICS = PeriodMetrics(
    merged=200,
    failed=20,
    removed=5,
    median_ms=30 * MINUTE,
    p95_ms=90 * MINUTE,
    runs=300,
    runs_per_merge=1.5,
    ci_ms=6000 * MINUTE,
)


def findings(*draws: PeriodMetrics, **more: Any) -> ReplayFindings:
    history = a_history(merged_arrival(at=0, until=10), runs=[passed_run(0, since=0, until=10)])
    model = build_outcome_model(history)
    fields: dict[str, Any] = {
        "history": history,
        "outcome_model": model,
        "unknown_facts": find_unknown_facts(history, model, history.config_changes),
        "actual": METRICS,
        "baseline": METRICS,
        "proposed": compute_spread(draws or [METRICS]),
        "unrecorded_share": 0.0,
        "proposed_settings": {"concurrency": 9},
    }
    return ReplayFindings(**fields | more)


def confidence_of(found: ReplayFindings) -> Confidence:
    return overall_confidence(list_caveats(found))


def test_without_caveats_the_confidence_is_high():
    assert list_caveats(findings()) == []
    assert confidence_of(findings()) is Confidence.HIGH


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [((30, 37), Confidence.HIGH), ((30, 45), Confidence.MEDIUM), ((30, 65), Confidence.LOW)],
)
def test_confidence_falls_with_the_spread_of_the_draws(minutes: tuple[int, int], expected: Confidence):
    draws = [replace(METRICS, median_ms=each * MINUTE) for each in minutes]
    assert confidence_of(findings(*draws)) is expected


def test_a_caveat_names_the_metric_with_the_widest_spread():
    (caveat,) = list_caveats(findings(METRICS, replace(METRICS, runs=600)))
    assert caveat.message == "The result depends on chance: over several draws, the number of runs differs by 50 %."


@pytest.mark.parametrize(
    ("runs", "expected"), [(320, Confidence.HIGH), (350, Confidence.MEDIUM), (400, Confidence.LOW)]
)
def test_confidence_falls_with_the_error_of_the_replay(runs: int, expected: Confidence):
    assert confidence_of(findings(baseline=replace(METRICS, runs=runs))) is expected


def test_the_replay_error_is_that_of_the_worst_metric():
    error, name = compute_replay_error(METRICS, replace(METRICS, median_ms=33 * MINUTE, p95_ms=120 * MINUTE))
    assert (round(error, 2), name) == (0.33, "the 95 % time to merge")


def test_a_replay_that_did_not_end_has_the_lowest_confidence():
    assert confidence_of(findings(proposed=None)) is Confidence.LOW
    (caveat,) = list_caveats(findings(baseline=None))
    assert caveat.message.startswith("The replay does not end even with the actual settings")


def test_flakes_lower_the_confidence_if_most_runs_are_unrecorded():
    flaky = replace(build_outcome_model(findings().history), flake_rate=0.06)
    assert confidence_of(findings(outcome_model=flaky, unrecorded_share=0.4)) is Confidence.HIGH
    assert confidence_of(findings(outcome_model=flaky, unrecorded_share=0.6)) is Confidence.MEDIUM


def test_the_most_severe_caveat_comes_first():
    listed = list_caveats(findings(actual=replace(METRICS, merged=50), baseline=replace(METRICS, runs=900, merged=50)))
    assert [caveat.confidence for caveat in listed] == [Confidence.LOW, Confidence.MEDIUM]


def test_a_spread_is_computed_for_each_metric():
    quick, slow = replace(METRICS, median_ms=20 * MINUTE, runs=400), replace(METRICS, median_ms=40 * MINUTE, runs=200)
    assert compute_spread([quick, METRICS, slow]) == MetricsSpread(
        METRICS, replace(METRICS, median_ms=20 * MINUTE, runs=200), replace(METRICS, median_ms=40 * MINUTE, runs=400)
    )
    assert compute_spread([replace(METRICS, median_ms=None), METRICS]).maximum.median_ms is None
