"""What the charts show, and say."""

from mergeyard.domain.instants import DAY, HOUR, Instant
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.service.history.past import Past
from mergeyard.service.history.summing import sum_up
from mergeyard.web.health.charts import Chart, Drawn, draw
from mergeyard.web.health.periods import chosen
from tests.support.pasts import a_past_run, a_restart, an_end

NOW = Instant(1000 * DAY + 10 * HOUR)
TODAY, YESTERDAY = 1000 * DAY, 999 * DAY


def drawn(past: Past) -> Drawn:
    week = chosen("7d", "day", NOW)
    return draw(week, [sum_up(part) for part in past.parted(week.starts)], sum_up(past))


def the_chart(name: str, past: Past) -> Chart:
    (chart,) = [chart for chart in drawn(past).charts if chart.name == name]
    return chart


def test_time_in_queue_has_gaps_where_nothing_merged():
    past = Past([an_end(at=YESTERDAY, minutes=30), an_end(at=TODAY, minutes=10)])
    half, most = the_chart("waits", past).series
    assert half.values == (None, None, None, None, None, 30, 10)
    assert most.cells == ("–", "–", "–", "–", "–", "30 min", "10 min")
    assert the_chart("waits", past).finding == "Half merged within 30 min, 95 % within 30 min"


def test_time_in_queue_is_drawn_in_the_unit_that_fits():
    assert the_chart("waits", Past([an_end(at=TODAY, minutes=1)])).unit == "seconds"
    assert the_chart("waits", Past([an_end(at=TODAY, minutes=90)])).unit == "minutes"
    hours = the_chart("waits", Past([an_end(at=TODAY, minutes=150)]))
    assert (hours.unit, hours.series[0].values[-1]) == ("hours", 2.5)
    assert the_chart("waits", Past([an_end(at=TODAY, minutes=2 * 24 * 60)])).unit == "days"


def test_when_nothing_merged_nobody_can_tell_how_long_it_takes():
    past = Past([an_end(PrState.FAILED, at=TODAY)], [a_past_run(at=TODAY)])
    assert the_chart("waits", past).finding == "Nothing merged, so nobody can tell how long it takes"
    assert the_chart("efforts", past).finding == "1 run, and nothing merged"


def test_throughput_is_a_stack_without_gaps():
    past = Past([an_end(at=TODAY), an_end(PrState.FAILED, at=TODAY), an_end(at=YESTERDAY)])
    chart = the_chart("throughput", past)
    assert (chart.form, chart.finding) == ("stack", "2 merged, 1 failed, 0 cancelled")
    assert [series.values[-2:] for series in chart.series] == [(1, 1), (0, 1), (0, 0)]


def test_the_effort_is_known_where_something_merged():
    past = Past([an_end(at=TODAY), an_end(at=TODAY)], [a_past_run(at=at) for at in (YESTERDAY, TODAY, TODAY, TODAY)])
    (series,) = the_chart("efforts", past).series
    assert series.cells[-2:] == ("–", "1.50")
    assert the_chart("efforts", past).finding == "2.00 runs for each pull request that merged"


def test_restarts_and_bisections_stand_side_by_side():
    red = a_past_run(at=TODAY, tests=2, status=RunStatus.FAILED)
    past = Past([a_restart(at=TODAY)], [red, a_past_run(at=TODAY, kind=RunKind.BISECTION)])
    chart = the_chart("repeats", past)
    assert (chart.form, chart.finding) == ("bars", "1 restart, 1 bisection run for 1 red batch")
    assert [series.values[-1] for series in chart.series] == [1, 1]
    assert the_chart("repeats", Past([an_end(at=TODAY)])).finding == "No restart, no red batch"


def test_ci_minutes_are_minutes_and_may_be_lost():
    past = Past(
        runs=[a_past_run(at=TODAY, minutes=90, tests=3), a_past_run(at=TODAY, minutes=10, kind=RunKind.BISECTION)]
    )
    spent, saved = the_chart("minutes", past).series
    assert (spent.values[-1], saved.values[-1]) == (100, 170)
    assert the_chart("minutes", past).finding == "100 CI minutes spent, batching saved 170"
    lost = Past(runs=[a_past_run(at=TODAY, minutes=10, kind=RunKind.BISECTION)])
    assert the_chart("minutes", lost).series[1].cells[-1] == "-10"
    assert the_chart("minutes", lost).finding == "10 CI minutes spent, batching cost 10 more than it saved"


def test_moments_in_which_nothing_happened_are_quiet():
    moments = drawn(Past(runs=[a_past_run(at=YESTERDAY)])).moments
    assert [moment.quiet for moment in moments] == [True] * 5 + [False, True]
    assert moments[-1].start == TODAY // 1000
