"""The lanes, columns and switches in which batches stand."""

from itertools import pairwise

from mergeyard.domain.ids import BatchId
from mergeyard.web.rails import PIECES, Spot, laid


def lanes(upon: dict[int, list[int]]) -> list[list[Spot]]:
    standing = {BatchId(batch): [BatchId(other) for other in others] for batch, others in upon.items()}
    return laid(list(standing), standing)


def places(yard: list[list[Spot]]) -> list[list[int | None]]:
    return [[spot.batch for spot in lane] for lane in yard]


def test_without_a_batch_there_is_no_lane():
    assert lanes({}) == []


def test_whoever_stands_upon_another_stands_behind_it_in_the_same_lane():
    yard = lanes({1: [], 2: [1], 3: [2]})
    assert places(yard) == [[1, 2, 3]]
    assert all(spot.lead and spot.rail and not spot.switches for spot in yard[0])


def test_those_who_stand_upon_nobody_have_a_lane_each_from_the_target():
    yard = lanes({1: [], 2: []})
    assert places(yard) == [[1], [2]]
    assert [lane[0].lead for lane in yard] == [True, True]


def test_a_second_one_upon_the_same_begins_a_lane_behind_a_switch():
    yard = lanes({1: [], 2: [1], 3: [1]})
    assert places(yard) == [[1, 2], [None, 3]]
    assert (yard[1][1].switches, yard[1][1].lead, yard[1][0].rail) == (("down",), False, False)


def test_a_switch_over_several_lanes_has_a_piece_in_each():
    yard = lanes({1: [], 2: [1], 3: [], 4: [], 5: [1]})
    assert [lane[1].switches for lane in yard] == [(), ("down-begins",), ("through",), ("down-ends",)]


def test_whoever_joins_two_lanes_goes_on_in_one_and_is_reached_from_the_other():
    yard = lanes({1: [], 2: [], 3: [1, 2]})
    assert places(yard) == [[1, 3], [2, None]]
    assert yard[0][1].lead
    assert yard[1][1].switches == ("up",)


def test_a_rail_runs_past_empty_places_to_the_column_of_its_switch():
    yard = lanes({1: [], 2: [1], 3: [], 4: [2, 3]})
    assert places(yard) == [[1, 2, 4], [3, None, None]]
    assert (yard[1][1].rail, yard[1][1].lead, yard[1][2].switches) == (True, True, ("up",))


def test_a_rail_whose_own_lane_is_taken_runs_along_the_other():
    yard = lanes({1: [], 2: [1], 3: [2], 4: [1, 2]})
    assert places(yard) == [[1, 2, 3], [None, None, 4]]
    assert (yard[1][1].switches, yard[1][1].rail, yard[1][1].lead) == (("down",), True, False)
    assert (yard[1][2].lead, yard[1][2].switches) == (True, ("down",))


def test_a_rail_for_which_both_lanes_are_taken_gets_a_lane_of_its_own():
    yard = lanes({1: [], 2: [1], 3: [], 4: [3], 5: [4, 1]})
    assert places(yard) == [[1, 2, None], [3, 4, 5], [None, None, None]]
    assert [spot.rail for spot in yard[2]] == [False, True, False]
    assert [lane[1].switches for lane in yard] == [(), ("down-begins",), ("down-ends",)]
    assert yard[2][2].switches == ("up",)


def test_every_batch_is_reached_by_a_rail():
    yard = lanes({1: [], 2: [1], 3: [], 4: [3, 1], 5: [2, 4], 6: [1], 7: [6, 3]})
    for lane, below in pairwise([*yard, [Spot() for _ in yard[0]]]):
        for spot, beneath in zip(lane, below, strict=True):
            from_above = {"down", "down-ends"}.intersection(spot.switches)
            from_below = {"up", "up-ends"}.intersection(beneath.switches)
            assert spot.batch is None or spot.lead or from_above or from_below


def test_every_piece_can_be_drawn():
    yard = lanes({1: [], 2: [], 3: [], 4: [1, 3], 5: [3], 6: [1]})
    drawn = [path for lane in yard for spot in lane for path in spot.paths]
    assert set(drawn) <= set(PIECES.values())
    assert len(drawn) == sum(len(spot.switches) for lane in yard for spot in lane) > 0
