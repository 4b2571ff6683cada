"""Runs git on one repository, in an environment of its own making, and turns its failures into trouble."""

import asyncio
import os
from asyncio.subprocess import Process
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from threading import Lock
from typing import Any

from mergeyard.ports.host import HostTrouble

PATIENCE = 30
"""Seconds. Reading refs takes milliseconds; a git that needs longer hangs."""
GRACE = 2
AT_ONCE = 16
THREADS = ThreadPoolExecutor(AT_ONCE, "plain-host")

SETTINGS = (
    "safe.directory=*",  # repositories often belong to another user than the service does
    "core.hooksPath=/dev/null",
    "core.warnAmbiguousRefs=false",
)


class GitFailed(HostTrouble):
    """Git would not do it; the words are its own."""


def environment() -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


async def git(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    """What git writes to standard output. A thread starts it and listens: an event loop would first copy all the
    memory of a busy server for it, and serve nobody meanwhile."""
    call = Call(command(folder, arguments), given)
    answer = asyncio.get_running_loop().run_in_executor(THREADS, call.perform)
    try:
        async with asyncio.timeout(PATIENCE):
            code, output, complaint = await asyncio.shield(answer)
    except TimeoutError:
        raise GitFailed(f"git {arguments[0]} in {folder} did not end within {PATIENCE} seconds") from None
    finally:
        if not answer.done():
            answer.add_done_callback(in_silence)
            call.end()
            await asyncio.wait({answer}, timeout=GRACE)
    if code:
        words = complaint.decode(errors="replace").strip() or f"exit code {code}"
        raise GitFailed(f"git {arguments[0]} in {folder}: {words}")
    return output


def in_silence(answer: asyncio.Future[Any]) -> None:
    """Nobody waits for it any more: that it did not begin, or was ended, is no news."""
    if not answer.cancelled():
        answer.exception()


class Call:
    """One git that answers and ends, or that nobody waits for any more."""

    def __init__(self, command: Sequence[str], given: bytes) -> None:
        self._command = command
        self._given = given
        self._process: Popen[bytes] | None = None
        self._unwanted = False
        self._starting = Lock()

    def perform(self) -> tuple[int, bytes, bytes]:
        with self._starting:
            if self._unwanted:
                raise GitFailed("git is not wanted any more")
            self._process = self._start()
        output, complaint = self._process.communicate(self._given)
        return self._process.returncode, output, complaint

    def _start(self) -> Popen[bytes]:
        try:
            return Popen(self._command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment(), cwd="/")
        except OSError as trouble:
            raise GitFailed(f"git cannot be started: {trouble}") from trouble

    def end(self) -> None:
        with self._starting:
            self._unwanted = True
            if self._process is not None:
                self._process.kill()


async def started(folder: Path, *arguments: str) -> Process:
    """One that lives on, to be asked again and again."""
    try:
        return await asyncio.create_subprocess_exec(
            *command(folder, arguments), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment(), cwd="/"
        )
    except OSError as trouble:
        raise GitFailed(f"git cannot be started: {trouble}") from trouble


def command(folder: Path, arguments: Sequence[str]) -> list[str]:
    settings = (word for setting in SETTINGS for word in ("-c", setting))
    return ["git", *settings, f"--git-dir={folder}", *arguments]


async def killed(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
