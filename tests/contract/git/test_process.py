"""No git outlives the wish for it."""

import asyncio
import os
import select
from pathlib import Path

import pytest

from mergeyard.adapters.git_cli.process import AT_ONCE, Processes
from mergeyard.ports.git import GitTrouble, OutputTooLargeError
from tests.support.asynchronous import asynchronous

ASKING = ("ls-remote", "ssh://nowhere/x")


def never_answering(pipe: Path) -> dict[str, str]:
    """A connection that says through the pipe who it is, and then nothing more."""
    os.mkfifo(pipe)
    return {"GIT_SSH_COMMAND": f"exec 2>/dev/null; echo $$ > {pipe}; exec sleep 1000 #"}


async def the_process(pipe: Path) -> int:
    """A file that can be read from as soon as the process has ended."""
    return os.pidfd_open(int(await asyncio.to_thread(pipe.read_text)))


def ends(process: int) -> bool:
    readable, _, _ = select.select([process], [], [], 10)
    os.close(process)
    return bool(readable)


@asynchronous
async def test_a_call_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path):
    environment = never_answering(tmp_path / "pipe")
    call = asyncio.create_task(Processes().run(*ASKING, environment=environment, seconds=1))
    connection = await the_process(tmp_path / "pipe")
    with pytest.raises(GitTrouble, match="did not answer within 1 seconds"):
        await call
    assert ends(connection)


@asynchronous
async def test_a_call_that_nobody_waits_for_is_ended_with_all_it_started(tmp_path: Path):
    call = asyncio.create_task(Processes().run(*ASKING, environment=never_answering(tmp_path / "pipe")))
    connection = await the_process(tmp_path / "pipe")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert ends(connection)


@asynchronous
async def test_more_calls_than_may_run_at_once_wait_for_each_other():
    processes = Processes()
    answers = await asyncio.gather(*(processes.run("version") for _ in range(3 * AT_ONCE)))
    assert {answer.code for answer in answers} == {0}


@asynchronous
async def test_much_goes_in_and_out():
    text = b"a line of text\n" * 200_000
    answer = await Processes().run("stripspace", stdin=text)
    assert answer.out == text


@asynchronous
async def test_a_git_that_has_too_much_to_say_is_ended():
    text = b"a line of text\n" * 200_000
    with pytest.raises(OutputTooLargeError, match="more to say than 1000 bytes: stripspace"):
        await Processes().run("stripspace", stdin=text, max_bytes=1000)


@asynchronous
async def test_as_much_as_is_allowed_is_not_too_much():
    text = b"a line of text\n" * 10_000
    answer = await Processes().run("stripspace", stdin=text, max_bytes=len(text))
    assert (answer.out, answer.complete) == (text, True)


@asynchronous
async def test_the_beginning_of_an_answer_can_be_enough():
    text = b"a line of text\n" * 200_000
    answer = await Processes().run("stripspace", stdin=text, max_bytes=1000, may_be_cut=True)
    assert (answer.out, answer.complete) == (text[:1000], False)
