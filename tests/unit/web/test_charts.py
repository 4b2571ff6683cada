"""Charts of the health page, their periods, and the findings in words."""

from datetime import UTC, datetime

import pytest

from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import PullRequestState, RunStatus
from mergeyard.domain.timestamps import DAY, HOUR, Instant
from mergeyard.service.analytics import PeriodRecords, ReasonCount, summarize
from mergeyard.web import charts
from mergeyard.web.charts import (
    PERIOD_LENGTHS,
    Chart,
    ChartData,
    Division,
    build_charts,
    format_interval_start,
    parse_period,
)
from tests.support.analytics_rows import a_final_transition, a_past_run, a_restart_transition

NOW = Instant(1000 * DAY + 10 * HOUR)
TODAY, YESTERDAY = 1000 * DAY, 999 * DAY


def build(records: PeriodRecords) -> ChartData:
    week = parse_period("7d", "day", NOW)
    return build_charts(week, [summarize(part) for part in records.split_at(week.starts)], summarize(records))


def chart_of(name: str, records: PeriodRecords) -> Chart:
    (chart,) = [chart for chart in build(records).charts if chart.name == name]
    return chart


def test_time_in_queue_has_gaps_where_nothing_merged():
    records = PeriodRecords([a_final_transition(at=YESTERDAY, minutes=30), a_final_transition(at=TODAY, minutes=10)])
    median, p95 = chart_of("waits", records).series
    assert median.values == (None, None, None, None, None, None, 30, 10)
    assert p95.cells == ("–", "–", "–", "–", "–", "–", "30 min", "10 min")
    assert chart_of("waits", records).finding == "Median 30 min, p95 30 min"


def test_lines_are_drawn_only_if_two_neighboring_intervals_have_values():
    days = [a_final_transition(at=TODAY - before * DAY, minutes=5) for before in (3, 2, 0)]
    runs = [a_past_run(at=TODAY)]
    assert [chart_of(name, PeriodRecords(days[2:], runs)).form for name in ("waits", "efforts")] == ["bars", "bars"]
    assert chart_of("waits", PeriodRecords(days[1:])).form == "bars"
    assert chart_of("waits", PeriodRecords(days)).form == "lines"


def test_time_in_queue_uses_the_unit_that_fits():
    assert chart_of("waits", PeriodRecords([a_final_transition(at=TODAY, minutes=1)])).unit == "seconds"
    assert chart_of("waits", PeriodRecords([a_final_transition(at=TODAY, minutes=90)])).unit == "minutes"
    hours = chart_of("waits", PeriodRecords([a_final_transition(at=TODAY, minutes=150)]))
    assert (hours.unit, hours.series[0].values[-1]) == ("hours", 2.5)
    assert chart_of("waits", PeriodRecords([a_final_transition(at=TODAY, minutes=2 * 24 * 60)])).unit == "days"


def test_without_merges_the_time_in_queue_is_unknown():
    records = PeriodRecords([a_final_transition(PullRequestState.FAILED, at=TODAY)], [a_past_run(at=TODAY)])
    assert chart_of("waits", records).finding == "No time in queue: nothing merged"
    assert chart_of("efforts", records).finding == "1 run, and nothing merged"


def test_throughput_is_a_stacked_chart_without_gaps():
    records = PeriodRecords(
        [
            a_final_transition(at=TODAY),
            a_final_transition(PullRequestState.FAILED, at=TODAY),
            a_final_transition(at=YESTERDAY),
        ]
    )
    chart = chart_of("throughput", records)
    assert (chart.form, chart.finding) == ("stack", "2 merged, 1 failed, 0 removed")
    assert [series.values[-2:] for series in chart.series] == [(1, 1), (0, 1), (0, 0)]


def test_runs_per_merge_are_known_only_where_a_pull_request_merged():
    records = PeriodRecords(
        [a_final_transition(at=TODAY), a_final_transition(at=TODAY)],
        [a_past_run(at=at) for at in (YESTERDAY, TODAY, TODAY, TODAY)],
    )
    (series,) = chart_of("efforts", records).series
    assert series.cells[-2:] == ("–", "1.50")
    assert chart_of("efforts", records).finding == "2.00 runs per merge"


def test_restarts_and_bisections_are_shown_side_by_side():
    failed = a_past_run(at=TODAY, tests=2, status=RunStatus.FAILED)
    records = PeriodRecords([a_restart_transition(at=TODAY)], [failed, a_past_run(at=TODAY, kind=RunKind.BISECTION)])
    chart = chart_of("repeats", records)
    assert (chart.form, chart.finding) == ("bars", "1 restart, 1 bisection run for 1 failed batch")
    assert [series.values[-1] for series in chart.series] == [1, 1]
    assert (
        chart_of("repeats", PeriodRecords([a_final_transition(at=TODAY)])).finding == "No restarts, no failed batches"
    )


