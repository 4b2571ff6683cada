"""Impacted targets are encoded and decoded without loss, and long lists are freed in a thread."""

import gc

import pytest

from mergeyard.domain.pull_requests import ALL_TARGETS, NO_TARGETS, ImpactedTargets, impacted_targets_from_names
from mergeyard.service.impacted_targets import (
    CHUNK_SIZE,
    MAX_INLINE_DECODE_BYTES,
    collect_names,
    decode_targets,
    decode_targets_in_thread,
    encode_targets,
    free_targets_in_thread,
)
from tests.support.asynchronous import asynchronous

ODD = ('a",\n"b', ",", '"', "\\", "\n", "],", "é", "\u2028")
LONG = ImpactedTargets(frozenset({*ODD, *(f'//area/"{number}"' for number in range(5 * CHUNK_SIZE))}))


@pytest.mark.parametrize(
    "targets", [ALL_TARGETS, NO_TARGETS, impacted_targets_from_names("a", "b"), impacted_targets_from_names(*ODD), LONG]
)
@asynchronous
async def test_encoding_and_decoding_gives_the_same_targets(targets: ImpactedTargets):
    assert decode_targets(encode_targets(targets)) == await decode_targets_in_thread(encode_targets(targets)) == targets


def test_the_long_list_is_long_enough_to_be_decoded_in_a_thread():
    assert len(encode_targets(LONG)) > MAX_INLINE_DECODE_BYTES


def test_names_are_collected_once_and_without_the_empty_one():
    names = [f"//{number}" for number in range(2 * CHUNK_SIZE)]
    assert collect_names([*names, "", *names]) == frozenset(names)


@asynchronous
async def test_freeing_a_long_list_removes_it_from_the_caller_and_from_memory():
    held = [ImpactedTargets(frozenset(f"//{number}" for number in range(2 * CHUNK_SIZE)))]
    await free_targets_in_thread(held)
    assert held == []
    assert not [each for each in gc.get_objects() if isinstance(each, frozenset) and "//1999" in each]


@asynchronous
async def test_a_short_list_is_not_freed_in_a_thread():
    held = [impacted_targets_from_names("a")]
    await free_targets_in_thread(held)
    assert held == [impacted_targets_from_names("a")]
