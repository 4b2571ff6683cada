"""A repository that is only a picture of one: commits, three-way merges path by path, and refs that move or do not."""

from collections.abc import Mapping

from msgspec import Struct

from mergeyard.domain.ids import Sha

Content = str
Files = Mapping[str, Content]


class Commit(Struct, frozen=True):
    parents: tuple[Sha, ...]
    files: Files
    tree: Sha
    message: str


class Conflict(Exception):
    """Both sides changed the same paths."""


class Repository:
    def __init__(self, files: Files) -> None:
        self.commits: dict[Sha, Commit] = {}
        self._trees: dict[frozenset[tuple[str, Content]], Sha] = {}
        self._ancestors: dict[Sha, frozenset[Sha]] = {}
        self.refs: dict[str, Sha] = {}
        self.root = self.commit((), files, "root")

    def commit(self, parents: tuple[Sha, ...], files: Files, message: str) -> Sha:
        sha = Sha(f"c{len(self.commits)}")
        self.commits[sha] = Commit(parents, files, self._tree(files), message)
        self._ancestors[sha] = frozenset({sha}).union(*(self._ancestors[parent] for parent in parents))
        return sha

    def contains(self, sha: Sha, ancestor: Sha) -> bool:
        return ancestor in self._ancestors[sha]

    def ancestors(self, sha: Sha) -> frozenset[Sha]:
        return self._ancestors[sha]

    def changes(self, before: Sha, after: Sha) -> dict[str, Content | None]:
        old, new = self.commits[before].files, self.commits[after].files
        return {path: new.get(path) for path in {*old, *new} if old.get(path) != new.get(path)}

    def merged_files(self, onto: Sha, head: Sha) -> Files:
        """The three-way merge from the last commit that both sides share."""
        base = self._merge_base(onto, head)
        ours, theirs = self.changes(base, onto), self.changes(base, head)
        clashing = [path for path in theirs if path in ours and ours[path] != theirs[path]]
        if clashing:
            raise Conflict(", ".join(sorted(clashing)))
        return patched(self.commits[onto].files, theirs)

    def move(self, ref: str, expected: Sha | None, to: Sha | None) -> bool:
        """Compare and swap; None stands for a ref that does not exist."""
        if self.refs.get(ref) != expected:
            return False
        if to is None:
            self.refs.pop(ref, None)
        else:
            self.refs[ref] = to
        return True

    def _merge_base(self, one: Sha, other: Sha) -> Sha:
        shared = self._ancestors[one] & self._ancestors[other]
        return max(shared, key=lambda sha: len(self._ancestors[sha]))

    def _tree(self, files: Files) -> Sha:
        key = frozenset(files.items())
        return self._trees.setdefault(key, Sha(f"t{len(self._trees)}"))


def patched(files: Files, changes: Mapping[str, Content | None]) -> Files:
    everything = {**files, **changes}
    return {path: content for path, content in everything.items() if content is not None}
