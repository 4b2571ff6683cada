"""Encoded impacted targets are decoded only where their names are needed, and not if equal ones are known."""

import gc

import msgspec
import pytest
from msgspec.structs import replace

from mergeyard.domain.pull_requests import ALL_TARGETS, NO_TARGETS, ImpactedTargets, impacted_targets_from_names
from mergeyard.service.impacted_targets import (
    MAX_INLINE_DECODE_BYTES,
    NAMES_PER_LINE,
    decode_targets,
    decode_targets_in_thread,
    encode_targets,
    free_targets_in_thread,
    has_only_names,
    to_encoded_targets,
)
from tests.support.asynchronous import asynchronous


def many(extra: str = "x") -> ImpactedTargets:
    return ImpactedTargets(frozenset({extra, *(f"//area/{number}" for number in range(2 * NAMES_PER_LINE))}))


def test_encoded_targets_know_their_count():
    assert [
        to_encoded_targets(targets).count
        for targets in (ALL_TARGETS, NO_TARGETS, impacted_targets_from_names("a", "b"))
    ] == [None, 0, 2]


@asynchronous
async def test_decoded_targets_are_not_decoded_again():
    uploaded = to_encoded_targets(many())
    assert await uploaded.decode(many()) is uploaded


@asynchronous
async def test_targets_that_differ_from_the_known_ones_are_decoded():
    for known in (None, ALL_TARGETS, NO_TARGETS, many("y"), impacted_targets_from_names(*many().names, "y")):
        assert (
            await replace(to_encoded_targets(many()), impacted_targets=None).decode(known)
        ).impacted_targets == many()


@asynchronous
async def test_targets_equal_to_the_known_ones_reuse_their_object():
    known = many()
    assert (await replace(to_encoded_targets(many()), impacted_targets=None).decode(known)).impacted_targets is known


ODD = ('a",\n"b', ",", '"', "\\", "\n", "],", "é", "\u2028")
LONG = ImpactedTargets(frozenset({*ODD, *(f'//area/"{number}"' for number in range(5 * NAMES_PER_LINE))}))


@pytest.mark.parametrize(
    "targets", [ALL_TARGETS, NO_TARGETS, impacted_targets_from_names("a", "b"), impacted_targets_from_names(*ODD), LONG]
)
@asynchronous
async def test_encoding_and_decoding_gives_the_same_targets(targets: ImpactedTargets):
    assert decode_targets(encode_targets(targets)) == await decode_targets_in_thread(encode_targets(targets)) == targets


def test_a_long_list_is_encoded_in_lines_that_together_are_json():
    body = encode_targets(LONG)
    assert len(body) > MAX_INLINE_DECODE_BYTES
    assert len(body.splitlines()) == len(LONG.names) // NAMES_PER_LINE + 1
    assert msgspec.json.decode(body, type=ImpactedTargets) == LONG


def test_a_long_list_in_one_line_is_decoded_too():
    assert decode_targets(msgspec.json.encode(LONG)) == LONG


def test_has_only_names_compares_the_whole_list():
    assert has_only_names(encode_targets(LONG), LONG.names)
    assert not has_only_names(encode_targets(LONG), LONG.names - {","})


@asynchronous
async def test_freeing_a_long_list_removes_it_from_the_caller_and_from_memory():
    held = [ImpactedTargets(frozenset(f"//{number}" for number in range(2 * NAMES_PER_LINE)))]
    await free_targets_in_thread(held)
    assert held == []
    assert not [each for each in gc.get_objects() if isinstance(each, frozenset) and "//1999" in each]


@asynchronous
async def test_a_short_list_is_not_freed_in_a_thread():
    held = [impacted_targets_from_names("a")]
    await free_targets_in_thread(held)
    assert held == [impacted_targets_from_names("a")]
