"""Listings of refs are compared line by line, and failures of git are failures of the host."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeyard.adapters.host_plain.process import run_git
from mergeyard.adapters.host_plain.pull_requests import find_differing_lines
from mergeyard.ports.forge import HostUnavailable
from tests.support.asynchronous import asynchronous

LINES = st.lists(st.sampled_from([b"a", b"ab", b"b", b"ba"]), unique=True, max_size=4)


def join_lines(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def without_empty(lines: list[bytes]) -> list[bytes]:
    return [line for line in lines if line]


@given(LINES, LINES, LINES, LINES)
def test_removed_and_added_lines_between_equal_lines_are_found(
    ahead: list[bytes], old: list[bytes], new: list[bytes], behind: list[bytes]
):
    before, now = [*ahead, *old, *behind], [*ahead, *new, *behind]
    removed, added = map(without_empty, find_differing_lines(join_lines(before), join_lines(now)))
    positions = (at for at in range(len(before) + 1) if before[at : at + len(removed)] == removed)
    assert now in [[*before[:at], *added, *before[at + len(removed) :]] for at in positions]


def test_only_the_lines_between_the_first_and_last_difference_are_returned():
    many = [b"%d" % number for number in range(1000)]
    other = [*many[:500], b"one more", *many[500:600], *many[601:]]
    removed, added = find_differing_lines(join_lines(many), join_lines(other))
    assert (len(without_empty(removed)), len(without_empty(added))) == (101, 101)


def test_equal_lists_have_no_differing_lines():
    assert list(map(without_empty, find_differing_lines(b"a\nb\n", b"a\nb\n"))) == [[], []]


@asynchronous
async def test_a_git_that_prints_too_much_is_an_unavailable_host(tmp_path: Path):
    with pytest.raises(HostUnavailable, match=f"git stripspace in {tmp_path}: .*exceeds 1000 bytes"):
        await run_git(tmp_path, "stripspace", stdin=b"a line of text\n" * 200_000, max_bytes=1000)
    assert await run_git(tmp_path, "stripspace", stdin=b"a line of text\n") == b"a line of text\n"
