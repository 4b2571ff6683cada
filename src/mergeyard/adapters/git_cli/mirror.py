"""One repository as the service sees it: each method is told in a room of its own."""

from asyncio import Lock
from collections.abc import Callable, Collection, Mapping, Sequence

from mergeyard.adapters.git_cli import commits, contents, fetching, history, merging, pushing
from mergeyard.adapters.git_cli.commits import Committer
from mergeyard.adapters.git_cli.repository import Repository
from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Commit, Conflict, PushOutcome, RefUpdate, Remote, Signature, TooLargeFile

MOST_TREES = 1000
ROUNDS_OF_TIDYING = 2
"""What is packed in one is removed as loose in the next."""


class CliMirror:
    def __init__(self, repository: Repository, remote: Remote, committer: Committer, fetching: Lock) -> None:
        self.remote = remote
        self.repository = repository
        self._committer = committer
        self.untidy = ROUNDS_OF_TIDYING
        """So many rounds until it is in order."""
        self._fetching = fetching
        self._trees: dict[Sha, Sha] = {}
        self._sound = set[Sha]()
        """Whose folders were checked: they are looked at once, and not in every run."""

    async def remote_refs(self, *patterns: str) -> Mapping[str, Sha]:
        return await fetching.remote_refs(self.repository, self.remote, patterns)

    async def fetch(self, refs: Collection[str]) -> Mapping[str, Sha]:
        self.untidy = ROUNDS_OF_TIDYING
        async with self._fetching:
            return await fetching.fetch(self.repository, self.remote, refs)

    async def fetch_commit(self, commit: Sha) -> None:
        async with self._fetching:
            await fetching.fetch_commit(self.repository, self.remote, commit)

    async def forget(self, pattern: str, *, unless: Callable[[str], bool]) -> None:
        async with self._fetching:
            await fetching.forget(self.repository, pattern, unless)

    async def merge(self, onto: Sha, head: Sha) -> Sha | Conflict:
        return await merging.merge(self.repository, onto, head)

    async def pick(self, onto: Sha, commit: Sha) -> Sha | Conflict:
        return await merging.pick(self.repository, onto, commit)

    async def commit(
        self,
        tree: Sha,
        parents: Sequence[Sha],
        message: str,
        author: Signature | None = None,
        committed: str | None = None,
    ) -> Sha:
        making = (self._committer, tree, parents, message, author, committed)
        commit = await commits.commit(self.repository, *making)
        self._remember(commit, tree)
        return commit

    async def read(self, commit: Sha) -> Commit:
        return await history.read(self.repository, commit)

    async def shas(self, head: Sha, *, without: Collection[Sha], limit: int | None = None) -> tuple[Sha, ...]:
        return await history.shas(self.repository, head, without, limit)

    async def commits(
        self, head: Sha, *, without: Collection[Sha], limit: int | None = None, whole: bool = False
    ) -> tuple[Commit, ...]:
        return await history.commits(self.repository, head, without, limit, whole=whole)

    async def first_parents(self, head: Sha, *, down_to: Sha) -> tuple[Commit, ...] | None:
        return await history.first_parents(self.repository, head, down_to)

    async def last_first_parents(self, head: Sha, *, limit: int) -> tuple[Commit, ...]:
        return await history.last_first_parents(self.repository, head, limit)

    async def tree(self, commit: Sha) -> Sha:
        return self._trees.get(commit) or self._remember(commit, await history.tree(self.repository, commit))

    def _remember(self, commit: Sha, tree: Sha) -> Sha:
        """The tree of a commit never changes, and building asks for it at every step."""
        if len(self._trees) == MOST_TREES:
            self._trees.clear()
        self._trees[commit] = tree
        return tree

    async def holds(self, commit: Sha, ancestor: Sha) -> bool:
        return await history.holds(self.repository, commit, ancestor)

    async def contained(self, tip: Sha, refs: Collection[str]) -> frozenset[Sha]:
        return await fetching.contained(self.repository, tip, refs)

    async def tree_problems(self, head: Sha, *, without: Sha | None) -> tuple[str, ...]:
        if head in self._sound:
            return ()
        problems = await contents.tree_problems(self.repository, head, without)
        if not problems:
            if len(self._sound) == MOST_TREES:
                self._sound.clear()
            self._sound.add(head)
        return problems

    async def changed_paths(self, before: Sha, after: Sha) -> frozenset[bytes]:
        return await contents.changed_paths(self.repository, before, after)

    async def changed_paths_matching(self, before: Sha, after: Sha, globs: Collection[str]) -> tuple[str, ...]:
        return await contents.changed_paths_matching(self.repository, before, after, globs)

    async def merge_bases(self, one: Sha, other: Sha) -> tuple[Sha, ...]:
        return await history.merge_bases(self.repository, one, other)

    async def transplant(self, onto: Sha, source: Sha, paths: Collection[bytes]) -> Sha | Conflict:
        return await contents.transplant(self.repository, onto, source, paths)

    async def file(self, commit: Sha, path: str, *, max_bytes: int) -> bytes | TooLargeFile | None:
        return await contents.file(self.repository, commit, path, max_bytes)

    async def has_same_file(self, one: Sha, other: Sha, path: str) -> bool:
        return await contents.has_same_file(self.repository, one, other, path)

    async def push(self, *updates: RefUpdate) -> PushOutcome:
        return await pushing.push(self.repository, self.remote, updates)

    async def export(self, commit: Sha, folder: str) -> None:
        await contents.export(self.repository, commit, folder)
