"""A time in a few numbers."""

import pytest

from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import MINUTE
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.service.history.past import Past
from mergeyard.service.history.summing import quantile, sum_up
from tests.support.pasts import a_past_run, a_restart, an_end


def test_ends_are_counted_by_what_they_were():
    ends = [an_end(), an_end(), an_end(PrState.FAILED), an_end(PrState.CANCELLED), a_restart()]
    summary = sum_up(Past(ends))
    assert (summary.merged, summary.failed, summary.cancelled, summary.restarts) == (2, 1, 1, 1)


def test_success_is_of_those_that_were_judged():
    assert sum_up(Past([an_end(), an_end(PrState.FAILED), an_end(PrState.CANCELLED)])).success == 0.5


def test_the_time_in_queue_is_that_of_the_merged():
    ends = [an_end(minutes=minutes) for minutes in range(1, 101)]
    ends += [an_end(PrState.FAILED, minutes=999), an_end(minutes=None)]
    summary = sum_up(Past(ends))
    assert (summary.median, summary.slow) == (51 * MINUTE, 96 * MINUTE)


def test_runs_of_every_kind_count_towards_the_effort_of_a_merge():
    runs = [a_past_run(kind=kind) for kind in RunKind] + [a_past_run(status=RunStatus.CANCELLED)]
    summary = sum_up(Past([an_end(), an_end()], runs))
    assert (summary.runs, summary.runs_per_merged, summary.bisection_runs) == (4, 2.0, 1)


def test_a_red_batch_that_is_red_once_more_is_still_one():
    red = RunStatus.FAILED
    runs = [
        a_past_run(stack="ab", tests=2, status=red),
        a_past_run(stack="ab", tests=2, status=red),
        a_past_run(stack="ab", tests=2, status=red, queue=QueueId("q2")),
        a_past_run(stack="cd", tests=2, status=red),
        a_past_run(stack="e", tests=1, status=red),
        a_past_run(stack="fg", tests=2),
        a_past_run(stack="hi", tests=2, kind=RunKind.BISECTION, status=red),
    ]
    assert sum_up(Past(runs=runs)).red_batches == 3


def test_of_nothing_nothing_can_be_told():
    nothing = sum_up(Past())
    assert (nothing.success, nothing.median, nothing.slow, nothing.runs_per_merged) == (None, None, None, None)
    assert (nothing.merged, nothing.spent, nothing.saved) == (0, 0, 0)


@pytest.mark.parametrize(
    ("ordered", "share", "found"),
    [([], 0.5, None), ([7], 0.5, 7), ([7], 0.95, 7), ([1, 2, 3], 0.5, 2), ([1, 2, 3], 1.0, 3)],
)
def test_a_quantile_is_one_of_the_numbers(ordered: list[int], share: float, found: int | None):
    assert quantile(ordered, share) == found
