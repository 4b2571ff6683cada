"""GitHub as an implementation of the ports `Host` and `Forge`: merges, labels, and the roles of users.

A merge reads the pull request first, so that the outcome is found when a response was lost.
"""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from mergeyard.adapters.forges.github import pull_requests, wire
from mergeyard.adapters.forges.github.diagnostics import Diagnostics
from mergeyard.adapters.forges.github.pull_requests import PullRequests
from mergeyard.adapters.forges.host import ForgeHost
from mergeyard.adapters.forges.http import MISSING_STATUSES, ForgeClient, Reply, quote_segment
from mergeyard.domain.config import Config, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.timestamps import SECOND
from mergeyard.ports.forge import Merge, Merged, MergeForbidden, MergeOutcome, MergeRefused, NotMerged

METHODS = {MergeMethod.MERGE_COMMIT: "merge", MergeMethod.SQUASH: "squash", MergeMethod.REBASE: "rebase"}
FORBIDDEN_STATUSES = (403, 404)
"""404 as well: the pull request was read just before, so it exists."""
DECIDED_STATUSES = (*FORBIDDEN_STATUSES, 405, 409, 422)
"""GitHub processed the request and did not merge."""
NOT_AUTHORIZED_MESSAGE = "not authorized"
FORBIDDEN_MESSAGES = (
    "not allowed on this",
    "must not contain merge commits",
    "through the merge queue",
    "Cannot update this protected ref",
    "cannot be automatically signed",
    NOT_AUTHORIZED_MESSAGE,
)
"""A setting forbids this merge method for all pull requests."""
TRANSIENT_MESSAGES = ("was modified", "already in progress")
PERMANENT_MESSAGES = ("can't be rebased", "cannot be rebased")
"""This pull request cannot be merged with this method. Every other refusal can be transient: GitHub computes
mergeability asynchronously."""
RETRY_DELAY_MS = 2 * SECOND
MAX_REBASED_COMMITS = 100
STACKED_MESSAGE = "Merging stacked PRs"
STACKED = (
    "This pull request belongs to a stack on GitHub. GitHub merges it only with a call that also merges the pull "
    "requests below it, which the queue does not use: remove it from the stack, and submit it again."
)


class Merging(ForgeHost):
    moves_heads_first = True
    """GitHub processes the refs of a push one by one, in an order that it does not document. A pull request whose base
    contains its new head before GitHub knows this head is closed instead of merged, and stays so."""

    def unsupported_reason(self, config: Config) -> None:
        """GitHub merges with all methods, and all settings."""

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:
        """Tries twice if GitHub says that we are not authorized: that can be a temporary error of GitHub."""
        client = await self._client_for(repo)
        outcome = await _try_merge(client, merge)
        if isinstance(outcome, MergeForbidden) and _contains_any(outcome.detail, (NOT_AUTHORIZED_MESSAGE,)):
            await self._clock.sleep(RETRY_DELAY_MS)
            outcome = await _try_merge(client, merge)
        return outcome

    async def find_merge_commit(self, repo: Repo, merge: Merge) -> Sha | None:
        payload = await pull_requests.fetch_pull_request(await self._client_for(repo), merge.number)
        outcome = _find_outcome(payload, merge)
        return outcome.commit if isinstance(outcome, Merged) else None


async def _try_merge(client: ForgeClient, merge: Merge) -> MergeOutcome:
    """GitHub's call compares the head but not the base branch, so the pull request is read first."""
    outcome = _find_outcome(await pull_requests.fetch_pull_request(client, merge.number), merge)
    if outcome is not None:
        return outcome
    reply = await client.send("PUT", f"/pulls/{merge.number}/merge", _to_request(merge), urgent=True)
    if reply.is_success:
        return Merged(Sha(reply.decode(wire.MergeResult).sha))
    if reply.status not in DECIDED_STATUSES:
        raise reply.to_error()
    payload = await pull_requests.fetch_pull_request(client, merge.number)
    return _find_outcome(payload, merge) or _classify_refusal(reply, payload, merge)


