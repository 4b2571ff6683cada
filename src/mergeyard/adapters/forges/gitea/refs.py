"""The refs by which a repository tells that something happened."""

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator
from hashlib import sha1

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitea.doubts import Doubts
from mergeyard.adapters.forges.gitea.places import place_of
from mergeyard.adapters.forges.gitea.protection import branch_of
from mergeyard.adapters.forges.gitea.repositories import must_be_there
from mergeyard.adapters.forges.gitea.wire import Pull
from mergeyard.domain import ours
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.repositories import Repo

EVERY_HEAD = "refs/pull/*/head"
OF_A_PULL = re.compile(r"refs/pull/([1-9][0-9]*)/(?:head|meta)")
LATEST = {"state": "all", "sort": "recentupdate", "limit": 50}
"""More than this it gives nobody at once, if it is not told to."""


def head_ref(number: PrNumber) -> str:
    return f"refs/pull/{number}/head"


def number_of(ref: str) -> PrNumber | None:
    found = OF_A_PULL.fullmatch(ref)
    return PrNumber(int(found[1])) if found else None


async def refs_that_tell(caller: Caller, doubts: Doubts, repo: Repo, branches: Collection[str]) -> dict[str, Sha]:
    tips, pulls = await asyncio.gather(_tips(caller, repo, branches), _latest(caller, repo))
    return tips | dict(_signs(doubts, repo, pulls))


async def _tips(caller: Caller, repo: Repo, names: Collection[str]) -> dict[str, Sha]:
    found = await asyncio.gather(*(branch_of(caller, repo, name) for name in names))
    return {f"refs/heads/{name}": branch.commit.id for name, branch in zip(names, found, strict=True) if branch}


async def _latest(caller: Caller, repo: Repo) -> list[Pull]:
    pulls = await caller.get(f"{place_of(repo)}/pulls", list[Pull], LATEST)
    if pulls is None:
        await must_be_there(caller, repo)
    return pulls or []


def _signs(doubts: Doubts, repo: Repo, pulls: Iterable[Pull]) -> Iterator[tuple[str, Sha]]:
    for pull in pulls:
        if not pull.head.label.startswith(ours.BRANCHES):
            yield head_ref(pull.number), Sha(pull.head.sha)
            yield f"refs/pull/{pull.number}/meta", _sign(pull, doubts.judge_again(repo, pull))


def _sign(pull: Pull, judged: str) -> Sha:
    labels = sorted(label.name for label in pull.labels or ())
    told = (pull.state, pull.merged, pull.draft, pull.base.label, pull.title, labels, pull.comments, pull.updated_at)
    return Sha(sha1(repr((*told, judged)).encode(), usedforsecurity=False).hexdigest())
