"""CI minutes that were spent, and those that batching saved."""

import pytest

from mergeyard.domain.instants import MINUTE
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import RunStatus
from mergeyard.service.history import costs
from mergeyard.service.history.past import PastRun
from tests.support.pasts import a_past_run

GREEN, RED, STOPPED = RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED
LINE, BISECTION, BARE = RunKind.LINE, RunKind.BISECTION, RunKind.BARE


def test_every_run_is_spent_whatever_became_of_it():
    runs = [a_past_run(kind=kind, status=status) for kind in RunKind for status in (GREEN, RED, STOPPED)]
    assert costs.spent(runs) == 9 * 10 * MINUTE


@pytest.mark.parametrize(
    ("run", "minutes"),
    [
        (a_past_run(tests=1, status=GREEN), 0),
        (a_past_run(tests=4, status=GREEN), 30),
        (a_past_run(tests=4, status=RED), -10),
        (a_past_run(tests=1, status=RED), 0),
        (a_past_run(tests=4, status=STOPPED), 0),
        (a_past_run(kind=BARE, tests=0, status=GREEN), 0),
        (a_past_run(kind=BARE, tests=0, status=RED), 0),
        (a_past_run(kind=BISECTION, tests=2, status=GREEN), -10),
        (a_past_run(kind=BISECTION, tests=1, status=RED), -10),
        (a_past_run(kind=BISECTION, tests=1, status=STOPPED), -10),
        (a_past_run(kind=BISECTION, in_line=True, tests=3, status=GREEN), 20),
    ],
    ids=[
        "one alone saves nothing",
        "four together save three runs",
        "a red batch cost a run",
        "a red one alone would have cost the same",
        "a batch that was stopped shows nothing",
        "a green base saves nothing",
        "a red base costs nothing",
        "searching costs",
        "searching costs also when it is red",
        "searching costs until it is stopped",
        "a prefix that lands as it was tested is a batch like any other",
    ],
)
def test_batching_saves_what_the_same_would_have_cost_one_by_one(run: PastRun, minutes: int):
    assert costs.saved([run]) == minutes * MINUTE


def test_a_time_full_of_red_batches_saves_less_than_nothing():
    runs = [a_past_run(tests=2, status=RED), a_past_run(kind=BISECTION), a_past_run(tests=2, minutes=5)]
    assert costs.saved(runs) == -15 * MINUTE
