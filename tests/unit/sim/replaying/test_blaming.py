"""Who was bad, and who broke with whom: found out from what really happened to each."""

from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.sim.replaying.blaming import blame
from mergeyard.sim.replaying.history import History
from mergeyard.sim.replaying.rules import Rules
from tests.support.pasts_to_replay import a_past, failed, green, left, merged, red


def test_whoever_failed_for_good_and_was_never_green_is_bad():
    past = a_past(
        merged(at=0, until=10),
        failed(at=0, until=10),
        runs=[green(0, since=0, until=10), red(0, 1, since=0, until=10)],
    )
    assert blame(past).rules == Rules(bad=frozenset({1}))


def test_whoever_was_green_without_one_and_red_with_it_breaks_with_that_one():
    past = a_past(
        merged(at=0, until=10),
        failed(at=0, until=20),
        runs=[green(0, since=0, until=10), green(1, since=0, until=10), red(0, 1, since=0, until=20)],
    )
    found = blame(past)
    assert found.rules == Rules(conflicts={0: frozenset({1}), 1: frozenset({0})})
    assert not found.doubtful


def test_it_may_break_with_one_that_merged_since_it_was_green():
    past = a_past(
        merged(at=0, until=30),
        failed(at=0, until=50),
        runs=[green(1, since=0, until=10), green(0, since=20, until=30), red(1, since=40, until=50)],
    )
    assert blame(past).rules.conflicts == {0: frozenset({1}), 1: frozenset({0})}


def broke_with_one_of_two() -> History:
    return a_past(
        merged(at=0, until=10),
        merged(at=0, until=10),
        failed(at=0, until=20),
        runs=[
            green(0, since=0, until=10),
            green(0, 1, since=0, until=10),
            green(2, since=0, until=10),
            red(0, 1, 2, since=0, until=20),
        ],
    )


def test_of_several_the_last_that_came_into_it_is_taken_and_that_is_doubtful():
    found = blame(broke_with_one_of_two())
    assert found.rules.conflicts == {1: frozenset({2}), 2: frozenset({1})}
    assert found.doubtful == {2}


def test_a_second_red_run_before_it_or_after_it_tells_with_which_of_them():
    past, telling = broke_with_one_of_two(), red(0, 2, since=0, until=20)
    for runs in ([telling, *past.runs], [*past.runs, telling]):
        found = blame(a_past(*past.arrivals, runs=runs))
        assert found.rules.conflicts == {0: frozenset({2}), 2: frozenset({0})}
        assert not found.doubtful


def test_red_and_green_upon_the_same_is_a_flake_and_nobody_is_bad():
    past = a_past(failed(at=0, until=20), runs=[green(0, since=0, until=10), red(0, since=10, until=20)])
    assert blame(past).rules == Rules()


def test_whose_very_head_merged_later_was_not_bad():
    same = {"number": PrNumber(4), "head": Sha("the same")}
    past = a_past(
        failed(at=0, until=10, **same),
        merged(at=20, until=30, **same),
        runs=[red(0, since=0, until=10), green(1, since=20, until=30)],
    )
    assert blame(past).rules == Rules()


def test_whoever_left_is_bad_if_a_red_run_blames_nobody_else():
    past = a_past(
        left(at=0, until=20),
        left(at=0, until=20),
        left(at=0, until=20),
        runs=[red(0, since=0, until=10), red(1, 2, since=0, until=10)],
    )
    assert blame(past).rules == Rules(bad=frozenset({0}))


def test_a_red_run_upon_a_broken_target_blames_nobody():
    past = a_past(left(at=0, until=20), runs=[red(0, since=0, until=10), red(since=10, until=20, tests=0)])
    assert blame(past).rules == Rules()
