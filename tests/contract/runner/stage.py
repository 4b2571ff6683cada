"""A repository, a runner for its checks, and gates that hold a command until the test lets it go."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from mergeyard.adapters.runner_local.command import Limits
from mergeyard.adapters.runner_local.runner import LocalRunner
from mergeyard.adapters.runner_local.sandbox import Sandbox
from mergeyard.domain.ids import RunId, Sha
from mergeyard.domain.repositories import Repo
from mergeyard.domain.statuses import StatusState
from mergeyard.ports.git import GitTrouble, InvalidTreeError
from mergeyard.ports.runner import Job, Runner
from tests.support.repositories import Origin

REPO = Repo("git.local", "acme", "app")
OTHER = Repo("git.local", "acme", "other")
BROKEN = Repo("git.local", "acme", "broken")
"""Its checkouts always fail with trouble of the machine."""
INVALID = Repo("git.local", "acme", "invalid")
"""Git refuses to check out its commits."""
MINUTE = 60_000
Told = tuple[str, StatusState, str]


class Gate:
    """`gate.waiting` is a command that ends when the gate is opened, and not before."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.waiting = f"read word < {path}"
        self._path = path

    def open(self) -> None:
        self._path.write_text("go\n")


class Stage:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.origin = Origin.made(folder / "app.git")
        self.commit = self.origin.commit("main", {"greeting.txt": "hello\n", "deep/er.txt": "x"})
        self.failing_checkouts = 0
        self.limits = Limits()
        self.sandbox: Sandbox | None = None
        self._gates = count(1)

    @asynccontextmanager
    async def runner(self, limit: int = 2) -> AsyncGenerator[Runner]:
        runner = self.opened(limit)
        try:
            yield runner
        finally:
            await runner.close()

    def opened(self, limit: int = 2) -> LocalRunner:
        return LocalRunner(self.runs, limit, self.check_out, self.limits, self.sandbox)

    def job(self, run: str = "run-1", timeout: int = MINUTE, repo: Repo = REPO, **commands: str) -> Job:
        return Job(run=RunId(run), repo=repo, commit=self.commit, commands=commands, timeout=timeout)

    def gate(self) -> Gate:
        return Gate(self.folder / f"gate-{next(self._gates)}")

    def work_places(self) -> list[Path]:
        """The folders of commands that run, or ran and were not cleared away."""
        return list(self.runs.glob(".work/*/*/"))

    async def check_out(self, repo: Repo, commit: Sha, folder: str) -> None:
        if repo == BROKEN:
            raise GitTrouble("the mirror is damaged")
        if repo == INVALID:
            raise InvalidTreeError("error: invalid path '.git/config'")
        assert os.listdir(folder) == []
        for path, content in self.origin.files(commit).items():
            place = Path(folder) / path
            place.parent.mkdir(exist_ok=True)
            place.write_text(content)
        if self.failing_checkouts:
            self.failing_checkouts -= 1
            raise GitTrouble("the disk is full")


async def told(runner: Runner) -> Told:
    result = await runner.next_result()
    return result.check, result.state, result.description


async def ends(runner: Runner, count: int = 1) -> dict[str, tuple[StatusState, str]]:
    """How the next commands end, whatever is told of starts meanwhile."""
    found: dict[str, tuple[StatusState, str]] = {}
    while len(found) < count:
        check, state, words = await told(runner)
        if state is not StatusState.PENDING:
            found[check] = (state, words)
    return found