def test_saved_ci_minutes_can_be_negative():
    records = PeriodRecords(
        runs=[a_past_run(at=TODAY, minutes=90, tests=3), a_past_run(at=TODAY, minutes=10, kind=RunKind.BISECTION)]
    )
    spent, saved = chart_of("minutes", records).series
    assert (spent.values[-1], saved.values[-1]) == (100, 170)
    assert chart_of("minutes", records).finding == "100 CI minutes spent, batching saved 170"
    lost = PeriodRecords(runs=[a_past_run(at=TODAY, minutes=10, kind=RunKind.BISECTION)])
    assert chart_of("minutes", lost).series[1].cells[-1] == "-10"
    assert chart_of("minutes", lost).finding == "10 CI minutes spent, batching cost 10 extra"


def test_intervals_without_records_are_empty():
    intervals = build(PeriodRecords(runs=[a_past_run(at=YESTERDAY)])).moments
    assert [interval.is_empty for interval in intervals] == [True] * 6 + [False, True]
    assert intervals[-1].start == TODAY // 1000


def test_the_finding_names_the_most_frequent_reason_for_not_merging():
    chart = charts.chart_conclusion_reasons(
        [
            ReasonCount("merged", "merged_by_queue", 20),
            ReasonCount("failed", "test_run_failed", 5),
            ReasonCount("cancelled", "pr_closed", 1),
        ]
    )
    assert chart.finding == "Most common reason for not merging: required check failed (5 of 6)"
    assert [bar.percent for bar in chart.bars] == [100, 25, 5]
    assert [bar.label for bar in chart.bars][1] == "Failed: required check failed"
    assert chart.bars[1].message.startswith("A required check failed")


def test_the_finding_says_that_all_merged():
    assert (
        charts.chart_conclusion_reasons([ReasonCount("merged", "merged_by_queue", 2)]).finding
        == "Every finished pull request merged"
    )


def test_the_finding_says_that_no_pull_request_left():
    assert charts.chart_conclusion_reasons([]) == charts.BarChart(
        "No pull request finished", "Finished pull requests, by state and reason", ()
    )


def test_restarts_are_labeled_with_their_reason_only():
    chart = charts.chart_restart_reasons(
        [ReasonCount("pending", "bisection", 3), ReasonCount("pending", "target_branch_moved", 1)]
    )
    assert chart.finding == "Most common restart: bisection of a failed batch (3 of 4)"
    assert [bar.label for bar in chart.bars] == ["Bisection of a failed batch", "Target branch moved"]
    assert charts.chart_restart_reasons([]).finding == "No restarts"


def test_an_unknown_reason_has_no_message():
    (bar,) = charts.chart_conclusion_reasons([ReasonCount("failed", "out_of_steam", 1)]).bars
    assert (bar.label, bar.message) == ("Failed: out of steam", "")


def instant(text: str) -> Instant:
    return Instant(int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000))


SUNDAY = instant("2026-11-15T10:20:30")


def test_a_week_is_seven_days_to_the_millisecond_drawn_by_whole_days():
    week = parse_period("7d", "day", SUNDAY)
    assert week.until - week.since == 7 * DAY
    assert week.starts == tuple(instant(f"2026-11-{day:02}") for day in range(8, 16))


def test_a_day_is_24_hours_drawn_by_whole_hours():
    day = parse_period("24h", "", SUNDAY)
    assert (day.until - day.since, day.by, len(day.starts)) == (DAY, Division.HOUR, 25)
    assert (day.starts[0], day.starts[-1]) == (instant("2026-11-14T10:00"), instant("2026-11-15T10:00"))


def test_future_hours_are_left_out():
    hours = parse_period("7d", "hour", SUNDAY).starts
    assert (hours[0], hours[-1], len(hours)) == (instant("2026-11-08T10:00"), instant("2026-11-15T10:00"), 7 * 24 + 1)


def test_a_period_includes_the_current_millisecond():
    assert parse_period("7d", "", SUNDAY).until == SUNDAY + 1


def test_the_previous_period_is_as_long_and_ends_where_this_one_begins():
    week = parse_period("7d", "", SUNDAY)
    assert week.before == (week.since - 7 * DAY, week.since)


@pytest.mark.parametrize("now", ["2026-11-15T00:00:00", "2026-11-14T23:59:59.999"])
@pytest.mark.parametrize("length", PERIOD_LENGTHS)
def test_every_interval_of_every_period_has_started(length: str, now: str):
    for by in PERIOD_LENGTHS[length].by:
        period = parse_period(length, by, instant(now))
        assert period.starts[0] <= period.since < period.starts[0] + by.length_ms
        assert period.starts[-1] <= instant(now) < period.starts[-1] + by.length_ms


@pytest.mark.parametrize(
    ("length", "by", "expected"),
    [
        ("", "", ("7d", Division.DAY)),
        ("1000d", "second", ("7d", Division.DAY)),
        ("90d", "hour", ("90d", Division.DAY)),
        ("24h", "day", ("24h", Division.HOUR)),
        ("30d", "hour", ("30d", Division.HOUR)),
    ],
)
def test_an_invalid_choice_gives_the_default(length: str, by: str, expected: tuple[str, Division]):
    period = parse_period(length, by, SUNDAY)
    assert (period.length.name, period.by) == expected


def test_interval_starts_are_formatted_by_hour_or_day():
    assert format_interval_start(instant("2026-11-09T07:00"), Division.HOUR) == "9 Nov 07:00"
    assert format_interval_start(instant("2026-11-09"), Division.DAY) == "Mon 9 Nov"
