"""Looks up what names stand for, through one git process that lives long and resolves every name anew."""

import asyncio
from asyncio import Future, IncompleteReadError, Queue
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from mergeyard.adapters.host_plain.process import GitFailed, killed, started
from mergeyard.domain.ids import Sha

PATIENCE = 10
"""Seconds without an answer, after which git is taken to hang."""
GRACE = 2
SMALL, MOST_REMEMBERED = 1024, 2000
"""Bytes of an object that is worth remembering, and how many of them."""
Answer = TypeVar("Answer")


class ReaderEnded(GitFailed):
    """The process is gone, or hangs; another one may do better."""


class Found(NamedTuple):
    sha: Sha
    kind: str
    size: int


class Question(NamedTuple):
    take_answer: Callable[[], Awaitable[Any]]
    answer: Future[Any]


class ObjectReader:
    """Many may ask at once: questions are written as they come, and git answers in that order."""

    def __init__(self, folder: Path, process: Process) -> None:
        assert process.stdin
        assert process.stdout
        self.is_open = True
        self._folder = folder
        self._process = process
        self._to_git = process.stdin
        self._from_git = process.stdout
        self._unsent: list[str] = []
        self._questions = Queue[Question | None]()
        self._small: dict[Sha, bytes] = {}
        self._answering = asyncio.create_task(self._answer_all())

    @classmethod
    async def of(cls, folder: Path) -> Self:
        return cls(folder, await started(folder, "cat-file", "--batch-command", "--buffer"))

    async def look(self, *names: str) -> list[Found | None]:
        """None: the name stands for nothing, or for an object that is not there."""

        async def found() -> list[Found | None]:
            return [await self._header() for _ in names]

        return await self._ask("".join(f"info {name}\n" for name in names), found)

    async def read(self, sha: Sha) -> bytes | None:
        """An object never changes: a small one is read once."""

        async def content() -> bytes | None:
            header = await self._header()
            return header and (await self._from_git.readexactly(header.size + 1))[:-1]

        known = self._small.get(sha)
        return self._remembered(sha, await self._ask(f"contents {sha}\n", content)) if known is None else known

    def _remembered(self, sha: Sha, content: bytes | None) -> bytes | None:
        if content is not None and len(content) <= SMALL:
            if len(self._small) == MOST_REMEMBERED:
                self._small.clear()
            self._small[sha] = content
        return content

    async def close(self) -> None:
        """What was asked before is still answered."""
        self.is_open = False
        self._send()
        self._to_git.close()
        self._questions.put_nowait(None)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._answering), GRACE)
            await asyncio.wait_for(self._process.wait(), GRACE)
        await killed(self._process)
        await self._answering

    async def _ask(self, words: str, take_answer: Callable[[], Awaitable[Answer]]) -> Answer:
        if not self.is_open:
            raise self._ended()
        loop = asyncio.get_running_loop()
        answer: Future[Answer] = loop.create_future()
        self._questions.put_nowait(Question(take_answer, answer))
        if not self._unsent:
            loop.call_soon(self._send)
        self._unsent.append(words)
        hanging = loop.call_later(PATIENCE, self._kill)
        try:
            return await answer
        finally:
            hanging.cancel()

    def _kill(self) -> None:
        """Nothing comes from it then, and all who wait are told so. A timer is a tenth of what a timeout costs."""
        with suppress(ProcessLookupError):
            self._process.kill()

    def _send(self) -> None:
        """What was asked in the same turn of the loop goes out together: waking git is what costs most."""
        if not self._unsent:
            return
        words = "".join([*self._unsent, "flush\n"])
        self._unsent.clear()
        with suppress(RuntimeError):  # uvloop's way to say that git is gone; reading will find that out
            self._to_git.write(words.encode())

    async def _answer_all(self) -> None:
        # A question whose asker has gone is answered all the same: the next answer stands behind it.
        unanswered: Question | None = None
        with suppress(IncompleteReadError, ConnectionError, ValueError):
            while unanswered := await self._questions.get():
                answer = await unanswered.take_answer()
                if not unanswered.answer.done():
                    unanswered.answer.set_result(answer)
        self.is_open = False
        while unanswered or not self._questions.empty():
            if unanswered and not unanswered.answer.done():
                unanswered.answer.set_exception(self._ended())
            unanswered = None if self._questions.empty() else self._questions.get_nowait()

    async def _header(self) -> Found | None:
        line = (await self._from_git.readuntil()).decode()
        if line.endswith(" missing\n"):
            return None
        sha, kind, size = line.split()
        return Found(Sha(sha), kind, int(size))

    def _ended(self) -> ReaderEnded:
        return ReaderEnded(f"git ended while it read {self._folder}")