def _to_request(merge: Merge) -> dict[str, str]:
    """A rebase keeps the messages of the commits."""
    request = {"sha": merge.head, "merge_method": METHODS[merge.method]}
    messages = {"commit_title": merge.title, "commit_message": merge.message}
    return request if merge.method is MergeMethod.REBASE else request | messages


def _find_outcome(payload: wire.PullRequestPayload | None, merge: Merge) -> MergeOutcome | None:
    """The outcome if no merge call is needed; None: the merge can be tried."""
    if payload is None:
        return NotMerged("The pull request is gone.")
    if payload.head.sha != merge.head:
        return NotMerged("The head of the pull request changed.")
    if payload.base.ref != merge.base_branch:
        return NotMerged(f"The base branch of the pull request is now {payload.base.ref}.")
    if payload.merge_commit:
        return Merged(Sha(payload.merge_commit))
    if payload.state != "open":
        return NotMerged("The pull request was closed.")
    return MergeRefused(STACKED) if payload.stack else None


def _classify_refusal(reply: Reply, payload: wire.PullRequestPayload | None, merge: Merge) -> MergeOutcome:
    """A refusal is final only for known messages, or if the pull request shows why."""
    detail = reply.detail
    if _contains_any(detail, (STACKED_MESSAGE,)):
        return MergeRefused(STACKED)
    if reply.status in FORBIDDEN_STATUSES or _contains_any(detail, FORBIDDEN_MESSAGES):
        return MergeForbidden(detail)
    if payload is None or _contains_any(detail, TRANSIENT_MESSAGES):
        return NotMerged(detail)
    if payload.mergeable_state == "behind":
        return MergeForbidden(f"{detail.rstrip('.')}. {_explain_behind(merge)}")
    if merge.method is MergeMethod.REBASE and payload.commits > MAX_REBASED_COMMITS:
        return MergeRefused(
            f"GitHub rebases at most {MAX_REBASED_COMMITS} commits, and this pull request has {payload.commits}: "
            "squash some of them, or split the pull request."
        )
    return MergeRefused(detail) if _contains_any(detail, PERMANENT_MESSAGES) else NotMerged(detail)


def _explain_behind(merge: Merge) -> str:
    cause = f"A rule makes GitHub refuse pull requests that do not contain the tip of {merge.base_branch}"
    remedy = "turn off *Require branches to be up to date before merging*"
    if merge.is_fallback:
        return f"{cause}: {remedy}."
    return f"{cause}: {remedy}, or set `landing` to `tested_commit`."


def _contains_any(detail: str, messages: tuple[str, ...]) -> bool:
    return any(message.lower() in detail.lower() for message in messages)


FULL_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}/(?!\.{1,2}\Z)(?!.*\.git\Z)[A-Za-z0-9._-]{1,100}")


class GithubHost(Diagnostics, PullRequests, Merging):
    provider = "github"
    forge_name = "GitHub"
    page_path = "pull"
    comments_query: ClassVar[Mapping[str, int]] = {"per_page": 100}

    def _is_valid_full_name(self, name: str) -> bool:
        return FULL_NAME_PATTERN.fullmatch(name) is not None

    async def _read_labels(self, client: ForgeClient, number: PullRequestNumber) -> Iterable[str] | None:
        """From the pull request, which the caller has just read: that GET is answered from the cache."""
        payload = await client.get(f"/pulls/{number}", wire.PullRequestPayload)
        return payload and [label.name for label in payload.labels]

    async def remove_label(self, repo: Repo, number: PullRequestNumber, label: str) -> None:
        reply = await (await self._client_for(repo)).send("DELETE", f"/issues/{number}/labels/{quote_segment(label)}")
        reply.raise_for_status(allowed=MISSING_STATUSES)

    async def can_write(self, repo: Repo, user: str, branch: str) -> bool:  # noqa: ARG002
        return (await _read_role(await self._client_for(repo), user)).can_write

    async def can_maintain(self, repo: Repo, user: str) -> bool:
        return (await _read_role(await self._client_for(repo), user)).can_maintain


async def _read_role(client: ForgeClient, user: str) -> wire.Role:
    """An empty name is that of a deleted account, which has no role."""
    role = await client.get(f"/collaborators/{quote_segment(user)}/permission", wire.Role) if user else None
    return role or wire.Role("none")
