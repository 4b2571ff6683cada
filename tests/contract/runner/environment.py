"""A repository, a runner for its checks, and gates that hold a command until the test releases it."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from mergeyard.adapters.runner_local.process import Limits, Sandbox
from mergeyard.adapters.runner_local.runner import LocalRunner
from mergeyard.domain.ids import Repo, RunId, Sha
from mergeyard.domain.pull_requests import StatusState
from mergeyard.ports.external import CheckJob, CheckRunner
from mergeyard.ports.git import GitError, InvalidTreeError
from tests.support.repositories import Origin

REPO = Repo("git.local", "acme", "app")
OTHER = Repo("git.local", "acme", "other")
BROKEN = Repo("git.local", "acme", "broken")
"""Its checkouts always fail with an error of the machine."""
INVALID = Repo("git.local", "acme", "invalid")
"""Git refuses to check out its commits."""
MINUTE = 60_000
CheckReport = tuple[str, StatusState, str]


class Gate:
    """`gate.waiting` is a command that ends when the gate is opened, and not before."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.waiting = f"read word < {path}"
        self._path = path

    def open(self) -> None:
        self._path.write_text("go\n")


class RunnerEnvironment:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.origin = Origin.create(folder / "app.git")
        self.commit = self.origin.commit("main", {"greeting.txt": "hello\n", "deep/er.txt": "x"})
        self.failing_checkouts = 0
        self.limits = Limits()
        self.sandbox: Sandbox | None = None
        self._gates = count(1)

    @asynccontextmanager
    async def runner(self, limit: int = 2) -> AsyncGenerator[CheckRunner]:
        runner = self.open_runner(limit)
        try:
            yield runner
        finally:
            await runner.close()

    def open_runner(self, limit: int = 2) -> LocalRunner:
        return LocalRunner(self.runs, limit, self.check_out, self.limits, self.sandbox)

    def job(self, run: str = "run-1", timeout: int = MINUTE, repo: Repo = REPO, **commands: str) -> CheckJob:
        return CheckJob(run=RunId(run), repo=repo, commit=self.commit, commands=commands, timeout_ms=timeout)

    def gate(self) -> Gate:
        return Gate(self.folder / f"gate-{next(self._gates)}")

    def checkouts(self) -> list[Path]:
        """The folders of commands that run, or that ran and were not removed."""
        return list(self.runs.glob(".work/*/*/"))

    async def check_out(self, repo: Repo, commit: Sha, folder: str) -> None:
        if repo == BROKEN:
            raise GitError("the mirror is damaged")
        if repo == INVALID:
            raise InvalidTreeError("error: invalid path '.git/config'")
        assert os.listdir(folder) == []
        for path, content in self.origin.files(commit).items():
            file = Path(folder) / path
            file.parent.mkdir(exist_ok=True)
            file.write_text(content)
        if self.failing_checkouts:
            self.failing_checkouts -= 1
            raise GitError("the disk is full")


async def next_report(runner: CheckRunner) -> CheckReport:
    result = await runner.next_result()
    return result.check, result.state, result.description


async def final_results(runner: CheckRunner, count: int = 1) -> dict[str, tuple[StatusState, str]]:
    """Returns the results of the next commands that end, and ignores reports of starts."""
    found: dict[str, tuple[StatusState, str]] = {}
    while len(found) < count:
        check, state, description = await next_report(runner)
        if state is not StatusState.PENDING:
            found[check] = (state, description)
    return found
