"""Finds the heads that a pull request stands upon and that the target holds only under another name.

A squash or a rebase does not hold the head that it came from, but names it. Whoever stands upon that head would be
merged as if it brought all of it again, and what it takes back of it would be lost.
"""

from collections.abc import Sequence

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Commit, Mirror
from mergeyard.service import wording

MOST_LANDED = 500
"""Of those that came since: so many are searched for such heads."""


async def heads_beneath(mirror: Mirror, onto: Sha, commits: Sequence[Commit]) -> list[Sha]:
    """Among the commits that a pull request brings, its head last."""
    if len(commits) < 2:
        return []
    named = {wording.head_of(commit.message) for commit in await _landed(mirror, onto)}
    return [commit.sha for commit in commits if commit.sha in named]


async def _landed(mirror: Mirror, tip: Sha) -> list[Commit]:
    """Along first parents: what others merged beside them may claim anything."""
    known = {commit.sha: commit for commit in await mirror.commits(tip, without=[], limit=MOST_LANDED)}
    way = list[Commit]()
    while (commit := known.get(tip)) is not None:
        way.append(commit)
        tip = commit.parents[0] if commit.parents else Sha("")
    return way


async def ground(mirror: Mirror, onto: Sha, commits: Sequence[Commit]) -> Sha:
    """The same contents, with those heads in its history: then only what came upon them is merged."""
    beneath = await heads_beneath(mirror, onto, commits)
    if not beneath:
        return onto
    return await mirror.commit(await mirror.tree(onto), (onto, *beneath), wording.GROUND)
