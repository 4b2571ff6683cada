"""Runs git as a process: nothing inherited, nothing left running, only so many at once.

A call that takes too long, or that nobody waits for any more, is ended together with all that it started.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from threading import Lock
from typing import IO

from msgspec import Struct

from mergeyard.ports.git import GitTrouble, OutputTooLargeError

AT_ONCE = 8
SECONDS = 120.0
SECONDS_OVER_THE_NETWORK = 600.0
GRACE = 2.0
"""Seconds in which an ended git may remove its lock files, before it is killed."""
MAX_OUTPUT_BYTES = 64 * 1024 * 1024
"""Of one answer, unless a call names another limit: what a pull request brings decides how much git has to say."""
CHUNK_BYTES = 64 * 1024
WORDS = 2000
"""How many characters of its complaint are kept, from the end."""

INHERITED = (
    "PATH", "TMPDIR", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
)  # fmt: skip
OWN = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": str(Path(__file__).with_name("gitconfig")),
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "HOME": os.devnull,
    "LC_ALL": "C",
}


class Answer(Struct, frozen=True):
    code: int
    out: bytes
    words: str
    """What it complained about."""
    complete: bool = True
    """False: it had more to say than was allowed, was ended, and `out` is the beginning."""


class Processes:
    """Threads start git and listen to it: the event loops' own ways cost as much as a small merge itself."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._threads = ThreadPoolExecutor(AT_ONCE, "git")

    async def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        seconds: float = SECONDS,
        max_bytes: int = MAX_OUTPUT_BYTES,
        may_be_cut: bool = False,
    ) -> Answer:
        """With more than `max_bytes` to say, git is ended; that is an error unless the beginning is good enough."""
        answer = await self._answer(
            Call(arguments, stdin, surroundings() | dict(environment or {}), max_bytes), seconds
        )
        if not answer.complete and not may_be_cut:
            raise OutputTooLargeError(f"git has more to say than {max_bytes} bytes: {' '.join(arguments)[:80]}")
        return answer

    async def _answer(self, call: "Call", seconds: float) -> Answer:
        async with self._slots:
            answer = asyncio.get_running_loop().run_in_executor(self._threads, call.perform)
            try:
                async with asyncio.timeout(seconds):
                    return await asyncio.shield(answer)
            except TimeoutError as error:
                raise GitTrouble(f"git did not answer within {seconds:g} seconds and was ended: {call}") from error
            finally:
                await call.end(answer)


class Call:
    def __init__(self, arguments: Sequence[str], stdin: bytes, environment: Mapping[str, str], max_bytes: int) -> None:
        self._arguments = arguments
        self._stdin = stdin
        self._environment = environment
        self._max_bytes = max_bytes
        self._process: Popen[bytes] | None = None
        self._unwanted = False
        self._starting = Lock()

    def __str__(self) -> str:
        return " ".join(self._arguments)[:80]

    def perform(self) -> Answer:
        """One pipe alone can be read to its end: files take the rest, and nobody has to listen to several at once."""
        with scratch() as complaint:
            with self._starting:
                self._process = None if self._unwanted else self._start(complaint)
            if self._process is None:
                raise GitTrouble(f"not wanted any more: {self}")
            assert self._process.stdout
            with self._process.stdout as answer:
                out, complete = read_at_most(answer, self._max_bytes)
                if not complete:
                    self._kill()
            code = self._process.wait()
            words = last_words(complaint)
            words = words if words or not code else f"git ended with {code} and no words: {self}"
            return Answer(code, out, words, complete)

    def _kill(self) -> None:
        """Not by SIGTERM: a git that is blocked on the pipe that we do not read any more could take its time."""
        with suppress(ProcessLookupError):
            assert self._process
            os.killpg(self._process.pid, signal.SIGKILL)

    def _start(self, complaint: IO[bytes]) -> Popen[bytes]:
        """In a session of its own: no terminal to ask at, and one group to end."""
        command = ("git", *self._arguments)
        try:
            with scratch() as given:
                given.write(self._stdin)
                given.seek(0)
                return Popen(
                    command,
                    stdin=given if self._stdin else DEVNULL,
                    stdout=PIPE,
                    stderr=complaint,
                    env=self._environment,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            raise GitTrouble(f"git could not be started: {error}") from error

    async def end(self, answer: asyncio.Future[Answer]) -> None:
        """Politely first, for git removes its lock files when it is asked to end; then whoever is left is killed."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not answer.done():
                self._send(number)
                await asyncio.wait({answer}, timeout=GRACE)
        if answer.done() and not answer.cancelled():
            answer.exception()  # nobody waits for it any more, and that is no news

    def _send(self, number: signal.Signals) -> None:
        with self._starting, suppress(ProcessLookupError):
            self._unwanted = True
            if self._process:
                os.killpg(self._process.pid, number)


def scratch() -> IO[bytes]:
    """A file without a name, in memory where the system has that."""
    return open(os.memfd_create("git"), "w+b") if sys.platform == "linux" else TemporaryFile()


def read_at_most(source: IO[bytes], max_bytes: int) -> tuple[bytes, bool]:
    """What there is to read, and whether that was all."""
    chunks, left = list[bytes](), max_bytes
    while chunk := source.read(min(CHUNK_BYTES, left + 1)):
        if len(chunk) > left:
            return b"".join((*chunks, chunk[:left])), False
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks), True


def last_words(complaint: IO[bytes]) -> str:
    complaint.seek(max(0, complaint.seek(0, os.SEEK_END) - WORDS))
    return complaint.read().decode(errors="replace").strip()


def surroundings() -> dict[str, str]:
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | OWN
