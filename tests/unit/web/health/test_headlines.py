"""Numbers beside what they were before."""

import pytest

from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import PrState
from mergeyard.service.history.past import Past
from mergeyard.service.history.summing import Summary, sum_up
from mergeyard.web.health.headlines import Headline, headlines
from tests.support.pasts import a_past_run, an_end

NOTHING = sum_up(Past())


def the_headline(name: str, now: Summary, before: Summary = NOTHING) -> Headline:
    (found,) = [each for each in headlines(now, before) if each.name == name]
    return found


def merged(count: int, minutes: int = 10) -> Summary:
    return sum_up(Past([an_end(minutes=minutes) for _ in range(count)]))


def test_more_merged_is_better():
    headline = the_headline("Merged", merged(12), merged(10))
    assert headline == Headline(name="Merged", value="12", before="10 before", change="▲ 20 %", verdict="better")


def test_fewer_merged_is_worse():
    assert the_headline("Merged", merged(5), merged(10)).verdict == "worse"


def test_longer_in_queue_is_worse():
    headline = the_headline("Median in queue", merged(1, minutes=90), merged(1, minutes=60))
    assert (headline.value, headline.change, headline.verdict) == ("1 h 30 min", "▲ 50 %", "worse")


def test_spending_more_is_neither_good_nor_bad():
    spent = [sum_up(Past(runs=[a_past_run(minutes=minutes)])) for minutes in (3000, 1500)]
    headline = the_headline("CI minutes spent", *spent)
    assert (headline.value, headline.change, headline.verdict) == ("3,000", "▲ 100 %", "")


def test_the_same_is_as_before():
    headline = the_headline("Merged", merged(3), merged(3))
    assert (headline.change, headline.verdict) == ("as before", "")


def test_what_cannot_be_told_apart_is_as_before():
    failed = [an_end(PrState.FAILED)]
    now, before = (sum_up(Past([*failed, *[an_end() for _ in range(count)]])) for count in (301, 300))
    assert the_headline("Success", now, before).change == "as before"


@pytest.mark.parametrize(("now", "change"), [(1001, "▲ a little"), (999, "▼ a little"), (50_000, "▲ many times")])
def test_sizes_that_nobody_can_imagine_are_said_in_words(now: int, change: str):
    assert the_headline("Merged", merged(now), merged(1000)).change == change


def test_without_anything_before_there_is_nothing_to_compare_with():
    headline = the_headline("Median in queue", merged(1))
    assert (headline.value, headline.before, headline.change) == ("10 min", "nothing before", "")


def test_savings_below_zero_are_compared_as_well():
    now, before = sum_up(Past(runs=[a_past_run(tests=2)])), sum_up(Past(runs=[a_past_run(kind=RunKind.BISECTION)]))
    headline = the_headline("CI minutes saved", now, before)
    assert (headline.value, headline.before) == ("10", "-10 before")
    assert (headline.change, headline.verdict) == ("▲ 200 %", "better")
