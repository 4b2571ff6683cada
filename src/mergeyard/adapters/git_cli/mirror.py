"""The implementation of the port `Mirror` with the git command line."""

from asyncio import Lock
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from copy import copy
from typing import Self

from mergeyard.adapters.git_cli import contents, history
from mergeyard.adapters.git_cli.history import cherry_pick, create_commit, merge
from mergeyard.adapters.git_cli.process import MAINTENANCE_ROUNDS, Repository
from mergeyard.adapters.git_cli.remote import (
    OtherObjectFormatError,
    fetch,
    fetch_commit,
    find_contained_heads,
    prune_refs,
    push,
    read_remote_refs,
)
from mergeyard.domain.ids import ObjectFormat, Sha
from mergeyard.ports.git import Commit, Conflict, Identity, PushOutcome, RefUpdate, Remote, Signature, TooLargeFile

MAX_CACHED_TREES = 1000

Replace = Callable[[Repository, ObjectFormat], Awaitable[None]]
"""Puts an empty repository of this format in the place of the present one."""


class CliMirror:
    def __init__(
        self, repository: Repository, remote: Remote, identity: Identity, fetch_lock: Lock, replace: Replace
    ) -> None:
        self.remote = remote
        self.repository = repository
        self.identity = identity
        self._fetch_lock = fetch_lock
        self._replace = replace
        self._trees: dict[Sha, Sha] = {}
        self._checked_heads = set[Sha]()
        """Heads without tree problems, so that a pull request is checked once and not in every run."""
        self._same_files: dict[tuple[Sha, Sha, str], bool] = {}

    def with_identity(self, identity: Identity) -> Self:
        """The same mirror for another committer: the two share their caches."""
        other = copy(self)
        other.identity = identity
        return other

    async def remote_refs(self, *patterns: str) -> Mapping[str, Sha]:
        return await read_remote_refs(self.repository, self.remote, patterns)

    async def fetch(self, refs: Collection[str]) -> Mapping[str, Sha]:
        self.repository.maintenance_rounds_left = MAINTENANCE_ROUNDS
        async with self._fetch_lock:
            try:
                return await fetch(self.repository, self.remote, refs)
            except OtherObjectFormatError as error:
                await self._replace(self.repository, error.object_format)
                return await fetch(self.repository, self.remote, refs)

    async def fetch_commit(self, commit: Sha) -> None:
        async with self._fetch_lock:
            await fetch_commit(self.repository, self.remote, commit)

    async def prune_refs(self, pattern: str, *, keep: Callable[[str], bool]) -> None:
        async with self._fetch_lock:
            await prune_refs(self.repository, pattern, keep)

    async def merge(self, onto: Sha, head: Sha) -> Sha | Conflict:
        return await merge(self.repository, onto, head)

    async def cherry_pick(self, onto: Sha, commit: Sha) -> Sha | Conflict:
        return await cherry_pick(self.repository, onto, commit)

    async def commit(
        self,
        tree: Sha,
        parents: Sequence[Sha],
        message: str,
        author: Signature | None = None,
        committer_date: str | None = None,
    ) -> Sha:
        arguments = (self.identity, tree, parents, message, author, committer_date)
        commit = await create_commit(self.repository, *arguments)
        self._cache_tree(commit, tree)
        return commit

    async def add_notes(self, tip: Sha | None, notes: Mapping[Sha, bytes]) -> Sha:
        if tip is not None and not await history.is_commit(self.repository, tip):
            tip = None  # the ref can be pushed to any object, and a commit cannot have another kind as its parent
        tree = await contents.write_notes(self.repository, tip, notes)
        if tip is None:
            return await self.commit(tree, (), contents.NOTES_MESSAGE)
        if tree == await self.tree(tip):
            return tip
        return await self.commit(tree, (tip,), contents.NOTES_MESSAGE)

    async def read_commit(self, commit: Sha) -> Commit:
        return await history.read_commit(self.repository, commit)

    async def commit_shas(self, head: Sha, *, without: Collection[Sha], limit: int | None = None) -> tuple[Sha, ...]:
        return await history.list_commit_shas(self.repository, head, without, limit)

    async def commits(
        self, head: Sha, *, without: Collection[Sha], limit: int | None = None, full_messages: bool = False
    ) -> tuple[Commit, ...]:
        return await history.list_commits(self.repository, head, without, limit, full_messages=full_messages)

    async def first_parents(self, head: Sha, *, down_to: Sha) -> tuple[Commit, ...] | None:
        return await history.list_first_parents(self.repository, head, down_to)

    async def last_first_parents(self, head: Sha, *, limit: int) -> tuple[Commit, ...]:
        return await history.list_last_first_parents(self.repository, head, limit)

    async def tree(self, commit: Sha) -> Sha:
        return self._trees.get(commit) or self._cache_tree(commit, await history.read_tree(self.repository, commit))

    def _cache_tree(self, commit: Sha, tree: Sha) -> Sha:
        """The tree of a commit never changes, and building a run needs it at every step."""
        if len(self._trees) == MAX_CACHED_TREES:
            self._trees.clear()
        self._trees[commit] = tree
        return tree

    async def contains(self, commit: Sha, ancestor: Sha) -> bool:
        return await history.contains(self.repository, commit, ancestor)

    async def contained_heads(self, tip: Sha, refs: Collection[str]) -> frozenset[Sha]:
        return await find_contained_heads(self.repository, tip, refs)

    async def tree_problems(self, head: Sha, *, without: Sha | None) -> tuple[str, ...]:
        if head in self._checked_heads:
            return ()
        problems = await contents.find_tree_problems(self.repository, head, without)
        if not problems:
            if len(self._checked_heads) == MAX_CACHED_TREES:
                self._checked_heads.clear()
            self._checked_heads.add(head)
        return problems

    async def changed_paths(self, before: Sha, after: Sha) -> frozenset[bytes]:
        return await contents.find_changed_paths(self.repository, before, after)

    async def changed_paths_matching(self, before: Sha, after: Sha, globs: Collection[str]) -> tuple[str, ...]:
        return await contents.find_changed_paths_matching(self.repository, before, after, globs)

    async def merge_bases(self, one: Sha, other: Sha) -> tuple[Sha, ...]:
        return await history.find_merge_bases(self.repository, one, other)

    async def replace_paths(self, onto: Sha, source: Sha, paths: Collection[bytes]) -> Sha | Conflict:
        return await contents.replace_paths(self.repository, onto, source, paths)

    async def read_file(self, commit: Sha, path: str, *, max_bytes: int) -> bytes | TooLargeFile | None:
        return await contents.read_file(self.repository, commit, path, max_bytes)

    async def has_same_file(self, one: Sha, other: Sha, path: str) -> bool:
        """Remembered, because retries and restarts build the same contents again."""
        compared = (await self.tree(one), await self.tree(other), path)
        if compared not in self._same_files:
            if len(self._same_files) == MAX_CACHED_TREES:
                self._same_files.clear()
            self._same_files[compared] = await contents.has_same_file(self.repository, *compared)
        return self._same_files[compared]

    async def push(self, *updates: RefUpdate, to: Remote | None = None) -> PushOutcome:
        return await push(self.repository, to or self.remote, updates)

    async def export_tree(self, commit: Sha, folder: str) -> None:
        await contents.export_tree(self.repository, commit, folder)
