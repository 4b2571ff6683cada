"""The truth of a replay: what really ran is told as it was, and all else is concluded, or drawn."""

from msgspec.structs import replace

from mergeyard.domain.instants import MINUTE
from mergeyard.sim.replaying.truth import find_out
from tests.support.pasts_to_replay import a_past, failed, green, left, merged, red, stopped


def test_a_run_that_really_was_takes_as_long_as_it_did_each_time():
    past = a_past(merged(at=0, until=30), runs=[red(0, since=0, until=10), green(0, since=10, until=30)])
    truth = find_out(past)
    assert [truth.length((0,), 1, asked) / MINUTE for asked in range(2)] == [10, 20]
    assert [truth.is_green((0,), 1, asked, by_rule=True) for asked in range(2)] == [False, True]
    assert [truth.knows((0,), 1, asked) for asked in range(3)] == [True, True, False]


def test_a_run_that_was_stopped_would_have_taken_longer():
    past = a_past(
        merged(at=0, until=30),
        runs=[green(0, since=0, until=30), stopped(0, since=30, until=50), stopped(0, since=50, until=90)],
    )
    lengths = [find_out(past).length((0,), 1, asked) for asked in (1, 2)]
    assert lengths == [30 * MINUTE, 40 * MINUTE + 1]


def test_what_is_bad_takes_as_long_as_its_red_runs_and_what_is_good_as_its_green_ones():
    past = a_past(
        failed(at=0, until=5),
        merged(at=0, until=65),
        runs=[red(0, since=0, until=5), red(1, since=5, until=6), green(1, since=6, until=26)],
    )
    assert [length / MINUTE for length in find_out(past).lengths.of] == [5, 20]


def test_a_run_of_its_own_tells_more_than_one_that_it_shared():
    past = a_past(
        merged(at=0, until=40),
        merged(at=0, until=40),
        runs=[green(0, 1, since=0, until=30, tests=2), green(0, since=30, until=40)],
    )
    assert [length / MINUTE for length in find_out(past).lengths.of] == [10, 30]


def test_whoever_had_no_run_that_ended_takes_the_usual_time_or_twice_as_long_as_it_ran():
    past = a_past(
        merged(at=0, until=10),
        left(at=0, until=5),
        left(at=0, until=30),
        runs=[green(0, since=0, until=10), stopped(1, since=0, until=5), stopped(2, since=0, until=30)],
    )
    lengths = find_out(past).lengths
    assert [length / MINUTE for length in lengths.of] == [10, 10, 60]
    assert lengths.unknown == {1, 2}


def test_whoever_left_before_any_run_judged_it_is_taken_to_be_good():
    past = a_past(
        left(at=0, until=5),
        left(at=0, until=30),
        runs=[green(1, since=0, until=30)],
    )
    truth = find_out(past)
    assert truth.unjudged == {0}
    assert not truth.blamed.rules.bad


def test_as_many_runs_flake_as_really_did_and_each_draw_chooses_others():
    past = a_past(
        merged(at=0, until=40),
        runs=[
            red(0, since=0, until=10),
            green(0, since=10, until=20),
            *(green(0, since=20, until=30) for _ in range(8)),
        ],
    )
    truth = find_out(past)
    assert truth.flakes == 0.1
    never_ran = [(place, place + 1) for place in range(2000)]
    drawn = [
        {stack for stack in never_ran if not replace(truth, draw=draw).is_green(stack, 1, 0, by_rule=True)}
        for draw in (0, 1)
    ]
    assert all(150 < len(reds) < 250 for reds in drawn)
    assert drawn[0] != drawn[1]


def test_what_flakes_is_never_green_where_the_rules_say_red():
    truth = find_out(a_past(merged(at=0, until=10), runs=[green(0, since=0, until=10)]))
    assert not truth.is_green((3,), 1, 0, by_rule=False)


def test_runs_that_never_ran_vary_from_draw_to_draw_and_those_that_did_do_not():
    truth = find_out(a_past(merged(at=0, until=10), runs=[green(0, since=0, until=10)]))
    again = replace(truth, draw=1)
    assert again.length((0,), 1, 0) == 10 * MINUTE
    assert truth.length((0,), 1, 1) == 10 * MINUTE
    assert 9.5 * MINUTE <= again.length((0,), 1, 1) <= 10.5 * MINUTE
    assert again.length((0,), 1, 1) != 10 * MINUTE
