"""Runs git on one repository, in an environment of its own making, and turns its failures into trouble."""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any

from mergeyard.ports.host import HostTrouble

PATIENCE = 30
"""Seconds. Reading refs takes milliseconds; a git that needs longer hangs."""
GRACE = 2
AT_ONCE = 16
MAX_OUTPUT_BYTES = 256 * 1024 * 1024
"""Of one answer: the longest is a list of all refs."""
MAX_COMPLAINT_BYTES = 2000
CHUNK_BYTES = 64 * 1024
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


async def git(folder: Path, *arguments: str, given: bytes = b"", max_bytes: int = MAX_OUTPUT_BYTES) -> bytes:
    """What git writes to standard output. A thread starts it and listens: an event loop would first copy all the
    memory of a busy server for it, and serve nobody meanwhile."""
    call = Call(command(folder, arguments), given, max_bytes)
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

    def __init__(self, command: Sequence[str], given: bytes, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._command = command
        self._given = given
        self._process: Popen[bytes] | None = None
        self._unwanted = False
        self._starting = Lock()

    def perform(self) -> tuple[int, bytes, bytes]:
        with scratch() as complaint:
            with self._starting:
                if self._unwanted:
                    raise GitFailed("git is not wanted any more")
                self._process = self._start(complaint)
            with self._process:
                output = self._read(self._process)
                code = self._process.wait()
                complaint.seek(0)
                return code, output, complaint.read(MAX_COMPLAINT_BYTES)

    def _read(self, process: Popen[bytes]) -> bytes:
        assert process.stdout
        output = bytearray()
        while chunk := process.stdout.read(CHUNK_BYTES):
            output += chunk
            if len(output) > self._max_bytes:
                process.kill()
                raise GitFailed(f"git has more to say than {self._max_bytes} bytes: {' '.join(self._command)[-80:]}")
        return bytes(output)

    def _start(self, complaint: IO[bytes]) -> Popen[bytes]:
        """Files take what goes in and what it complains about, so that only one pipe has to be read."""
        try:
            with scratch() as given:
                given.write(self._given)
                given.seek(0)
                return Popen(self._command, stdin=given, stdout=PIPE, stderr=complaint, env=environment(), cwd="/")
        except OSError as trouble:
            raise GitFailed(f"git cannot be started: {trouble}") from trouble

    def end(self) -> None:
        with self._starting:
            self._unwanted = True
            if self._process is not None:
                self._process.kill()


def scratch() -> IO[bytes]:
    """A file without a name, in memory where the system has that."""
    return open(os.memfd_create("git"), "w+b") if sys.platform == "linux" else TemporaryFile()


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
