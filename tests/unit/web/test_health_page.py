"""Headlines compared with the previous period, and the accuracy of estimates."""

import pytest

from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import PullRequestState
from mergeyard.domain.timestamps import DAY, Instant, later
from mergeyard.service.analytics import PeriodRecords, Summary, summarize
from mergeyard.service.forecasts import EstimateAccuracy
from mergeyard.web.charts import parse_period
from mergeyard.web.health_page import MIN_MERGES, Headline, build_headlines, describe_gap, evaluate_estimates
from tests.support.analytics_rows import a_final_transition, a_past_run

NO_RECORDS = summarize(PeriodRecords())


def headline_of(name: str, now: Summary, before: Summary = NO_RECORDS) -> Headline:
    (result,) = [each for each in build_headlines(now, before) if each.name == name]
    return result


def merged(count: int, minutes: int = 10) -> Summary:
    return summarize(PeriodRecords([a_final_transition(minutes=minutes) for _ in range(count)]))


def test_more_merges_are_better():
    headline = headline_of("Merged", merged(12), merged(10))
    assert headline == Headline(name="Merged", value="12", before="was 10", change="▲ 20 %", verdict="better")


def test_fewer_merges_are_worse():
    assert headline_of("Merged", merged(5), merged(10)).verdict == "worse"


def test_a_longer_time_in_queue_is_worse():
    headline = headline_of("Median time to merge", merged(1, minutes=90), merged(1, minutes=60))
    assert (headline.value, headline.change, headline.verdict) == ("1 h 30 min", "▲ 50 %", "worse")


def test_spending_more_is_neither_good_nor_bad():
    spent = [summarize(PeriodRecords(runs=[a_past_run(minutes=minutes)])) for minutes in (3000, 1500)]
    headline = headline_of("CI minutes spent", *spent)
    assert (headline.value, headline.change, headline.verdict) == ("3,000", "▲ 100 %", "")


def test_an_equal_value_has_no_change():
    headline = headline_of("Merged", merged(3), merged(3))
    assert (headline.change, headline.verdict) == ("no change", "")


def test_a_difference_below_the_shown_precision_has_no_change():
    failed = [a_final_transition(PullRequestState.FAILED)]
    now, before = (
        summarize(PeriodRecords([*failed, *[a_final_transition() for _ in range(count)]])) for count in (301, 300)
    )
    assert headline_of("Success rate", now, before).change == "no change"


@pytest.mark.parametrize(("now", "change"), [(1001, "▲ <1 %"), (999, "▼ <1 %"), (50_000, "▲ >10×")])
def test_very_small_and_very_large_changes_are_limits(now: int, change: str):
    assert headline_of("Merged", merged(now), merged(1000)).change == change


def test_without_a_previous_value_there_is_no_change():
    headline = headline_of("Median time to merge", merged(1))
    assert (headline.value, headline.before, headline.change) == ("10 min", "no earlier data", "")


def test_numbers_are_not_compared_with_a_period_of_which_only_a_part_has_data():
    (headline,) = [
        each for each in build_headlines(merged(12), merged(10), "only 15 of 30 days") if each.name == "Merged"
    ]
    assert headline == Headline(name="Merged", value="12", before="was 10 (only 15 of 30 days)")


@pytest.mark.parametrize(
    ("length", "days_ago", "gap"),
    [
        ("30d", 60, ""),
        ("30d", 45, "only 15 of 30 days"),
        ("7d", 10, "only 3 of 7 days"),
        ("24h", 1.25, "only 6 of 24 hours"),
        ("7d", 3, "only 0 of 7 days"),
    ],
)
def test_a_gap_says_how_much_of_the_previous_period_has_data(length: str, days_ago: float, gap: str):
    period = parse_period(length, "", Instant(1000 * DAY))
    assert describe_gap(period, later(period.until, -round(days_ago * DAY))) == gap


def test_negative_savings_are_compared_too():
    now, before = (
        summarize(PeriodRecords(runs=[a_past_run(tests=2)])),
        summarize(PeriodRecords(runs=[a_past_run(kind=RunKind.BISECTION)])),
    )
    headline = headline_of("CI minutes saved", now, before)
    assert (headline.value, headline.before) == ("10", "was -10")
    assert (headline.change, headline.verdict) == ("▲ 200 %", "better")


def test_with_many_merges_the_finding_counts_how_often_p90_held():
    result = evaluate_estimates(EstimateAccuracy(merged=1200, by_median=612, by_p90=1119))
    assert result.finding == "1,119 of 1,200 merged within the p90 estimate"
    assert result.note == "That is 93 % (target: 90 %). 51 % merged within the p50 estimate (target: 50 %)."


def test_with_too_few_merges_no_share_is_shown():
    result = evaluate_estimates(EstimateAccuracy(merged=MIN_MERGES - 1, by_median=8, by_p90=17))
    assert result.finding == "Too few merges to evaluate the estimates"
    assert result.note == "So far 17 of 19 merged within the p90 estimate, and 8 within the p50 estimate."


def test_without_merges_estimates_cannot_be_evaluated():
    assert evaluate_estimates(EstimateAccuracy()).finding == "No estimates to evaluate yet"
