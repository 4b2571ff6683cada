"""The line names its pull requests in order; a bisection knows its suspect and upon whom that was red."""

from mergeyard.domain.ids import BatchId, Ticket
from mergeyard.domain.line import Bisection, Line
from mergeyard.domain.targets import ALL
from tests.support.builders import a_batch, a_run

FAILED = a_run(1, 2, 3, 4, 5, tests=4)


def a_bisection(*, green: int, red: int) -> Bisection:
    """Of 2, 3, 4 and 5, upon 1."""
    return Bisection(
        id=BatchId(1),
        tickets=(Ticket(2), Ticket(3), Ticket(4), Ticket(5)),
        targets=ALL,
        failed=FAILED,
        green=green,
        red=red,
        red_run=FAILED,
    )


def test_the_tickets_of_a_line_stand_batch_by_batch():
    assert Line(batches=(a_batch(1, 5, 3), a_batch(2, 4))).tickets == (5, 3, 4)


def test_a_bisection_stands_on_the_commit_beneath_its_batch():
    assert a_bisection(green=0, red=4).base == "1"


def test_the_steps_of_a_bisection_are_those_of_its_own_members():
    assert [step.commit for step in a_bisection(green=0, red=4).steps] == ["1+2", "1+2+3", "1+2+3+4", "1+2+3+4+5"]


def test_it_searches_while_the_guilty_one_may_be_one_of_several():
    assert a_bisection(green=1, red=3).searching


def test_it_has_found_the_guilty_one_when_red_follows_on_green():
    assert not a_bisection(green=2, red=3).searching


def test_the_suspect_is_the_last_of_the_shortest_red_prefix():
    assert a_bisection(green=2, red=3).suspect == 4


def test_the_suspect_was_red_upon_those_before_it():
    assert a_bisection(green=2, red=3).prefix == (2, 3)


def test_those_known_good_and_those_behind_a_red_prefix_are_no_members_any_more():
    assert a_bisection(green=1, red=3).members == (3, 4)
