"""What a run is for, in a sentence."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.ids import Ticket
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import RunStatus
from mergeyard.web.runs.purpose import purpose, remarks
from tests.support.builders import a_plain_queue, a_run, a_yard


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (a_run(1), "It tests #1 as it would merge, upon main."),
        (a_run(1, 2, 3), "It tests #3 as it would merge, upon #1 and #2."),
        (a_run(1, 2, 3, tests=2), "It tests #2 and #3 together, as they would merge, upon #1."),
        (a_run(*range(1, 9)), "It tests #8 as it would merge, upon #1, #2, #3, #4, #5, #6 and 1 more."),
        (
            a_run(1, 2, kind=RunKind.BISECTION, tests=2),
            "A batch was red, and the guilty one is sought: it tests #1 and #2.",
        ),
        (
            a_run(tests=0, kind=RunKind.BARE),
            "It tests main itself, with no pull request, before anyone is blamed upon it.",
        ),
    ],
)
def test_a_run_says_what_it_tests_upon_what(run: Run, words: str):
    assert purpose(run, "main") == words


def test_an_ordinary_run_needs_no_remark():
    assert list(remarks(a_run(1), a_plain_queue())) == []


def test_what_is_special_about_a_run_is_said():
    stopped = replace(a_run(1, status=RunStatus.CANCELLED), attempt=1, timed_out=True, restarted=True)
    said = " ".join(remarks(stopped, a_plain_queue()))
    assert "This is attempt 2" in said
    assert "within 5 h" in said
    assert "asked for it to be run again" in said
    assert "stopped" in said


def test_a_result_that_no_longer_counts_says_why():
    said = list(remarks(replace(a_run(1), void=Reason.TARGET_BRANCH_MOVED), a_plain_queue()))
    assert said == ["Its result no longer counts. The target branch moved; it is tested again on the new tip."]


def test_those_that_are_left_out_are_named():
    yard = a_yard(prs=2)
    run = replace(a_run(2), left_out=frozenset({yard.ticket(1), Ticket(99)}))
    assert list(remarks(run, yard.queue)) == ["Left out, because expected to leave: #1."]
