"""Cursors are decoded to their entry, and do not show how many entries there are."""

from itertools import pairwise

import pytest

from mergeyard.domain.ids import QueueId
from mergeyard.service.webhooks.dispatch import SEQ_BITS, decode_cursor, encode_cursor

QUEUE, OTHER = QueueId("9d3c1d1e-6a54-4d0e-9a0e-0f6f5f0c7c11"), QueueId("0b0f3f7e-7a0d-4d2b-8c1c-5e1f0a6f2a22")


@pytest.mark.parametrize("seq", [1, 2, 3, 1000, 2**31, (1 << SEQ_BITS) - 1])
def test_a_cursor_is_decoded_to_its_entry_and_has_at_most_18_digits(seq: int):
    cursor = encode_cursor(QUEUE, seq)
    assert decode_cursor(QUEUE, cursor) == seq
    assert 0 < cursor < 10**18


def test_cursors_of_consecutive_entries_are_far_apart():
    cursors = [encode_cursor(QUEUE, seq) for seq in range(1, 1000)]
    assert len(set(cursors)) == len(cursors)
    assert cursors != sorted(cursors)
    assert min(abs(one - other) for one, other in pairwise(cursors)) > 1000


def test_a_cursor_of_another_queue_means_the_beginning():
    assert [decode_cursor(OTHER, encode_cursor(QUEUE, seq)) for seq in range(1, 200)] == [0] * 199


@pytest.mark.parametrize("number", [0, -1, 1, 999_999, 1 << 58, 10**18])
def test_an_invalid_cursor_means_the_beginning(number: int):
    assert decode_cursor(QUEUE, number) == 0
