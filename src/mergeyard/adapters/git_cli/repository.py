"""A bare repository on disk that answers questions, and says when it lacks what was asked about."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from mergeyard.adapters.git_cli.damage import speaks_of_damage, speaks_of_leftovers
from mergeyard.adapters.git_cli.process import MAX_OUTPUT_BYTES, SECONDS, Answer, Processes
from mergeyard.ports.git import GitTrouble, MissingObject

OBJECTS = re.compile(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")


class Repository:
    def __init__(self, path: Path, processes: Processes) -> None:
        self.path = path
        self.complaint = ""
        """What git said last about this repository itself; nothing while all is well."""
        self._processes = processes
        self._head = os.path.join(path, "HEAD")

    @property
    def sound(self) -> bool:
        """As far as anybody noticed."""
        return not self.complaint and self.has_head

    @property
    def has_head(self) -> bool:
        """The file that every repository has."""
        return os.path.exists(self._head)

    async def call(
        self,
        *arguments: str,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        seconds: float = SECONDS,
        max_bytes: int = MAX_OUTPUT_BYTES,
        may_be_cut: bool = False,
    ) -> Answer:
        """Whatever git answers, also with a failure."""
        return await self._processes.run(
            f"--git-dir={self.path}",
            *arguments,
            stdin=stdin,
            environment=environment,
            seconds=seconds,
            max_bytes=max_bytes,
            may_be_cut=may_be_cut,
        )

    async def ask(
        self,
        *arguments: str,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        seconds: float = SECONDS,
        max_bytes: int = MAX_OUTPUT_BYTES,
    ) -> bytes:
        """What git answers; a failure is trouble."""
        answer = await self.call(*arguments, stdin=stdin, environment=environment, seconds=seconds, max_bytes=max_bytes)
        if answer.code != 0:
            asked = " ".join((*arguments, stdin.decode(errors="replace")))
            raise await self.trouble(answer, OBJECTS.findall(asked))
        return answer.out

    async def trouble(self, answer: Answer, objects: Iterable[str]) -> GitTrouble:
        """Git says in many ways that an object is missing, so the objects are looked for instead."""
        missing = await self.missing(objects)
        if missing:
            return MissingObject(f"{self.path.name} lacks {', '.join(missing)}")
        self._heed(answer.words)
        return GitTrouble(answer.words)

    async def missing(self, objects: Iterable[str]) -> list[str]:
        """Those that it surely lacks: a git that could not look says nothing."""
        names = "".join(f"{name}\n" for name in dict.fromkeys(objects))
        if not names:
            return []
        answer = await self.call("cat-file", "--batch-check", stdin=names.encode())
        self._heed(answer.words)
        return [line.split()[0] for line in answer.out.decode().splitlines() if line.endswith(" missing")]

    def _heed(self, words: str) -> None:
        if speaks_of_damage(words) or speaks_of_leftovers(words):
            self.complaint = words
