"""A sorted map is an immutable dictionary whose keys are in order."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mergeyard.domain.sorted_map import MAX_CHUNK_SIZE, SortedMap

Change = tuple[int, str | None]
"""A key with its new value, or with None to be dropped."""

EMPTY: SortedMap[int, str] = SortedMap()
MANY = {key: str(key) for key in range(0, 3 * MAX_CHUNK_SIZE, 2)}
"""More than one chunk's worth, with a gap after every key."""


def changed(before: SortedMap[int, str], changes: list[Change]) -> SortedMap[int, str]:
    for key, value in changes:
        before = before.drop(key) if value is None else before.put(key, value)
    return before


def model(before: dict[int, str], changes: list[Change]) -> dict[int, str]:
    after = dict(before)
    for key, value in changes:
        if value is None:
            after.pop(key, None)
        else:
            after[key] = value
    return dict(sorted(after.items()))


MAP_OF_MANY = changed(EMPTY, list(MANY.items()))

KEYS = st.integers(min_value=-5, max_value=3 * MAX_CHUNK_SIZE + 5)
VALUES = st.none() | st.sampled_from("abc")
FEW_CHANGES = st.lists(st.tuples(st.integers(0, 9), VALUES), max_size=30)
MANY_CHANGES = st.lists(st.tuples(KEYS, VALUES), max_size=40)

modestly = settings(deadline=None, max_examples=60, derandomize=True)


@modestly
@given(FEW_CHANGES)
def test_a_small_map_holds_what_a_dictionary_would(changes: list[Change]):
    after = changed(EMPTY, changes)
    assert list(zip(after, after.values(), strict=True)) == list(model({}, changes).items())


@modestly
@given(MANY_CHANGES)
def test_a_large_map_holds_what_a_dictionary_would(changes: list[Change]):
    after = changed(MAP_OF_MANY, changes)
    assert list(zip(after, after.values(), strict=True)) == list(model(MANY, changes).items())


@modestly
@given(MANY_CHANGES)
def test_its_length_is_the_number_of_its_keys(changes: list[Change]):
    assert len(changed(MAP_OF_MANY, changes)) == len(model(MANY, changes))


@modestly
@given(MANY_CHANGES, KEYS)
def test_a_key_is_found_exactly_if_it_was_put_and_not_dropped(changes: list[Change], key: int):
    after, expected = changed(MAP_OF_MANY, changes), model(MANY, changes)
    assert (key in after, after.get(key)) == (key in expected, expected.get(key))


@modestly
@given(MANY_CHANGES, KEYS)
def test_a_rank_counts_the_keys_before(changes: list[Change], key: int):
    assert changed(MAP_OF_MANY, changes).rank(key) == sum(other < key for other in model(MANY, changes))


@modestly
@given(MANY_CHANGES, st.integers(min_value=0, max_value=MAX_CHUNK_SIZE))
def test_the_nth_key_is_the_one_of_that_rank(changes: list[Change], place: int):
    assert changed(MAP_OF_MANY, changes).nth(place) == list(model(MANY, changes))[place]


def test_the_nth_key_is_found_also_at_the_beginning_of_a_chunk():
    first = len(MAP_OF_MANY.chunks[0].keys)
    assert MAP_OF_MANY.nth(first) == list(MANY)[first]


@modestly
@given(FEW_CHANGES)
def test_the_first_key_is_the_smallest(changes: list[Change]):
    assert changed(EMPTY, changes).first() == min(model({}, changes), default=None)


@modestly
@given(MANY_CHANGES)
def test_a_change_leaves_the_map_before_it_as_it_was(changes: list[Change]):
    changed(MAP_OF_MANY, changes)
    assert dict(zip(MAP_OF_MANY, MAP_OF_MANY.values(), strict=True)) == MANY


def test_what_is_put_can_be_read():
    assert EMPTY.put(3, "three")[3] == "three"


def test_a_missing_key_cannot_be_read():
    with pytest.raises(KeyError):
        EMPTY.put(3, "three")[4]


def test_there_is_no_key_beyond_the_last():
    with pytest.raises(IndexError):
        EMPTY.put(3, "three").nth(1)


def test_dropping_a_missing_key_gives_the_same_map():
    assert MAP_OF_MANY.drop(1) is MAP_OF_MANY


def test_an_empty_map_is_false():
    assert not EMPTY.put(3, "three").drop(3)


def test_no_chunk_grows_beyond_the_full_size():
    assert max(len(chunk.keys) for chunk in MAP_OF_MANY.chunks) <= MAX_CHUNK_SIZE


@pytest.mark.parametrize("after", [MAP_OF_MANY.put(0, "new"), MAP_OF_MANY.drop(0)])
def test_a_change_shares_all_other_chunks_with_the_map_before(after: SortedMap[int, str]):
    assert all(mine is theirs for mine, theirs in zip(after.chunks[1:], MAP_OF_MANY.chunks[1:], strict=True))


def test_what_comes_in_order_fills_every_chunk_but_the_last():
    assert [len(chunk.keys) for chunk in MAP_OF_MANY.chunks] == [MAX_CHUNK_SIZE, len(MANY) - MAX_CHUNK_SIZE]


@modestly
@given(MANY_CHANGES)
def test_two_maps_differ_only_where_they_share_no_chunk(changes: list[Change]):
    after = changed(MAP_OF_MANY, changes)
    differing = MAP_OF_MANY.entries_not_shared_with(after), after.entries_not_shared_with(MAP_OF_MANY)
    assert dict(differing[0].items() - differing[1].items()) == dict(MANY.items() - model(MANY, changes).items())
    assert dict(differing[1].items() - differing[0].items()) == dict(model(MANY, changes).items() - MANY.items())


def test_shared_chunks_are_not_compared():
    assert max(MAP_OF_MANY.put(0, "new").entries_not_shared_with(MAP_OF_MANY)) == MAP_OF_MANY.last_keys[0]
