"""Runs the checks of a repository, where the service is its own CI."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from mergeyard.domain.ids import RunId, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import Repo
from mergeyard.domain.statuses import StatusState


class SandboxUnavailableError(Exception):
    """The settings demand a sandbox for checks, and this machine cannot make one. The message says what to do."""


class Job(Struct, frozen=True, kw_only=True):
    """The checks of one run: every command in a clean checkout of its own."""

    run: RunId
    repo: Repo
    commit: Sha
    commands: Mapping[str, str]
    timeout: int
    """Milliseconds for each command."""


class Result(Struct, frozen=True):
    run: RunId
    commit: Sha
    check: str
    state: StatusState
    description: str


class Runner(Protocol):
    async def start(self, job: Job) -> None:
        """Begin, unless this run's job is there already."""
        ...

    async def stop(self, run: RunId) -> None:
        """End everything that the run started; no result comes after this."""
        ...

    async def next_result(self) -> Result:
        """Waits for what any command has to say next: pending when it starts, then how it ended."""
        ...

    def running(self) -> frozenset[RunId]: ...

    async def output(self, run: RunId, check: str) -> bytes | None:
        """What a command has written so far."""
        ...

    async def delete_outputs(self, before: Instant) -> None:
        """Delete what commands wrote last before this time, but nothing of a run that is going on."""
        ...

    async def close(self) -> None: ...
