"""Targets are stored and read alike, however many there are."""

import gc

import msgspec
import pytest

from mergeyard.domain.targets import ALL, NOTHING, Targets, named
from mergeyard.service.long_targets import FEW_BYTES, TOGETHER, decoded, decoded_aside, encoded, free_aside, is_within
from tests.support.asynchronous import asynchronous

ODD = ('a",\n"b', ",", '"', "\\", "\n", "],", "é", "\u2028")
LONG = Targets(frozenset({*ODD, *(f'//area/"{number}"' for number in range(5 * TOGETHER))}))


@pytest.mark.parametrize("targets", [ALL, NOTHING, named("a", "b"), named(*ODD), LONG])
@asynchronous
async def test_what_is_encoded_is_read_again_as_it_was(targets: Targets):
    assert decoded(encoded(targets)) == await decoded_aside(encoded(targets)) == targets


def test_a_long_list_is_written_in_lines_that_are_json_all_together():
    body = encoded(LONG)
    assert len(body) > FEW_BYTES
    assert len(body.splitlines()) == len(LONG.names) // TOGETHER + 1
    assert msgspec.json.decode(body, type=Targets) == LONG


def test_a_long_list_that_was_stored_in_one_line_is_read_too():
    assert decoded(msgspec.json.encode(LONG)) == LONG


def test_a_list_is_within_names_only_if_all_of_it_is():
    assert is_within(encoded(LONG), LONG.names)
    assert not is_within(encoded(LONG), LONG.names - {","})


@asynchronous
async def test_what_is_freed_is_taken_from_whoever_asked_for_it():
    holds = [Targets(frozenset(f"//{number}" for number in range(2 * TOGETHER)))]
    await free_aside(holds)
    assert holds == []
    assert not [each for each in gc.get_objects() if isinstance(each, frozenset) and "//1999" in each]


@asynchronous
async def test_a_short_list_is_left_to_python():
    holds = [named("a")]
    await free_aside(holds)
    assert holds == [named("a")]
