"""No git process outlives the call that started it."""

import asyncio
import gc
import os
import select
from pathlib import Path
from typing import Any

import pytest

from mergeyard.adapters.git_cli.limits import SLOTS, Work
from mergeyard.adapters.git_cli.process import GitRunner
from mergeyard.ports.git import GitError, OutputTooLargeError
from tests.support.asynchronous import asynchronous

SLOT_COUNT = SLOTS[Work.LOOKUP]
LS_REMOTE = ("ls-remote", "ssh://nowhere/x")


def never_responding(pipe: Path) -> dict[str, str]:
    """A transport that writes its process id to the pipe and then never responds."""
    os.mkfifo(pipe)
    return {"GIT_SSH_COMMAND": f"exec 2>/dev/null; echo $$ > {pipe}; exec sleep 1000 #"}


async def the_process(pipe: Path) -> int:
    """A file descriptor that is readable once the process has ended."""
    return os.pidfd_open(int(await asyncio.to_thread(pipe.read_text)))


def ends(process: int) -> bool:
    readable, _, _ = select.select([process], [], [], 10)
    os.close(process)
    return bool(readable)


@asynchronous
async def test_a_call_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path):
    environment = never_responding(tmp_path / "pipe")
    call = asyncio.create_task(GitRunner().run(*LS_REMOTE, environment=environment, timeout_s=1))
    connection = await the_process(tmp_path / "pipe")
    with pytest.raises(GitError, match="did not finish within 1 seconds"):
        await call
    assert ends(connection)


@asynchronous
async def test_a_cancelled_call_is_ended_with_all_it_started(tmp_path: Path):
    call = asyncio.create_task(GitRunner().run(*LS_REMOTE, environment=never_responding(tmp_path / "pipe")))
    connection = await the_process(tmp_path / "pipe")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert ends(connection)


@asynchronous
async def test_a_call_that_is_cancelled_before_it_started_reports_no_error():
    errors = list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))
    runner = GitRunner()
    others = [asyncio.create_task(runner.run("version")) for _ in range(SLOT_COUNT)]
    calls = [asyncio.create_task(runner.run("version")) for _ in range(SLOT_COUNT)]
    await asyncio.sleep(0)
    for call in (*others[::2], *calls):
        call.cancel()
    await asyncio.wait({*others, *calls})
    assert all(call.cancelled() for call in calls)
    del others, calls
    gc.collect()
    assert errors == []


@asynchronous
async def test_calls_beyond_the_concurrency_limit_wait():
    processes = GitRunner()
    answers = await asyncio.gather(*(processes.run("version") for _ in range(3 * SLOT_COUNT)))
    assert {answer.exit_code for answer in answers} == {0}


@asynchronous
async def test_large_input_and_output_are_passed():
    text = b"a line of text\n" * 200_000
    answer = await GitRunner().run("stripspace", stdin=text)
    assert answer.stdout == text


@asynchronous
async def test_a_git_that_has_too_much_to_say_is_ended():
    text = b"a line of text\n" * 200_000
    with pytest.raises(OutputTooLargeError, match="exceeds 1000 bytes: stripspace"):
        await GitRunner().run("stripspace", stdin=text, max_bytes=1000)


@asynchronous
async def test_output_up_to_the_limit_is_accepted():
    text = b"a line of text\n" * 10_000
    answer = await GitRunner().run("stripspace", stdin=text, max_bytes=len(text))
    assert (answer.stdout, answer.is_complete) == (text, True)


@asynchronous
async def test_output_can_be_read_only_up_to_a_length():
    text = b"a line of text\n" * 200_000
    answer = await GitRunner().run("stripspace", stdin=text, max_bytes=1000, allow_truncated=True)
    assert (answer.stdout, answer.is_complete) == (text[:1000], False)
