"""How long a run takes, against the usual."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.instants import MINUTE, later
from mergeyard.sim.world import START
from mergeyard.web.runs.lasting import Span, span
from tests.support.builders import a_run

USUAL = 10 * MINUTE


def test_a_run_under_way_is_measured_until_now_and_one_that_is_over_until_its_end():
    now = later(START, 3 * MINUTE)
    assert span(a_run(1), None, now).elapsed == 3 * MINUTE
    assert span(replace(a_run(1), decided_at=later(START, MINUTE)), None, now).elapsed == MINUTE


@pytest.mark.parametrize(
    ("elapsed", "words"),
    [
        (USUAL, "about as usual"),
        (USUAL - MINUTE, "about as usual"),
        (7 * MINUTE, "3 min shorter than usual"),
        (14 * MINUTE, "4 min longer than usual"),
    ],
)
def test_it_is_compared_with_the_usual(elapsed: int, words: str):
    assert Span(elapsed, USUAL).compared == words


def test_while_it_goes_on_the_usual_time_is_told_until_it_is_over():
    assert Span(MINUTE, USUAL).expected == "usually 10 min"
    assert Span(14 * MINUTE, USUAL).expected == "4 min longer than usual"
    assert "no run has passed yet" in Span(MINUTE, None).expected
