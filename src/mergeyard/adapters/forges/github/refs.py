"""Reads in a few conditional calls what changed last: tips of branches, and pull requests with all that matters."""

import asyncio
from collections.abc import Collection, Mapping
from hashlib import sha1
from urllib.parse import quote

import msgspec

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.names import head_ref, meta_ref, place
from mergeyard.adapters.forges.github.repositories import lost
from mergeyard.adapters.forges.times import instant
from mergeyard.domain import ours
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import SECOND, Instant
from mergeyard.domain.repositories import Repo

LATEST = {"state": "all", "sort": "updated", "direction": "desc", "per_page": 100}
YOUNG = 2 * SECOND
"""GitHub tells the time in whole seconds: what happens in the rest of this one would not be seen."""


async def refs(caller: Caller, repo: Repo, branches: Collection[str], now: Instant) -> Mapping[str, Sha]:
    pulls = await caller.get(f"{place(repo)}/pulls", list[wire.Pull], LATEST)
    if pulls is None:
        raise lost(repo)
    found = dict[str, Sha]()
    for pull in pulls:
        if pull.fork or not pull.head.ref.startswith(ours.BRANCHES):
            found[head_ref(PrNumber(pull.number))] = Sha(pull.head.sha)
            found[meta_ref(PrNumber(pull.number))] = _digest(pull, now)
    ordered = sorted(branches)
    tips = await asyncio.gather(*(_tip(caller, repo, branch) for branch in ordered))
    return found | {f"refs/heads/{branch}": tip for branch, tip in zip(ordered, tips, strict=True) if tip}


async def _tip(caller: Caller, repo: Repo, branch: str) -> Sha | None:
    found = await caller.get(f"{place(repo)}/git/ref/heads/{quote(branch)}", wire.Ref)
    return found and Sha(found.object.sha)


def _digest(pull: wire.Pull, now: Instant) -> Sha:
    """Changes once more when the last change is no longer young."""
    labels, young = sorted(label.name for label in pull.labels), now - instant(pull.updated_at) < YOUNG
    facts = (pull.state, pull.draft, pull.title, pull.base.ref, pull.merged_at, labels, pull.updated_at, young)
    return Sha(sha1(msgspec.json.encode(facts), usedforsecurity=False).hexdigest())
