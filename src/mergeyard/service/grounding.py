"""Finds the heads that a pull request stands upon and that the target holds only under another name.

A squash or a rebase does not hold the head that it came from, but names it. Whoever stands upon that head would be
merged as if it brought all of it again, and what it takes back of it would be lost.
"""

from collections.abc import Sequence

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Mirror
from mergeyard.service import wording

MOST_LANDED = 500
"""Of those that came since: so many are searched for such heads."""


async def heads_beneath(mirror: Mirror, onto: Sha, commits: Sequence[Sha]) -> list[Sha]:
    """Among the commits that a pull request brings, its head last."""
    if len(commits) < 2:
        return []
    # What others merged beside the first parents may claim anything.
    landed = await mirror.last_first_parents(onto, limit=MOST_LANDED)
    named = {wording.head_of(commit.message) for commit in landed}
    return [commit for commit in commits if commit in named]


async def ground(mirror: Mirror, onto: Sha, commits: Sequence[Sha]) -> Sha:
    """The same contents, with those heads in its history: then only what came upon them is merged."""
    beneath = await heads_beneath(mirror, onto, commits)
    if not beneath:
        return onto
    return await mirror.commit(await mirror.tree(onto), (onto, *beneath), wording.GROUND)
