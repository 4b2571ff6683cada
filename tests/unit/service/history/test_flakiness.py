"""Checks that contradict themselves."""

from mergeyard.domain.ids import QueueId
from mergeyard.service.history.flakiness import EVIDENCE_SHOWN, suspects
from mergeyard.service.history.past import PastRun
from tests.support.pasts import QUEUE, a_past_run


def test_a_check_that_is_red_and_then_green_upon_the_same_is_suspected():
    (suspect,) = suspects(
        [
            a_past_run("first", stack="a", at=1, red=("e2e",), green=("unit",)),
            a_past_run("again", stack="a", at=2, green=("e2e", "unit")),
            a_past_run("other", stack="b", at=3, green=("e2e", "unit")),
        ]
    )
    assert (suspect.queue, suspect.check, suspect.last) == (QUEUE, "e2e", 2)
    assert (suspect.stacks, suspect.reds, suspect.reports) == (1, 1, 3)
    assert [(each.red, each.green) for each in suspect.evidence] == [("first", "again")]


def test_a_check_that_stays_red_is_only_red():
    assert suspects([a_past_run(stack="a", red=("e2e",)), a_past_run(stack="a", red=("e2e",))]) == []


def test_a_check_that_is_green_upon_something_else_does_not_contradict_itself():
    assert suspects([a_past_run(stack="a", red=("e2e",)), a_past_run(stack="b", green=("e2e",))]) == []


def test_a_check_that_did_not_report_again_says_nothing():
    assert suspects([a_past_run(stack="a", red=("e2e",)), a_past_run(stack="a", green=("unit",))]) == []


def test_the_same_stack_in_another_queue_is_another_one():
    other = QueueId("q2")
    assert suspects([a_past_run(stack="a", red=("e2e",)), a_past_run(stack="a", green=("e2e",), queue=other)]) == []


def test_the_latest_run_of_either_colour_is_shown_whatever_the_order():
    runs = [
        a_past_run("green", stack="a", at=9, green=("e2e",)),
        a_past_run("late", stack="a", at=5, red=("e2e",)),
        a_past_run("early", stack="a", at=1, red=("e2e",)),
    ]
    (suspect,) = suspects(runs)
    assert (suspect.reds, suspect.evidence[0].red, suspect.evidence[0].green) == (2, "late", "green")
    assert suspects(reversed(runs)) == [suspect]


def red_then_green(stack: str, at: int, *checks: str) -> list[PastRun]:
    return [
        a_past_run(f"red {stack}", stack=stack, at=at, red=checks),
        a_past_run(f"green {stack}", stack=stack, at=at + 1, green=checks),
    ]


def test_who_contradicts_itself_most_often_comes_first_and_then_who_did_last():
    runs = (
        red_then_green("a", 10, "often") + red_then_green("b", 20, "often", "early") + red_then_green("c", 30, "late")
    )
    assert [(suspect.check, suspect.stacks) for suspect in suspects(runs)] == [("often", 2), ("late", 1), ("early", 1)]


def test_only_the_latest_evidence_is_kept():
    runs = [run for count in range(5) for run in red_then_green(f"{count}", 10 * count, "e2e")]
    (suspect,) = suspects(runs)
    assert (suspect.stacks, len(suspect.evidence)) == (5, EVIDENCE_SHOWN)
    assert [each.red for each in suspect.evidence] == ["red 4", "red 3", "red 2"]
