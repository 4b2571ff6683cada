"""Git processes of plain Git hosts end when they are cancelled or print too much; listings are compared."""

import asyncio
import gc
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeyard.adapters.host_plain.process import MAX_CONCURRENT_PROCESSES, THREAD_POOL, GitFailed, run_git
from mergeyard.adapters.host_plain.pull_requests import find_differing_lines
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_a_git_command_that_is_cancelled_before_it_started_reports_no_error(tmp_path: Path):
    errors = list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))
    other_processes_done = Event()
    for _ in range(MAX_CONCURRENT_PROCESSES):
        THREAD_POOL.submit(other_processes_done.wait)
    command = asyncio.ensure_future(run_git(tmp_path, "version"))
    await asyncio.sleep(0)
    command.cancel()
    await asyncio.sleep(0)
    other_processes_done.set()
    await asyncio.wait({command})
    assert command.cancelled()
    del command
    gc.collect()
    assert errors == []


@asynchronous
async def test_a_git_that_has_too_much_to_say_is_ended(tmp_path: Path):
    with pytest.raises(GitFailed, match="exceeds 1000 bytes"):
        await run_git(tmp_path, "stripspace", stdin=b"a line of text\n" * 200_000, max_bytes=1000)
    assert await run_git(tmp_path, "stripspace", stdin=b"a line of text\n") == b"a line of text\n"


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
