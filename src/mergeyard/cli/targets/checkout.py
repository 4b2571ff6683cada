"""Reads the history of a checkout with the git and the settings of whoever stands in it."""

import subprocess
from pathlib import Path

from mergeyard.domain.ids import Sha


class CannotTell(Exception):
    """The checkout does not hold what is needed, and the words tell how to get it."""


class Checkout:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def commit(self, revision: str) -> Sha:
        found = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if found.returncode:
            raise CannotTell(
                f"There is no commit {revision} in this checkout: fetch it, or name another. {said(found)}"
            )
        return Sha(found.stdout.decode().strip())

    def changed_paths(self, base: Sha, head: Sha) -> set[str]:
        """What the head changed since it left the base; a file that was moved counts with both of its names."""
        left_at = self._git("merge-base", "--all", base, head)
        if left_at.returncode:
            raise CannotTell(
                f"{head[:12]} and {base[:12]} have no history in common here. "
                f"A shallow clone is not enough: fetch both with all their history. {said(left_at)}"
            )
        return {path for start in left_at.stdout.decode().split() for path in self._paths_between(start, head)}

    def file(self, commit: Sha, path: str) -> bytes | None:
        listed = self._git("ls-tree", "-z", "--full-tree", commit, "--", path)
        if listed.returncode:
            raise CannotTell(f"Git cannot list {commit[:12]}. {said(listed)}")
        if not listed.stdout:
            return None
        content = self._git("cat-file", "blob", f"{commit}:{path}")
        if content.returncode:
            raise CannotTell(f"Git cannot read {path} of {commit[:12]}. {said(content)}")
        return content.stdout

    def _paths_between(self, old: str, new: str) -> list[str]:
        options = ("-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none")
        listed = self._git("diff-tree", *options, old, new)
        if listed.returncode:
            raise CannotTell(f"Git cannot compare {old[:12]} with {new[:12]}. {said(listed)}")
        return listed.stdout.decode(errors="surrogateescape").split("\0")[:-1]

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(["git", *arguments], cwd=self._folder, capture_output=True, check=False)
        except FileNotFoundError:
            raise CannotTell("There is no git on this machine: install it.") from None


def said(answer: subprocess.CompletedProcess[bytes]) -> str:
    return answer.stderr.decode(errors="replace").strip()
