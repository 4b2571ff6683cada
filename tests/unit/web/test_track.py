"""The line as a track: its wagons, how each does, and the station where all of them go."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.landing import Phase
from mergeyard.domain.states import CheckState, QueueState
from mergeyard.domain.targets import ALL, named
from mergeyard.web.track import MOST_CARS, MOST_WAGONS, Mark, Track, Wagon, track
from tests.support.builders import Yard, a_parallel_yard, a_yard


def seen(yard: Yard) -> Track:
    return track(yard.queue, yard.now)


def wagons(yard: Yard) -> list[Wagon]:
    return list(seen(yard).wagons.values())


def marks(yard: Yard) -> list[Mark]:
    return [wagon.mark for wagon in wagons(yard)]


def test_an_empty_line_is_its_station():
    drawn = seen(a_yard())
    assert (drawn.station.name, drawn.lanes, drawn.wagons, drawn.branched) == ("main", [], {}, False)


def test_a_batch_is_a_wagon_with_its_pull_requests():
    (wagon,) = wagons(a_yard(prs=2, batch=2))
    assert ([car.number for car in wagon.cars], wagon.mark, wagon.place) == ([1, 2], Mark.TESTING, 1)


def test_what_is_being_built_is_not_under_test_yet():
    yard = a_yard()
    yard.submit(1)
    assert marks(yard) == [Mark.BUILDING]


def test_a_wagon_shows_its_verdict():
    yard = a_yard(prs=3)
    yard.passes(2)
    yard.fails(3)
    assert marks(yard) == [Mark.TESTING, Mark.PASSED, Mark.RED]


def test_a_wagon_that_a_run_behind_speaks_for_says_so():
    yard = a_yard(prs=2, depth=1)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.passes(2)
    assert marks(yard) == [Mark.CLEARED, Mark.PASSED]


def test_a_wagon_that_is_restarted_waits_and_shows_no_old_run():
    yard = a_yard(prs=1)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.restart(1)
    (wagon,) = wagons(yard)
    assert (wagon.mark, wagon.trial) == (Mark.WAITING, None)


def test_what_is_landing_is_on_its_way_into_the_station():
    yard = a_yard(prs=2)
    yard.passes(1)
    yard.intend()
    station = seen(yard).station
    assert marks(yard)[0] is Mark.LANDING
    assert (station.landing, station.phase) == ((1,), Phase.INTENDED)


def test_an_urgent_wagon_is_marked():
    yard = a_yard(prs=1)
    yard.submit(2, priority=0)
    assert [wagon.urgent for wagon in wagons(yard)] == [True, False]


def test_the_target_itself_under_test_is_shown_at_the_station():
    yard = a_yard(prs=1, proven=False)
    assert seen(yard).station.trial is None
    yard.fails(1)
    yard.build()
    assert seen(yard).station.trial is not None


def test_a_target_that_fails_its_own_tests_is_shown_broken():
    yard = a_yard(prs=1, proven=False)
    yard.fails(1)
    yard.build()
    yard.fails()
    assert seen(yard).station.broken


def test_in_single_mode_there_is_one_lane_and_nobody_says_upon_whom():
    drawn = seen(a_yard(prs=4))
    assert [[spot.batch for spot in lane] for lane in drawn.lanes] == [list(drawn.wagons)]
    assert all(wagon.upon == () for wagon in drawn.wagons.values())


def test_in_parallel_mode_a_wagon_says_which_targets_it_shares_with_those_it_stands_upon():
    yard = a_parallel_yard("x", "y", "xy")
    third = wagons(yard)[2]
    assert [(shared.with_, shared.names) for shared in third.upon] == [((1,), ("x",)), ((2,), ("y",))]
    assert seen(yard).branched


def test_nobody_is_said_to_stand_upon_one_that_is_beneath_another_of_them():
    third = wagons(a_parallel_yard("x", "x", "x"))[2]
    assert [shared.with_ for shared in third.upon] == [(2,)]


def test_whoever_impacts_everything_says_so_instead_of_naming_it():
    yard = a_parallel_yard("x")
    yard.submit(2, targets=ALL)
    assert wagons(yard)[1].upon[0].everything


def test_of_many_shared_targets_the_first_are_named_and_the_others_counted():
    yard = a_parallel_yard("abcdef", "abcdef")
    (shared,) = wagons(yard)[1].upon
    assert (shared.names, shared.more) == (("a", "b", "c"), 3)


def test_of_a_large_batch_the_first_are_shown_and_the_others_counted():
    (wagon,) = wagons(a_yard(prs=MOST_CARS + 3, batch=MOST_CARS + 3))
    assert (len(wagon.cars), wagon.more) == (MOST_CARS, 3)


@pytest.mark.parametrize("yard", [a_yard(prs=0), a_parallel_yard()], ids=["single", "parallel"])
def test_of_a_long_line_the_front_is_shown_and_the_rest_counted(yard: Yard):
    yard.tell(e.SettingsSaved(config=replace(yard.queue.config, concurrency=MOST_WAGONS + 2)))
    yard.submit(*range(1, MOST_WAGONS + 3), targets=named("x"))
    drawn = seen(yard)
    assert (len(drawn.wagons), drawn.hidden) == (MOST_WAGONS, 2)


def test_a_run_tells_how_many_of_its_checks_are_done():
    yard = a_yard(prs=1)
    run = yard.run_of(1)
    yard.queue = replace(
        yard.queue, runs={run.id: replace(run, required=("unit", "lint"), checks={"lint": CheckState.PASSED})}
    )
    (wagon,) = wagons(yard)
    assert wagon.trial is not None
    assert (wagon.trial.done, wagon.trial.total) == (1, 2)
    assert wagon.trial.checks == (CheckState.PENDING, CheckState.PASSED)
