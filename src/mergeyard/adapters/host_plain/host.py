"""Shows bare repositories and the pull requests in their refs as a host."""

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec.structs import replace

from mergeyard.adapters.host_plain import refs
from mergeyard.adapters.host_plain.folders import folder_of, is_repository
from mergeyard.adapters.host_plain.meta import BadMeta, PullState
from mergeyard.adapters.host_plain.objects import ReaderEnded
from mergeyard.adapters.host_plain.pulls import StoredPull, as_shown, stored_pull
from mergeyard.adapters.host_plain.readers import Readers
from mergeyard.adapters.host_plain.refs import Telling
from mergeyard.adapters.host_plain.writing import rewrite_meta, until_moved
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.repositories import Repo
from mergeyard.ports.git import Remote
from mergeyard.ports.host import ChecksFrom, HostTrouble

LOOK_EVERY = 0
"""Reading refs costs next to nothing: as often as anybody looks around."""
DOUBTS_AT_ONCE = 4
"""Asking for what is not there costs a process each; this many run beside each other."""


class PlainHost:
    def __init__(self, name: str, root: Path, checks_from: ChecksFrom) -> None:
        self.name = name
        self.checks_from = checks_from
        self.provider = "git"
        self.has_groups = False
        self.forge = None
        self.look_every = LOOK_EVERY
        self.judges_mergeability = False
        self.every_head_ref = refs.EVERY_HEAD
        self._root = root.absolute()
        self._readers = Readers()
        self._telling: dict[Path, Telling] = {}
        self._doubts = asyncio.Semaphore(DOUBTS_AT_ONCE)

    def same_name(self, repo: Repo) -> Repo:
        return repo

    def refuses(self, method: MergeMethod, landing: LandingMethod) -> None:
        """Git can move any two refs in one conditional update."""

    async def remote(self, repo: Repo) -> Remote:
        return Remote(str(folder_of(self._root, repo)))

    def head_ref(self, number: PrNumber) -> str:
        return refs.head_ref(number)

    def number_of(self, ref: str) -> PrNumber | None:
        return refs.number_of(ref)

    def pull_page(self, repo: Repo, number: PrNumber) -> str | None:  # noqa: ARG002
        return None

    async def knows(self, repo: Repo) -> bool:
        try:
            return is_repository(folder_of(self._root, repo))
        except HostTrouble:
            return False

    async def pull(self, repo: Repo, number: PrNumber) -> PullRequest | None:
        stored = await self._stored(folder_of(self._root, repo), number)
        return stored and as_shown(stored)

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    async def refs(self, repo: Repo, branches: Collection[str] = ()) -> Mapping[str, Sha]:  # noqa: ARG002
        folder = folder_of(self._root, repo)
        telling = self._telling[folder] = await self._telling.get(folder, Telling()).again(folder)
        return telling.refs

    async def mark_merged(self, repo: Repo, number: PrNumber, head: Sha, commit: Sha) -> None:  # noqa: ARG002
        """One that was pushed to since stays open: what was pushed has not landed."""
        folder = folder_of(self._root, repo)

        async def mark() -> None:
            pull = await self._stored(folder, number)
            if pull and pull.head == head and pull.meta.state is not PullState.MERGED:
                await rewrite_meta(folder, pull, replace(pull.meta, state=PullState.MERGED))

        try:
            await until_moved(mark)
        except BadMeta as bad:
            raise HostTrouble(f"{refs.meta_ref(number)} of {repo} cannot be marked as merged: {bad}") from bad

    async def close(self) -> None:
        await self._readers.close()

    async def _stored(self, folder: Path, number: PrNumber) -> StoredPull | None:
        try:
            pull = await stored_pull(await self._readers.of(folder), number)
        except ReaderEnded:
            pull = await stored_pull(await self._readers.of(folder), number)
        if pull is None:
            await self._make_sure_it_is_missing(folder, number)
        return pull

    async def _make_sure_it_is_missing(self, folder: Path, number: PrNumber) -> None:
        """A reader cannot tell a ref that is missing from one whose object is, nor from a broken repository."""
        async with self._doubts:
            listed = await refs.refs_below(folder, f"{refs.PULLS}{number}")
        if {refs.head_ref(number), refs.meta_ref(number)} <= listed.keys():
            raise HostTrouble(f"{refs.PULLS}{number} is there, but could not be read just now")
