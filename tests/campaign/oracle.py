"""Merges and picks as people do it, with `git merge` and `git cherry-pick` in a checkout: nothing of ours is in it.

The checkout is sparse and holds no files, so that names which no file system takes do not matter. The attributes of
the repository are switched off, as a bare mirror knows none.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.repositories import ENVIRONMENT, Origin, as_text

NO_ATTRIBUTES = "* !merge -text -eol -ident -filter -working-tree-encoding !conflict-marker-size\n"
ITSELF = {"GIT_AUTHOR_NAME": "Oracle", "GIT_AUTHOR_EMAIL": "oracle@example.org", "HOME": "/nonexistent"}
IDENTITY = "%an\x1f%ae\x1f%ad"


class Pick(Struct, frozen=True):
    """What one commit becomes elsewhere."""

    tree: Sha
    identity: str
    """Who wrote it, and when."""
    message: str


class Speechless(Exception):
    """Git itself will not take these contents into an index, so there is nothing to compare with."""


class Oracle:
    def __init__(self, origin: Origin, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self._git("init", "--quiet", "--template=")
        git = folder / ".git"
        (git / "objects" / "info").mkdir(exist_ok=True)
        (git / "objects" / "info" / "alternates").write_text(f"{origin.path / 'objects'}\n")
        (git / "info").mkdir(exist_ok=True)
        (git / "info" / "attributes").write_text(NO_ATTRIBUTES)
        (git / "info" / "sparse-checkout").write_text("/no-file-is-named-so\n")
        for name, value in {"core.sparseCheckout": "true", "gc.auto": "0", "advice.detachedHead": "false"}.items():
            self._git("config", name, value)

    def merged(self, onto: Sha, head: Sha) -> Sha | None:
        """The tree of a merge, or None where it conflicts."""
        self._stand_on(onto)
        told = self._try("merge", "--quiet", "--no-commit", "--no-ff", "--strategy=ort", head)
        return self._tree_unless_in_conflict(told)

    def rebased(self, onto: Sha, head: Sha, beneath: Sequence[Sha] = ()) -> list[Pick] | None:
        """What the commits of a head become one by one, without merges and without those that change nothing."""
        others = (f"^{other}" for other in (onto, *beneath))
        commits = self._git("rev-list", "--reverse", "--topo-order", "--no-merges", head, *others).decode().split()
        return self._picked(onto, commits)

    def has_merges(self, onto: Sha, head: Sha) -> bool:
        return bool(self._git("rev-list", "--merges", "--max-count=1", head, f"^{onto}"))

    def merged_upon(self, onto: Sha, beneath: Sequence[Sha], head: Sha) -> Sha | None:
        """The tree of a merge with one that holds the same contents, and these in its history."""
        tree = self._git("rev-parse", f"{onto}^{{tree}}").decode().strip()
        parents = [option for parent in (onto, *beneath) for option in ("-p", parent)]
        return self.merged(Sha(self._git("commit-tree", tree, *parents, "-m", "ground").decode().strip()), head)

    def identities(self, old: Sha, new: Sha) -> list[Pick]:
        """The commits between two, along first parents, the oldest first."""
        form = f"%T%x00{IDENTITY}%x00%B%x00%x01"
        out = self._git("log", "--first-parent", "--reverse", "--date=raw", f"--format={form}", f"{old}..{new}")
        fields = (entry.lstrip("\n").split("\0") for entry in as_text(out).split("\x01")[:-1])
        return [Pick(Sha(tree), identity, message) for tree, identity, message, _ in fields]

    def tree(self, commit: Sha) -> Sha:
        return Sha(self._git("rev-parse", f"{commit}^{{tree}}").decode().strip())

    def _picked(self, onto: Sha, commits: list[str]) -> list[Pick] | None:
        self._stand_on(onto)
        if not commits:
            return []
        told = self._try("cherry-pick", "--keep-redundant-commits", "--allow-empty-message", *commits)
        if self._tree_unless_in_conflict(told) is None:
            return None
        made = self.identities(onto, Sha("HEAD"))
        trees = [self.tree(onto), *(pick.tree for pick in made)]
        return [pick for pick, before in zip(made, trees, strict=False) if pick.tree != before]

    def _stand_on(self, commit: Sha) -> None:
        told = self._try("reset", "--quiet", "--hard", commit)
        self._git("update-ref", "--no-deref", "HEAD", commit)
        if told.returncode != 0:
            raise Speechless(as_text(told.stderr))

    def _tree_unless_in_conflict(self, told: "subprocess.CompletedProcess[bytes]") -> Sha | None:
        if told.returncode == 0:
            return Sha(self._git("write-tree").decode().strip())
        if b"invalid path" in told.stderr:
            raise Speechless(as_text(told.stderr))
        if self._git("ls-files", "--unmerged") or b"CONFLICT" in told.stdout or b"unrelated" in told.stderr:
            return None
        raise Speechless(as_text(told.stdout + told.stderr))

    def _git(self, *arguments: str) -> bytes:
        told = self._try(*arguments)
        assert told.returncode == 0, (arguments, told.stderr)
        return told.stdout

    def _try(self, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        command = ["git", "-C", str(self._folder), *arguments]
        return subprocess.run(command, capture_output=True, check=False, env=ENVIRONMENT | ITSELF)
