"""Git as the port has it, over simulated objects: what is done here is at once, what is done there takes a way."""

from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import (
    Commit,
    Conflict,
    GitTrouble,
    MissingObject,
    PushOutcome,
    RefUpdate,
    Remote,
    Signature,
)
from tests.simulation.objects import patched
from tests.simulation.origin import Origin
from tests.simulation.process import Line
from tests.simulation.weather import Family

T = TypeVar("T")
USUAL = 0.1


class SimGit:
    """All mirrors of one replica: here, the one of the one repository."""

    def __init__(self, origin: Origin, line: Line, kept: "SimMirror | None" = None) -> None:
        """A replica that begins again finds its mirror, unless its disk is gone too."""
        self._mirror = SimMirror(origin, line)
        self._names = set[str]()
        if kept is not None:
            self._mirror.take_over(kept)

    @property
    def disk(self) -> "SimMirror":
        return self._mirror

    def at_hand(self) -> Collection[str]:
        return sorted(self._names)

    async def check(self) -> None:
        """It is always new enough."""

    async def tidy(self) -> None:
        """There is room enough."""

    async def mirror(self, name: str, remote: Remote) -> "SimMirror":  # noqa: ARG002
        self._names.add(name)
        return self._mirror


class SimMirror:
    def __init__(self, origin: Origin, line: Line) -> None:
        self._origin = origin
        self._objects = origin.objects
        self._line = line
        self._known = set[Sha]()
        self._fetched: dict[str, Sha] = {}

    def take_over(self, other: "SimMirror") -> None:
        self._known, self._fetched = other._known, other._fetched

    # There.

    async def remote_refs(self, *patterns: str) -> Mapping[str, Sha]:
        return await self._ask(lambda: self._origin.matching(patterns))

    async def fetch(self, refs: Collection[str]) -> Mapping[str, Sha]:
        there = await self._ask(lambda: self._origin.matching(refs))
        for sha in there.values():
            self._known |= self._objects.ancestors(sha)
        self._fetched.update(there)
        return there

    async def fetch_commit(self, commit: Sha) -> None:
        if not await self._ask(lambda: self._origin.ever_had(commit)):
            raise MissingObject(f"nobody has {commit}")
        self._known |= self._objects.ancestors(commit)

    async def push(self, *updates: RefUpdate) -> PushOutcome:
        for update in updates:
            if update.new is not None:
                self._need(update.new)
        return await self._ask(lambda: self._origin.push(updates, late=self._line.sender.is_relieved()))

    async def _ask(self, effect: Callable[[], T]) -> T:
        return await self._line.call(effect, USUAL, GitTrouble, Family.REFUSALS, Family.LOST_REPLIES)

    # Here.

    async def forget(self, pattern: str, *, unless: Callable[[str], bool]) -> None:
        for ref in [each for each in self._fetched if fnmatchcase(each, pattern) and not unless(each)]:
            del self._fetched[ref]

    async def merge(self, onto: Sha, head: Sha) -> Sha | Conflict:
        return self._objects.merge(self._need(onto), self._need(head))

    async def pick(self, onto: Sha, commit: Sha) -> Sha | Conflict:
        return self._objects.pick(self._need(onto), self._need(commit))

    async def commit(
        self,
        tree: Sha,
        parents: Sequence[Sha],
        message: str,
        author: Signature | None = None,
        committed: str | None = None,
    ) -> Sha:
        """Made in another second, it is another commit."""
        when = committed or f"{self._line.seconds} +0000"
        sha = self._objects.commit(tree, map(self._need, parents), message, author, when)
        self._known.add(sha)
        return sha

    async def read(self, commit: Sha) -> Commit:
        return self._objects.commits[self._need(commit)]

    async def shas(self, head: Sha, *, without: Collection[Sha], limit: int | None = None) -> tuple[Sha, ...]:
        found = self._objects.beyond(self._need(head), [self._need(other) for other in without])
        return tuple(found if limit is None else found[-limit:])

    async def commits(
        self,
        head: Sha,
        *,
        without: Collection[Sha],
        limit: int | None = None,
        whole: bool = False,  # noqa: ARG002
    ) -> tuple[Commit, ...]:
        return self._read(await self.shas(head, without=without, limit=limit))

    async def first_parents(self, head: Sha, *, down_to: Sha) -> tuple[Commit, ...] | None:
        way = self._objects.first_parents(self._need(head), down_to)
        return None if way is None else self._read(way)

    async def last_first_parents(self, head: Sha, *, limit: int) -> tuple[Commit, ...]:
        way, at = list[Sha](), [self._need(head)]
        while at and len(way) < limit:
            way.append(at[0])
            at = self._objects.commits[at[0]].parents[:1]
        return self._read(way)

    async def tree(self, commit: Sha) -> Sha:
        return self._objects.commits[self._need(commit)].tree

    async def holds(self, commit: Sha, ancestor: Sha) -> bool:
        return self._objects.holds(self._need(commit), ancestor)

    async def contained(self, tip: Sha, refs: Collection[str]) -> frozenset[Sha]:
        history = self._objects.ancestors(self._need(tip))
        fetched = [sha for ref, sha in self._fetched.items() if any(fnmatchcase(ref, pattern) for pattern in refs)]
        return frozenset(sha for sha in fetched if sha in history)

    async def tree_problems(self, head: Sha, *, without: Sha | None) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    async def changed_paths(self, before: Sha, after: Sha) -> frozenset[bytes]:
        return frozenset(path.encode() for path in self._objects.changes(self._need(before), self._need(after)))

    async def changed_paths_matching(self, before: Sha, after: Sha, globs: Collection[str]) -> tuple[str, ...]:
        raise NotImplementedError(f"there are no forks here: {before} {after} {globs}")

    async def merge_bases(self, one: Sha, other: Sha) -> tuple[Sha, ...]:
        raise NotImplementedError(f"there are no forks here: {one} {other}")

    async def transplant(self, onto: Sha, source: Sha, paths: Collection[bytes]) -> Sha | Conflict:
        contents = self._objects.files(self._need(source))
        changes = {path.decode(): contents.get(path.decode()) for path in paths}
        return self._objects.tree(patched(self._objects.files(self._need(onto)), changes))

    async def file(self, commit: Sha, path: str, *, max_bytes: int) -> bytes | None:  # noqa: ARG002
        content = self._objects.files(self._need(commit)).get(path)
        return None if content is None else content.encode()

    async def has_same_file(self, one: Sha, other: Sha, path: str) -> bool:
        return await self.file(one, path, max_bytes=0) == await self.file(other, path, max_bytes=0)

    async def export(self, commit: Sha, folder: str) -> None:
        raise NotImplementedError(f"nobody runs checks here: {commit} {folder}")

    def _need(self, commit: Sha) -> Sha:
        if commit not in self._known:
            raise MissingObject(f"{commit} is not here")
        return commit

    def _read(self, commits: Collection[Sha]) -> tuple[Commit, ...]:
        return tuple(self._objects.commits[sha] for sha in commits)
