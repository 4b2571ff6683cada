"""Runs git in one repository with a fixed environment, and raises its failures as `HostUnavailable`."""

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

from mergeyard.ports.forge import HostUnavailable

TIMEOUT_S = 30
"""Reading refs takes milliseconds; a git that needs longer hangs."""
KILL_TIMEOUT_S = 2
MAX_CONCURRENT_PROCESSES = 16
MAX_OUTPUT_BYTES = 256 * 1024 * 1024
"""The largest output is the list of all refs."""
MAX_STDERR_BYTES = 2000
CHUNK_BYTES = 64 * 1024
THREAD_POOL = ThreadPoolExecutor(MAX_CONCURRENT_PROCESSES, "plain-host")

SETTINGS = (
    "safe.directory=*",  # the repositories often belong to another user than the server
    "core.hooksPath=/dev/null",
    "core.warnAmbiguousRefs=false",
)


class GitFailed(HostUnavailable):
    """git failed; the message is git's."""


def build_environment() -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


async def run_git(folder: Path, *arguments: str, stdin: bytes = b"", max_bytes: int = MAX_OUTPUT_BYTES) -> bytes:
    """Returns stdout. A thread starts the process, because the event loop would block while it forks a large server
    process."""
    process = GitProcess(build_command(folder, arguments), stdin, max_bytes)
    result = asyncio.get_running_loop().run_in_executor(THREAD_POOL, process.run)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            code, stdout, stderr = await asyncio.shield(result)
    except TimeoutError:
        raise GitFailed(f"git {arguments[0]} in {folder} did not finish within {TIMEOUT_S} seconds") from None
    finally:
        if not result.done():
            result.add_done_callback(ignore_exception)
            process.kill()
            await asyncio.wait({result}, timeout=KILL_TIMEOUT_S)
    if code:
        detail = stderr.decode(errors="replace").strip() or f"exit code {code}"
        raise GitFailed(f"git {arguments[0]} in {folder}: {detail}")
    return stdout


def ignore_exception(result: asyncio.Future[Any]) -> None:
    """Retrieves the exception, so that asyncio does not log it: the caller is gone."""
    if not result.cancelled():
        result.exception()


class GitProcess:
    """A git process that runs to its end or is killed."""

    def __init__(self, command: Sequence[str], stdin: bytes, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._command = command
        self._stdin = stdin
        self._process: Popen[bytes] | None = None
        self._is_cancelled = False
        self._starting = Lock()

    def run(self) -> tuple[int, bytes, bytes]:
        with open_scratch_file() as stderr:
            with self._starting:
                if self._is_cancelled:
                    raise GitFailed("git was cancelled before it started")
                self._process = self._start(stderr)
            with self._process:
                stdout = self._read_stdout(self._process)
                code = self._process.wait()
                stderr.seek(0)
                return code, stdout, stderr.read(MAX_STDERR_BYTES)

    def _read_stdout(self, process: Popen[bytes]) -> bytes:
        assert process.stdout
        output = bytearray()
        while chunk := process.stdout.read(CHUNK_BYTES):
            output += chunk
            if len(output) > self._max_bytes:
                process.kill()
                raise GitFailed(f"the output of git exceeds {self._max_bytes} bytes: {' '.join(self._command)[-80:]}")
        return bytes(output)

    def _start(self, stderr: IO[bytes]) -> Popen[bytes]:
        """stdin and stderr are files, so that only one pipe has to be read."""
        try:
            with open_scratch_file() as stdin:
                stdin.write(self._stdin)
                stdin.seek(0)
                return Popen(self._command, stdin=stdin, stdout=PIPE, stderr=stderr, env=build_environment(), cwd="/")
        except OSError as error:
            raise GitFailed(f"git cannot be started: {error}") from error

    def kill(self) -> None:
        with self._starting:
            self._is_cancelled = True
            if self._process is not None:
                self._process.kill()


def open_scratch_file() -> IO[bytes]:
    """An anonymous file, in memory on Linux."""
    return open(os.memfd_create("git"), "w+b") if sys.platform == "linux" else TemporaryFile()


async def start_git(folder: Path, *arguments: str) -> Process:
    """A long-lived process that the caller writes to."""
    try:
        return await asyncio.create_subprocess_exec(
            *build_command(folder, arguments), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=build_environment(), cwd="/"
        )
    except OSError as error:
        raise GitFailed(f"git cannot be started: {error}") from error


def build_command(folder: Path, arguments: Sequence[str]) -> list[str]:
    settings = (word for setting in SETTINGS for word in ("-c", setting))
    return ["git", *settings, f"--git-dir={folder}", *arguments]


async def kill_and_wait(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
