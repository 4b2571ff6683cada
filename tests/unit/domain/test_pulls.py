"""One stay of a pull request in the queue."""

from tests.support.builders import a_pull, a_submission


def test_a_stay_is_known_by_the_number_of_its_pull_request():
    assert a_submission(3, pull=a_pull(12)).number == 12


def test_priority_zero_is_urgent():
    assert a_submission(priority=0).urgent


def test_no_other_priority_is_urgent():
    assert not a_submission(priority=1).urgent
