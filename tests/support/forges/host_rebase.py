"""A rebase by a Git host: a real `git rebase`, which keeps the authors and messages of the commits."""

import subprocess
import tempfile
from collections.abc import Sequence

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Identity
from tests.support.repositories import ENVIRONMENT, Origin

REBASED_REF = "refs/internal/rebased"


GIT_DEFAULTS = ()
"""Commits that are on top of the tip stay as they are. Git leaves out commits whose patch the target branch had before,
even if it was reverted since."""
EVERY_COMMIT_AGAIN = ("--force-rebase", "--reapply-cherry-picks")


def rebase(origin: Origin, tip: Sha, head: Sha, committer: Identity, options: Sequence[str]) -> Sha | None:
    """The last commit, or None for a conflict."""
    named = {"GIT_COMMITTER_NAME": committer.name, "GIT_COMMITTER_EMAIL": committer.email}
    with tempfile.TemporaryDirectory() as folder:

        def git(*arguments: str) -> int:
            command = ["git", "-C", folder, *arguments]
            return subprocess.run(command, env=ENVIRONMENT | named, check=False, capture_output=True).returncode

        assert git("clone", "--quiet", "--shared", "--no-checkout", origin.url, ".") == 0
        assert git("checkout", "--quiet", "--detach", head) == 0
        if git("rebase", "--quiet", *options, tip) != 0:
            return None
        assert git("push", "--quiet", "--force", "origin", f"HEAD:{REBASED_REF}") == 0
    return origin.tip(REBASED_REF)
