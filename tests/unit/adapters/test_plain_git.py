"""A git that nobody waits for any more ends in silence."""

import asyncio
import gc
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from mergeyard.adapters.host_plain.process import AT_ONCE, THREADS, GitFailed, git
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_a_git_that_is_called_off_before_it_began_is_no_news(tmp_path: Path):
    complaints = list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, complaint: complaints.append(complaint))
    others_are_done = Event()
    for _ in range(AT_ONCE):
        THREADS.submit(others_are_done.wait)
    asking = asyncio.ensure_future(git(tmp_path, "version"))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.sleep(0)
    others_are_done.set()
    await asyncio.wait({asking})
    assert asking.cancelled()
    del asking
    gc.collect()
    assert complaints == []


@asynchronous
async def test_a_git_that_has_too_much_to_say_is_ended(tmp_path: Path):
    with pytest.raises(GitFailed, match="more to say than 1000 bytes"):
        await git(tmp_path, "stripspace", given=b"a line of text\n" * 200_000, max_bytes=1000)
    assert await git(tmp_path, "stripspace", given=b"a line of text\n") == b"a line of text\n"
