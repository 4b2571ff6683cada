"""Reads the branch that somebody names for a pull request, or tells them what is wrong with it."""

from pathlib import Path

from mergeyard.adapters.host_plain.process import GitFailed, git
from mergeyard.adapters.host_plain.refs import refs_below
from mergeyard.domain.ids import Sha

MAX_SUBJECT_BYTES = 1024 * 1024


class Refusal(Exception):
    """What was asked cannot be done; the words say what can."""


async def tip_of(folder: Path, branch: str) -> Sha:
    ref = f"refs/heads/{branch}"
    await require_name(folder, branch)
    tips = await refs_below(folder, ref)
    if ref not in tips:
        raise Refusal(f"There is no branch {branch} in {folder}. Push it first, or name another with --head.")
    return tips[ref]


async def require_name(folder: Path, branch: str) -> None:
    try:
        await git(folder, "check-ref-format", f"refs/heads/{branch}")
    except (GitFailed, ValueError):
        raise Refusal(f"{branch!r} cannot be the name of a branch.") from None


async def subject_and_author(folder: Path, commit: Sha) -> tuple[str, str]:
    """Read by plumbing: `git show` would run the programs that the repository's own configuration names."""
    fields = ("--format=%s%x00%an", "--no-commit-header", "--max-count=1", "--end-of-options", commit)
    shown = await git(folder, "rev-list", *fields, max_bytes=MAX_SUBJECT_BYTES)
    subject, _, author = shown.decode(errors="replace").strip().partition("\0")
    return subject, author
