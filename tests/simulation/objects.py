"""Commits and trees as git has them, without their bytes: named by their contents, merged path by path."""

from collections.abc import Collection, Iterable, Mapping
from hashlib import sha1

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Commit, Conflict, Signature

Files = Mapping[str, str]
NOBODY = Signature("Nobody", "nobody@example.org", "0 +0000")


class Objects:
    """Everything that was ever committed anywhere."""

    def __init__(self) -> None:
        self.commits: dict[Sha, Commit] = {}
        self.trees: dict[Sha, Files] = {}
        self._ancestors: dict[Sha, frozenset[Sha]] = {}
        self._ages: dict[Sha, int] = {}
        """Parents are always older than their children."""

    def tree(self, files: Files) -> Sha:
        name = _named("tree", sorted(files.items()))
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
        parents, author = tuple(parents), author or NOBODY
        name = _named("commit", (tree, parents, message, author.name, author.date, committed))
        if name not in self.commits:
            self.commits[name] = Commit(name, parents, tree, author, committed, message)
            self._ancestors[name] = frozenset((name,)).union(*(self._ancestors[parent] for parent in parents))
            self._ages[name] = len(self._ages)
        return name

    def files(self, commit: Sha) -> Files:
        return self.trees[self.commits[commit].tree]

    def ancestors(self, commit: Sha) -> frozenset[Sha]:
        """Itself among them."""
        return self._ancestors[commit]

    def holds(self, commit: Sha, ancestor: Sha) -> bool:
        return ancestor in self._ancestors[commit]

    def beyond(self, head: Sha, without: Collection[Sha]) -> list[Sha]:
        """What one holds and the others do not, parents first."""
        known = frozenset[Sha]().union(*(self._ancestors[other] for other in without))
        return sorted(self._ancestors[head] - known, key=self._ages.__getitem__)

    def first_parents(self, head: Sha, down_to: Sha) -> list[Sha] | None:
        """Oldest first, without the one that the way leads down to."""
        way = list[Sha]()
        while head != down_to:
            way.append(head)
            parents = self.commits[head].parents
            if not parents:
                return None
            head = parents[0]
        return way[::-1]

    def changes(self, before: Sha, after: Sha) -> dict[str, str | None]:
        return difference(self.files(before), self.files(after))

    def merge_base(self, one: Sha, other: Sha) -> Sha:
        shared = self._ancestors[one] & self._ancestors[other]
        return max(shared, key=lambda sha: (len(self._ancestors[sha]), self._ages[sha]))

    def merge(self, onto: Sha, head: Sha) -> Sha | Conflict:
        base = self.files(self.merge_base(onto, head))
        return self._merged(base, self.files(onto), self.files(head))

    def pick(self, onto: Sha, commit: Sha) -> Sha | Conflict:
        base = self.files(self.commits[commit].parents[0])
        return self._merged(base, self.files(onto), self.files(commit))

    def _merged(self, base: Files, ours: Files, theirs: Files) -> Sha | Conflict:
        own, others = difference(base, ours), difference(base, theirs)
        clashing = [path for path in others if path in own and own[path] != others[path]]
        return Conflict(tuple(sorted(clashing))) if clashing else self.tree(patched(ours, others))


def difference(before: Files, after: Files) -> dict[str, str | None]:
    if before is after:
        return {}
    changed = {path: content for path, content in after.items() if before.get(path) != content}
    return changed | {path: None for path in before if path not in after}


def patched(files: Files, changes: Mapping[str, str | None]) -> Files:
    if not changes:
        return files
    return {path: content for path, content in {**files, **changes}.items() if content is not None}


def _named(kind: str, contents: object) -> Sha:
    return Sha(sha1(f"{kind} {contents!r}".encode(), usedforsecurity=False).hexdigest())
