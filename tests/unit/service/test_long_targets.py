"""Targets are stored alike, however many there are."""

import pytest

from mergeyard.domain.targets import ALL, NOTHING, Targets
from mergeyard.service.long_targets import TOGETHER, at_hand, encoded, encoded_aside
from mergeyard.service.shelving import decode_targets
from tests.support.asynchronous import asynchronous

LONG = Targets(frozenset(f'//area/"{number}"' for number in range(2 * TOGETHER + 1)))


@pytest.mark.parametrize("targets", [ALL, NOTHING, Targets(frozenset({"a", "b"})), LONG])
@asynchronous
async def test_what_is_encoded_is_read_again_as_it_was(targets: Targets):
    assert decode_targets(encoded(targets)) == decode_targets(await encoded_aside(targets)) == targets


def test_what_is_at_hand_is_not_encoded_again():
    body = encoded(LONG)
    with at_hand(LONG, body):
        assert encoded(LONG) is body
    assert encoded(LONG) is not body
