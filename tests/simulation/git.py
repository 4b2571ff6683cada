"""The git port over simulated objects: local operations take no time, remote ones are calls that can fail."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import sha1
from typing import TypeVar

from msgspec.structs import replace

from mergeyard.domain.ids import Sha
from mergeyard.domain.timestamps import MINUTE, Instant
from mergeyard.ports.git import (
    Commit,
    Conflict,
    Identity,
    MissingObject,
    Pushed,
    PushOutcome,
    PushRefused,
    RefUpdate,
    Remote,
    RemoteUnavailable,
    Signature,
    Stale,
)
from tests.simulation.faults import Family
from tests.simulation.process import Connection
from tests.support import host_log
from tests.support.host_log import TEST_BRANCH_PREFIX

Files = Mapping[str, str]
DEFAULT_AUTHOR = Signature("Author", "author@example.org", "0 +0000")


class Objects:
    """All commits and trees that were ever created."""

    def __init__(self) -> None:
        self.commits: dict[Sha, Commit] = {}
        self.trees: dict[Sha, Files] = {}
        self._ancestors: dict[Sha, frozenset[Sha]] = {}
        self._ages: dict[Sha, int] = {}
        """Parents are always older than their children."""

    def tree(self, files: Files) -> Sha:
        name = _hash("tree", sorted(files.items()))
        self.trees.setdefault(name, files)
        return name

    def commit(
        self,
        tree: Sha,
        parents: Iterable[Sha],
        message: str,
        author: Signature | None = None,
        committed: str = "",
    ) -> Sha:
        parents, author = tuple(parents), author or DEFAULT_AUTHOR
        name = _hash("commit", (tree, parents, message, author.name, author.date, committed))
        if name not in self.commits:
            committer = Signature(DEFAULT_AUTHOR.name, DEFAULT_AUTHOR.email, committed)
            self.commits[name] = Commit(name, parents, tree, author, committer, message)
            self._ancestors[name] = frozenset((name,)).union(*(self._ancestors[parent] for parent in parents))
            self._ages[name] = len(self._ages)
        return name

    def files(self, commit: Sha) -> Files:
        return self.trees[self.commits[commit].tree]

    def ancestors(self, commit: Sha) -> frozenset[Sha]:
        """Including itself."""
        return self._ancestors[commit]

    def contains(self, commit: Sha, ancestor: Sha) -> bool:
        return ancestor in self._ancestors[commit]

    def beyond(self, head: Sha, without: Collection[Sha]) -> list[Sha]:
        """Commits that one contains and the others do not, parents first."""
        known = frozenset[Sha]().union(*(self._ancestors[other] for other in without))
        return sorted(self._ancestors[head] - known, key=self._ages.__getitem__)

    def first_parents(self, head: Sha, down_to: Sha) -> list[Sha] | None:
        """Oldest first, without `down_to`; None if it is not a first-parent ancestor."""
        found = list[Sha]()
        while head != down_to:
            found.append(head)
            parents = self.commits[head].parents
            if not parents:
                return None
            head = parents[0]
        return found[::-1]

    def changes(self, before: Sha, after: Sha) -> dict[str, str | None]:
        return difference(self.files(before), self.files(after))

    def merge_base(self, one: Sha, other: Sha) -> Sha:
        shared = self._ancestors[one] & self._ancestors[other]
        return max(shared, key=lambda sha: (len(self._ancestors[sha]), self._ages[sha]))

    def merge(self, onto: Sha, head: Sha) -> Sha | Conflict:
        base = self.files(self.merge_base(onto, head))
        return self._merge_files(base, self.files(onto), self.files(head))

    def pick(self, onto: Sha, commit: Sha) -> Sha | Conflict:
        base = self.files(self.commits[commit].parents[0])
        return self._merge_files(base, self.files(onto), self.files(commit))

    def merge_with_base(self, base: Sha, ours: Sha, theirs: Sha) -> Sha | Conflict:
        """As a cherry-pick or a revert does."""
        return self._merge_files(self.files(base), self.files(ours), self.files(theirs))

    def _merge_files(self, base: Files, ours: Files, theirs: Files) -> Sha | Conflict:
        own, others = difference(base, ours), difference(base, theirs)
        conflicting = [path for path in others if path in own and own[path] != others[path]]
        return Conflict(tuple(sorted(conflicting))) if conflicting else self.tree(apply_changes(ours, others))


def difference(before: Files, after: Files) -> dict[str, str | None]:
    if before is after:
        return {}
    changed = {path: content for path, content in after.items() if before.get(path) != content}
    return changed | {path: None for path in before if path not in after}


def apply_changes(files: Files, changes: Mapping[str, str | None]) -> Files:
    if not changes:
        return files
    return {path: content for path, content in {**files, **changes}.items() if content is not None}


def _hash(kind: str, contents: object) -> Sha:
    return Sha(sha1(f"{kind} {contents!r}".encode(), usedforsecurity=False).hexdigest())


TARGET = "refs/heads/main"
MAX_MERGE_MS = 5 * MINUTE
"""From the move of a head branch to that of the target branch: after two minutes an attempt reads the rules again, and
one attempt waits at most two minutes for the head to be shown."""


def fork_ref(fork: str, branch: str) -> str:
    """The branch of a fork. All forks are parts of the one simulated repository, so that one log shows all pushes."""
    return f"refs/forks/{fork}/{branch}"


class Origin:
    def __init__(self, objects: Objects, files: Files) -> None:
        self.objects = objects
        self.refs: dict[str, Sha] = {}
        self.log: list[host_log.Transaction] = []
        self.watchers: list[Callable[[], None]] = []
        self.late = set[Sha]()
        """Landed by a request that arrived so late that the queue no longer wanted it."""
        self.sent_at: dict[Sha, Instant] = {}
        """When the service sent the first request of those that put this commit on the target branch. One that moved a
        head branch long before, for example before an outage, does not count."""
        self._heads_sent_at: dict[Sha, Instant] = {}
        """When the service sent the request that moved a head branch to this commit, where the branch still is."""
        self.refused_refs = set[str]()
        """Refs that the host lets only their authors move."""
        self.set(TARGET, objects.commit(objects.tree(files), (), "the beginning"))

    def __len__(self) -> int:
        return len(self.log)

    def __iter__(self) -> Iterator[host_log.Transaction]:
        return iter(self.log)

    @property
    def target(self) -> Sha:
        return self.refs[TARGET]

    def matching(self, patterns: Collection[str]) -> dict[str, Sha]:
        exact = {pattern: self.refs[pattern] for pattern in patterns if pattern in self.refs}
        wild = [pattern for pattern in patterns if "*" in pattern]
        if not wild:
            return exact
        return {
            ref: sha for ref, sha in self.refs.items() if ref in exact or any(fnmatchcase(ref, one) for one in wild)
        }

    def ever_had(self, commit: Sha) -> bool:
        """Like a large host, it keeps commits that no ref contains any longer."""
        pushed = {move.new for transaction in self.log for move in transaction.updates}
        return any(self.objects.contains(each, commit) for each in self.objects.commits.keys() & pushed)

    def push(self, updates: Sequence[RefUpdate], sent_at: Instant, *, late: bool) -> PushOutcome:
        """By the service. Like git, it reports success if all refs already have their new values. A late push that also
        deletes a test branch would be refused."""
        if all(self.refs.get(update.ref) == update.new for update in updates):
            return Pushed()
        if refused := tuple(update.ref for update in updates if update.ref in self.refused_refs):
            return PushRefused("only its author is allowed to push", refused)
        if any(self.refs.get(update.ref) != update.old for update in updates):
            return Stale()
        before = self.target
        self._move(tuple(host_log.RefUpdate(update.ref, update.old, update.new) for update in updates), by_service=True)
        for update in updates:
            if update.new is not None and _is_head_branch(update.ref):
                self._heads_sent_at.setdefault(update.new, sent_at)
        landed = self.objects.ancestors(self.target) - self.objects.ancestors(before)
        began_at = (self._heads_sent_at.get(each, sent_at) for each in landed)
        self.sent_at.setdefault(
            self.target, min((at for at in began_at if sent_at - at <= MAX_MERGE_MS), default=sent_at)
        )
        if late and [update.ref for update in updates] == [TARGET]:
            self.late.add(self.target)
        return Pushed()

    def set(self, ref: str, sha: Sha | None) -> None:
        """By a foreign client, unconditionally."""
        if self.refs.get(ref) != sha:
            self._move((host_log.RefUpdate(ref, self.refs.get(ref), sha),), by_service=False)

    def merge(self, new: Sha, sent_at: Instant) -> None:
        """By the forge, as the service asked it to."""
        self.sent_at[new] = sent_at
        self._move((host_log.RefUpdate(TARGET, self.target, new),), by_service=True)

    def _move(self, moves: tuple[host_log.RefUpdate, ...], *, by_service: bool) -> None:
        for move in moves:
            if move.old is not None and _is_head_branch(move.ref):
                self._heads_sent_at.pop(move.old, None)
            if move.new is None:
                self.refs.pop(move.ref, None)
            else:
                self.refs[move.ref] = move.new
        self.log.append(host_log.Transaction(len(self.log), by_service, moves))
        for watch in self.watchers:
            watch()


def _is_head_branch(ref: str) -> bool:
    return ref.startswith(("refs/heads/", "refs/forks/")) and ref != TARGET and not ref.startswith(TEST_BRANCH_PREFIX)


T = TypeVar("T")
USUAL_DELAY_S = 0.1


class SimGit:
    """All mirrors of one replica: here, the mirror of the only repository."""

    def __init__(self, origin: Origin, connection: Connection, previous: "SimMirror | None" = None) -> None:
        """A restarted replica finds its mirror, unless its disk is lost too."""
        self._mirror = SimMirror(origin, connection)
        self._names = set[str]()
        if previous is not None:
            self._mirror.adopt(previous)

    @property
    def disk(self) -> "SimMirror":
        return self._mirror

    def mirror_names(self) -> Collection[str]:
        return sorted(self._names)

    async def check(self) -> None:
        """The version is always supported."""

    async def run_maintenance(self) -> None:
        """There is nothing to maintain."""

    async def mirror(self, name: str, remote: Remote, identity: Identity | None = None) -> "SimMirror":  # noqa: ARG002
        self._names.add(name)
        return self._mirror


class SimMirror:
    def __init__(self, origin: Origin, connection: Connection) -> None:
        self._origin = origin
        self._objects = origin.objects
        self._connection = connection
        self._known = set[Sha]()
        self._fetched: dict[str, Sha] = {}

    def adopt(self, other: "SimMirror") -> None:
        self._known, self._fetched = other._known, other._fetched

    # At the remote.

    async def remote_refs(self, *patterns: str) -> Mapping[str, Sha]:
        return await self._ask(lambda: self._origin.matching(patterns))

    async def fetch(self, refs: Collection[str]) -> Mapping[str, Sha]:
        found = await self._ask(lambda: self._origin.matching(refs))
        for sha in found.values():
            self._known |= self._objects.ancestors(sha)
        self._fetched.update(found)
        return found

    async def fetch_commit(self, commit: Sha) -> None:
        if not await self._ask(lambda: self._origin.ever_had(commit)):
            raise MissingObject(f"the remote does not have {commit}")
        self._known |= self._objects.ancestors(commit)

    async def push(self, *updates: RefUpdate, to: Remote | None = None) -> PushOutcome:
        if to is not None:
            updates = tuple(replace(each, ref=fork_ref(to.url, each.ref.rpartition("/")[2])) for each in updates)
        for update in updates:
            if update.new is not None:
                self._need(update.new)
        sent_at = self._connection.now
        return await self._ask(
            lambda: self._origin.push(updates, sent_at, late=self._connection.sender.is_superseded())
        )

    async def _ask(self, effect: Callable[[], T]) -> T:
        return await self._connection.call(
            effect, USUAL_DELAY_S, RemoteUnavailable, Family.REFUSALS, Family.LOST_REPLIES
        )

    # In the mirror.

    async def prune_refs(self, pattern: str, *, keep: Callable[[str], bool]) -> None:
        for ref in [each for each in self._fetched if fnmatchcase(each, pattern) and not keep(each)]:
            del self._fetched[ref]

    async def merge(self, onto: Sha, head: Sha) -> Sha | Conflict:
        return self._objects.merge(self._need(onto), self._need(head))

    async def cherry_pick(self, onto: Sha, commit: Sha) -> Sha | Conflict:
        return self._objects.pick(self._need(onto), self._need(commit))

    async def commit(
        self,
        tree: Sha,
        parents: Sequence[Sha],
        message: str,
        author: Signature | None = None,
        committer_date: str | None = None,
    ) -> Sha:
        """Without a committer date, commits made in different seconds differ."""
        when = committer_date or f"{self._connection.seconds} +0000"
        sha = self._objects.commit(tree, map(self._need, parents), message, author, when)
        self._known.add(sha)
        return sha

    async def add_notes(self, tip: Sha | None, notes: Mapping[Sha, bytes]) -> Sha:
        raise NotImplementedError(f"nothing is signed here: {tip} {notes}")

    async def read_commit(self, commit: Sha) -> Commit:
        return self._objects.commits[self._need(commit)]

    async def commit_shas(self, head: Sha, *, without: Collection[Sha], limit: int | None = None) -> tuple[Sha, ...]:
        found = self._objects.beyond(self._need(head), [self._need(other) for other in without])
        return tuple(found if limit is None else found[-limit:])

    async def commits(
        self,
        head: Sha,
        *,
        without: Collection[Sha],
        limit: int | None = None,
        full_messages: bool = False,  # noqa: ARG002
    ) -> tuple[Commit, ...]:
        return self._read(await self.commit_shas(head, without=without, limit=limit))

    async def first_parents(self, head: Sha, *, down_to: Sha) -> tuple[Commit, ...] | None:
        commits = self._objects.first_parents(self._need(head), down_to)
        return None if commits is None else self._read(commits)

    async def last_first_parents(self, head: Sha, *, limit: int) -> tuple[Commit, ...]:
        commits, at = list[Sha](), [self._need(head)]
        while at and len(commits) < limit:
            commits.append(at[0])
            at = self._objects.commits[at[0]].parents[:1]
        return self._read(commits)

    async def tree(self, commit: Sha) -> Sha:
        return self._objects.commits[self._need(commit)].tree

    async def contains(self, commit: Sha, ancestor: Sha) -> bool:
        return self._objects.contains(self._need(commit), ancestor)

    async def contained_heads(self, tip: Sha, refs: Collection[str]) -> frozenset[Sha]:
        history = self._objects.ancestors(self._need(tip))
        fetched = [sha for ref, sha in self._fetched.items() if any(fnmatchcase(ref, pattern) for pattern in refs)]
        return frozenset(sha for sha in fetched if sha in history)

    async def tree_problems(self, head: Sha, *, without: Sha | None) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    async def changed_paths(self, before: Sha, after: Sha) -> frozenset[bytes]:
        return frozenset(path.encode() for path in difference(self._files(before), self._files(after)))

    async def changed_paths_matching(self, before: Sha, after: Sha, globs: Collection[str]) -> tuple[str, ...]:
        paths = difference(self._files(before), self._files(after))
        return tuple(sorted(path for path in paths if any(fnmatchcase(path, glob) for glob in globs)))

    async def merge_bases(self, one: Sha, other: Sha) -> tuple[Sha, ...]:
        return (self._objects.merge_base(self._need(one), self._need(other)),)

    async def replace_paths(self, onto: Sha, source: Sha, paths: Collection[bytes]) -> Sha | Conflict:
        contents = self._objects.files(self._need(source))
        changes = {path.decode(): contents.get(path.decode()) for path in paths}
        return self._objects.tree(apply_changes(self._objects.files(self._need(onto)), changes))

    async def read_file(self, commit: Sha, path: str, *, max_bytes: int) -> bytes | None:  # noqa: ARG002
        content = self._objects.files(self._need(commit)).get(path)
        return None if content is None else content.encode()

    async def has_same_file(self, one: Sha, other: Sha, path: str) -> bool:
        return await self.read_file(one, path, max_bytes=0) == await self.read_file(other, path, max_bytes=0)

    async def export_tree(self, commit: Sha, folder: str) -> None:
        raise NotImplementedError(f"there are no local checks here: {commit} {folder}")

    def _files(self, place: Sha) -> Files:
        """Of a commit or a tree."""
        return self._objects.trees.get(place) or self._objects.files(self._need(place))

    def _need(self, commit: Sha) -> Sha:
        if commit not in self._known:
            raise MissingObject(f"{commit} is not in the mirror")
        return commit

    def _read(self, commits: Collection[Sha]) -> tuple[Commit, ...]:
        return tuple(self._objects.commits[sha] for sha in commits)
