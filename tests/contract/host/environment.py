"""A repository on a Git host, and what users do to its pull requests there."""

import json
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.ports.forge import ChecksFrom, Host
from tests.support.repositories import Origin

REPO = Repo("git.local", "acme", "app")


class HostEnvironment(Protocol):
    """Each host has one, so the same suite runs on all of them."""

    @property
    def repo(self) -> Repo: ...

    def host(self) -> AbstractAsyncContextManager[Host]: ...

    def open(self, number: int, **data: Any) -> Sha:
        """Opens a pull request with one commit on branch `topic-<number>`, and returns its head."""
        ...

    def push(self, number: int) -> Sha: ...

    def close(self, number: int) -> None: ...

    def land(self, number: int) -> Sha:
        """Pushes a merge of its head to its base, as the queue would, and returns that commit."""
        ...


class PlainEnvironment:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.repo = REPO
        self.origin = Origin.create(root / "acme" / "app.git")
        self.origin.commit("main", {"a.txt": "1"})
        self.data: dict[int, dict[str, Any]] = {}

    @asynccontextmanager
    async def host(self) -> AsyncGenerator[PlainHost]:
        host = PlainHost("git.local", self.root, ChecksFrom.API)
        try:
            yield host
        finally:
            await host.close()

    def open(self, number: int, **data: Any) -> Sha:
        branch = f"topic-{number}"
        self.origin.branch(branch, base="main", files={f"{number}.txt": "1"})
        self.data[number] = {"title": "A change", "author": "ada", "base": "main", "branch": branch} | data
        self.data[number] = {"draft": False, "state": "open"} | self.data[number]
        self._show(number)
        return self.origin.tip(branch)

    def push(self, number: int) -> Sha:
        branch = f"topic-{number}"
        self.origin.commit(branch, {f"{number}.txt": self.origin.tip(branch)})
        self._show(number)
        return self.origin.tip(branch)

    def close(self, number: int) -> None:
        self.data[number]["state"] = "closed"
        self._show(number)

    def land(self, number: int) -> Sha:
        return self.origin.commit(self.data[number]["base"], {f"{number}.txt": "1"}, merging=f"topic-{number}")

    def write_meta(self, number: int, raw: str | bytes) -> None:
        self.origin.set_ref(f"refs/pull/{number}/meta", self.origin.blob(raw))

    def meta(self, number: int) -> dict[str, Any]:
        return json.loads(self.origin.run("cat-file", "blob", f"refs/pull/{number}/meta"))

    def _show(self, number: int) -> None:
        self.origin.set_ref(f"refs/pull/{number}/head", self.origin.tip(f"topic-{number}"))
        self.write_meta(number, json.dumps(self.data[number]))


ONE = PullRequestNumber(1)
TWO = PullRequestNumber(2)
