"""Merges and cherry-picks with `git merge` and `git cherry-pick` in a checkout, without any code of the product.

The checkout is sparse and contains no files, so that names which no file system accepts do not matter. The attributes
of the repository are disabled, as in a bare mirror.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.repositories import ENVIRONMENT, Origin, to_text

NO_ATTRIBUTES = "* !merge -text -eol -ident -filter -working-tree-encoding !conflict-marker-size\n"
IDENTITY_VARIABLES = {"GIT_AUTHOR_NAME": "Oracle", "GIT_AUTHOR_EMAIL": "oracle@example.org", "HOME": "/nonexistent"}
OWN_COMMITS = ("--reverse", "--topo-order", "--no-merges")
IDENTITY = "%an\x1f%ae\x1f%ad"


class Pick(Struct, frozen=True):
    """What one commit becomes on another base."""

    tree: Sha
    identity: str
    """Author and time."""
    message: str


class NotComparable(Exception):
    """Git refuses these contents in an index, so there is nothing to compare with."""


class Oracle:
    def __init__(self, origin: Origin, folder: Path) -> None:
        self._folder = folder
        self._origin = origin
        folder.mkdir()
        self._git("init", "--quiet", "--template=")
        git = folder / ".git"
        (git / "objects" / "info").mkdir(exist_ok=True)
        (git / "objects" / "info" / "alternates").write_text(f"{origin.path / 'objects'}\n")
        (git / "info").mkdir(exist_ok=True)
        (git / "info" / "attributes").write_text(NO_ATTRIBUTES)
        (git / "info" / "sparse-checkout").write_text("/no-file-has-this-name\n")
        settings = {
            "core.sparseCheckout": "true",
            "gc.auto": "0",
            "advice.detachedHead": "false",
            "merge.directoryRenames": "false",
        }
        for name, value in settings.items():
            self._git("config", name, value)

    def merged_tree(self, onto: Sha, head: Sha) -> Sha | None:
        """The tree of a merge, or None for a conflict."""
        self._check_out(onto)
        result = self._try("merge", "--quiet", "--no-commit", "--no-ff", "--strategy=ort", head)
        return self._tree_unless_in_conflict(result)

    def changes_nothing(self, onto: Sha, head: Sha) -> bool:
        """Whether a merge of the head changes nothing: everything that it has is there."""
        return self._origin.merged_tree(onto, head) == self.tree(onto)

    def rebased_commits(self, onto: Sha, head: Sha, ahead: Sequence[Sha] = ()) -> list[Pick] | None:
        """What the commits of a head become one by one, without merges and without empty ones."""
        commits = self._git("rev-list", *OWN_COMMITS, head, *self._without(onto, ahead)).decode().split()
        return self._picked(onto, commits)

    def identities(self, onto: Sha, head: Sha, ahead: Sequence[Sha]) -> list[str]:
        """The authors and times of the commits of a head, oldest first, without merges; its own if there are none."""
        form = ("log", "--date=raw", f"--format={IDENTITY}")
        found = self._git(*form, *OWN_COMMITS, head, *self._without(onto, ahead)) or self._git(*form, "-1", head)
        return to_text(found).splitlines()

    def _without(self, onto: Sha, ahead: Sequence[Sha]) -> list[str]:
        return [f"^{other}" for other in (onto, *ahead)]

    def has_merges(self, onto: Sha, head: Sha) -> bool:
        return bool(self._git("rev-list", "--merges", "--max-count=1", head, f"^{onto}"))

    def merged_tree_with_heads(self, onto: Sha, ahead: Sequence[Sha], head: Sha) -> Sha | None:
        """The tree of a merge onto a commit with the same contents that also has these heads in its history."""
        tree = self._git("rev-parse", f"{onto}^{{tree}}").decode().strip()
        parents = [option for parent in (onto, *ahead) for option in ("-p", parent)]
        return self.merged_tree(Sha(self._git("commit-tree", tree, *parents, "-m", "base").decode().strip()), head)

    def list_commits(self, old: Sha, new: Sha) -> list[Pick]:
        """The commits between two, along first parents, oldest first."""
        form = f"%T%x00{IDENTITY}%x00%B%x00%x01"
        out = self._git("log", "--first-parent", "--reverse", "--date=raw", f"--format={form}", f"{old}..{new}")
        fields = (entry.lstrip("\n").split("\0") for entry in to_text(out).split("\x01")[:-1])
        return [Pick(Sha(tree), identity, message) for tree, identity, message, _ in fields]

    def tree(self, commit: Sha) -> Sha:
        return Sha(self._git("rev-parse", f"{commit}^{{tree}}").decode().strip())

    def _picked(self, onto: Sha, commits: list[str]) -> list[Pick] | None:
        self._check_out(onto)
        if not commits:
            return []
        result = self._try("cherry-pick", "--keep-redundant-commits", "--allow-empty-message", *commits)
        if self._tree_unless_in_conflict(result) is None:
            return None
        made = self.list_commits(onto, Sha("HEAD"))
        trees = [self.tree(onto), *(pick.tree for pick in made)]
        return [pick for pick, before in zip(made, trees, strict=False) if pick.tree != before]

    def _check_out(self, commit: Sha) -> None:
        result = self._try("reset", "--quiet", "--hard", commit)
        self._git("update-ref", "--no-deref", "HEAD", commit)
        if result.returncode != 0:
            raise NotComparable(to_text(result.stderr))

    def _tree_unless_in_conflict(self, result: "subprocess.CompletedProcess[bytes]") -> Sha | None:
        if result.returncode == 0:
            return Sha(self._git("write-tree").decode().strip())
        if b"invalid path" in result.stderr:
            raise NotComparable(to_text(result.stderr))
        if self._git("ls-files", "--unmerged") or b"CONFLICT" in result.stdout or b"unrelated" in result.stderr:
            return None
        raise NotComparable(to_text(result.stdout + result.stderr))

    def _git(self, *arguments: str) -> bytes:
        result = self._try(*arguments)
        assert result.returncode == 0, (arguments, result.stderr)
        return result.stdout

    def _try(self, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        command = ["git", "-C", str(self._folder), *arguments]
        return subprocess.run(command, capture_output=True, check=False, env=ENVIRONMENT | IDENTITY_VARIABLES)
