"""Fake Git repository: commits, three-way merges per path, and refs with compare-and-swap."""

from collections.abc import Callable, Collection, Mapping

from msgspec import Struct

from mergeyard.domain.ids import Sha
from mergeyard.domain.states import CheckState

Content = str
Files = Mapping[str, Content]


class Commit(Struct, frozen=True):
    parents: tuple[Sha, ...]
    files: Files
    tree: Sha
    message: str


class MergeConflict(Exception):
    """Both sides changed the same paths."""


class FakeRepository:
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

    def diff(self, before: Sha, after: Sha) -> dict[str, Content | None]:
        old, new = self.commits[before].files, self.commits[after].files
        return {path: new.get(path) for path in {*old, *new} if old.get(path) != new.get(path)}

    def merge_files(self, onto: Sha, head: Sha) -> Files:
        """Three-way merge from the last commit that both sides share."""
        base = self._merge_base(onto, head)
        ours, theirs = self.diff(base, onto), self.diff(base, head)
        conflicting = [path for path in theirs if path in ours and ours[path] != theirs[path]]
        if conflicting:
            raise MergeConflict(", ".join(sorted(conflicting)))
        return apply_changes(self.commits[onto].files, theirs)

    def move_ref(self, ref: str, expected: Sha | None, to: Sha | None) -> bool:
        """Compare-and-swap; None means that the ref does not exist."""
        if self.refs.get(ref) != expected:
            return False
        if to is None:
            self.refs.pop(ref, None)
        else:
            self.refs[ref] = to
        return True

    def _merge_base(self, first: Sha, second: Sha) -> Sha:
        shared = self._ancestors[first] & self._ancestors[second]
        return max(shared, key=lambda sha: len(self._ancestors[sha]))

    def _tree(self, files: Files) -> Sha:
        key = frozenset(files.items())
        return self._trees.setdefault(key, Sha(f"t{len(self._trees)}"))


def apply_changes(files: Files, changes: Mapping[str, Content | None]) -> Files:
    combined = {**files, **changes}
    return {path: content for path, content in combined.items() if content is not None}


class CheckRules:
    """Which file contents fail the tests: alone, in combination, or unless another content repairs them."""

    def __init__(self) -> None:
        self.failing: set[Content] = set()
        self.failing_together: set[frozenset[Content]] = set()
        self.repaired_by: dict[Content, Content] = {}
        """A failing content, and the content whose presence repairs it."""

    def passes(self, files: Files) -> bool:
        contents = set(files.values())
        failing = {bad for bad in self.failing & contents if self.repaired_by.get(bad) not in contents}
        return not failing and not any(group <= contents for group in self.failing_together)


class FakeChecks:
    """Check results by commit and name. A result is determined once and never changes."""

    def __init__(self, repository: FakeRepository, rules: CheckRules, is_flaky: Callable[[], bool]) -> None:
        self.repository = repository
        self.rules = rules
        self.is_flaky = is_flaky
        self.results: dict[Sha, dict[str, CheckState]] = {}

    def report(self, commit: Sha, names: Collection[str]) -> None:
        passes = self.rules.passes(self.repository.commits[commit].files)
        for name in names:
            failed = not passes or self.is_flaky()
            self.results.setdefault(commit, {}).setdefault(name, CheckState.FAILED if failed else CheckState.PASSED)

    def read_checks(self, commit: Sha) -> dict[str, CheckState]:
        return dict(self.results.get(commit, {}))

    def list_passed(self, commit: Sha) -> frozenset[str]:
        return frozenset(name for name, state in self.read_checks(commit).items() if state is CheckState.PASSED)
