"""Reads pull requests and their mergeability from GitHub, manages draft pull requests, and lists refs."""

import asyncio
from collections.abc import Collection, Mapping
from hashlib import sha1
from urllib.parse import quote

import msgspec

from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.checks import is_blocked_only_by_own_status
from mergeyard.adapters.forges.http import ForgeClient, to_instant
from mergeyard.domain import ids
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import PullRequest
from mergeyard.domain.states import Mergeability
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import DraftPullRequest

MERGEABLE_STATES = frozenset({"clean", "unstable", "has_hooks", "behind", "draft"})
"""`behind` and `unstable` count as mergeable: the queue updates the branch and runs the checks itself. `draft` is
reported in a field of its own."""


async def fetch_pull_request(
    client: ForgeClient, repo: Repo, number: PullRequestNumber
) -> wire.PullRequestPayload | None:
    """Can spend the rate-limit reserve, because every landing reads its pull requests first. None only if there is no
    such pull request."""
    pull_request = await client.get_urgent(f"{wire.repo_api_path(repo)}/pulls/{number}", wire.PullRequestPayload)
    if pull_request is None:
        await wire.ensure_repository_visible(client, repo)
    return pull_request


async def read_pull_request(
    client: ForgeClient, repo: Repo, number: PullRequestNumber, clock: Clock
) -> PullRequest | None:
    payload = await fetch_pull_request(client, repo, number)
    if payload is None:
        return None
    mergeability = derive_mergeability(payload)
    if is_blocked(payload) and await is_blocked_only_by_own_status(client, repo, payload, clock):
        mergeability = Mergeability.MERGEABLE
    return PullRequest(
        number=number,
        head=Sha(payload.head.sha),
        base_branch=payload.base.ref,
        head_branch=payload.head.ref,
        title=payload.title,
        author=payload.user.login if payload.user else "",
        is_open=payload.state == "open",
        draft=payload.draft,
        fork=payload.is_fork,
        mergeability=mergeability,
        merged_into=payload.base.ref if payload.merged_at else None,
    )


def derive_mergeability(payload: wire.PullRequestPayload) -> Mergeability:
    if payload.state != "open":
        return Mergeability.UNKNOWN
    if payload.mergeable is None or payload.mergeable_state == "unknown":
        return Mergeability.CHECKING
    is_mergeable = payload.mergeable and payload.mergeable_state in MERGEABLE_STATES
    return Mergeability.MERGEABLE if is_mergeable else Mergeability.NOT_MERGEABLE


def is_blocked(payload: wire.PullRequestPayload) -> bool:
    """Blocked by rules of the base branch, not by a conflict."""
    return payload.state == "open" and payload.mergeable is True and payload.mergeable_state == "blocked"


async def open_draft(client: ForgeClient, repo: Repo, draft: DraftPullRequest) -> None:
    """Idempotent: does nothing if the test branch has an open pull request."""
    if await _list_open_drafts(client, repo, draft.branch):
        return
    body = {"head": draft.branch, "base": draft.base_branch, "title": draft.title, "body": draft.text, "draft": True}
    reply = await client.send("POST", f"{wire.repo_api_path(repo)}/pulls", body)
    reply.raise_for_status()


async def close_draft(client: ForgeClient, repo: Repo, branch: str) -> None:
    for draft in await _list_open_drafts(client, repo, branch):
        reply = await client.send("PATCH", f"{wire.repo_api_path(repo)}/pulls/{draft.number}", {"state": "closed"})
        reply.raise_for_status()


async def _list_open_drafts(client: ForgeClient, repo: Repo, branch: str) -> list[wire.PullRequestPayload]:
    query = {"head": f"{repo.owner}:{branch}", "state": "open"}
    found = await client.get_all(f"{wire.repo_api_path(repo)}/pulls", list[wire.PullRequestPayload], query)
    return [pull_request for pull_request in found if pull_request.head.ref == branch and not pull_request.is_fork]


LATEST_QUERY = {"state": "all", "sort": "updated", "direction": "desc", "per_page": 100}
SETTLING_MS = 2 * SECOND
"""GitHub's timestamps have a resolution of one second: a second change in the same second does not alter them."""


async def read_refs(client: ForgeClient, repo: Repo, branches: Collection[str], now: Instant) -> Mapping[str, Sha]:
    pull_requests = await client.get(f"{wire.repo_api_path(repo)}/pulls", list[wire.PullRequestPayload], LATEST_QUERY)
    if pull_requests is None:
        raise wire.build_not_visible_error(repo)
    found = dict[str, Sha]()
    for payload in pull_requests:
        if payload.is_fork or not payload.head.ref.startswith(ids.TEST_BRANCH_PREFIX):
            found[wire.head_ref(PullRequestNumber(payload.number))] = Sha(payload.head.sha)
            found[wire.meta_ref(PullRequestNumber(payload.number))] = _metadata_digest(payload, now)
    ordered = sorted(branches)
    tips = await asyncio.gather(*(_read_branch_tip(client, repo, branch) for branch in ordered))
    return found | {f"refs/heads/{branch}": tip for branch, tip in zip(ordered, tips, strict=True) if tip}


async def _read_branch_tip(client: ForgeClient, repo: Repo, branch: str) -> Sha | None:
    found = await client.get(f"{wire.repo_api_path(repo)}/git/ref/heads/{quote(branch)}", wire.GitRef)
    return found and Sha(found.object.sha)


def _metadata_digest(payload: wire.PullRequestPayload, now: Instant) -> Sha:
    """Changes with the metadata, and once more when the last change is older than `SETTLING_MS`, so that a change in
    the same second is not missed."""
    labels = sorted(label.name for label in payload.labels)
    is_settling = now - to_instant(payload.updated_at) < SETTLING_MS
    metadata = (
        payload.state,
        payload.draft,
        payload.title,
        payload.base.ref,
        payload.merged_at,
        labels,
        payload.updated_at,
        is_settling,
    )
    return Sha(sha1(msgspec.json.encode(metadata), usedforsecurity=False).hexdigest())
