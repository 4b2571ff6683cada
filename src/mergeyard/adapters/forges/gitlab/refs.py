"""Reads what changes when somebody pushes, or does anything to a merge request."""

from collections.abc import Collection
from hashlib import sha1

import msgspec
from msgspec.structs import replace

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitlab.naming import head_ref, meta_ref, project_of, segment
from mergeyard.adapters.forges.gitlab.wire import Branch, MergeRequest, Rights
from mergeyard.domain import ours
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.repositories import Repo
from mergeyard.ports.host import HostTrouble

LATEST = {"state": "all", "scope": "all", "order_by": "updated_at", "sort": "desc", "per_page": 100}


async def read_refs(caller: Caller, repo: Repo, branches: Collection[str]) -> dict[str, Sha]:
    project, found = project_of(repo), dict[str, Sha]()
    for name in branches:
        branch = await caller.get(f"{project}/repository/branches/{segment(name)}", Branch)
        if branch is not None:
            found[f"refs/heads/{name}"] = Sha(branch.commit.id)
    requests = await caller.get(f"{project}/merge_requests", list[MergeRequest], LATEST)
    if requests is None:
        raise HostTrouble(f"the merge requests of {repo} are not there, or no longer for us")
    for shown in requests:
        if not shown.source_branch.startswith(ours.BRANCHES):
            found |= _refs_of(shown)
    return found


def _refs_of(shown: MergeRequest) -> dict[str, Sha]:
    number = PrNumber(shown.iid)
    head = {} if shown.sha is None else {head_ref(number): Sha(shown.sha)}
    return head | {meta_ref(number): _digest(shown)}


def _digest(shown: MergeRequest) -> Sha:
    """Of all that people do to it. What GitLab thinks of merging it flickers at all of them whenever their target
    moves, which is no news."""
    done = replace(shown, merge_status="", detailed_merge_status="", merge_error=None, user=Rights())
    return Sha(sha1(msgspec.json.encode(done), usedforsecurity=False).hexdigest())
