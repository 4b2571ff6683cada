"""Merges pull requests with GitHub's merge call, and finds the outcome when the response was lost."""

from mergeyard.adapters.forges.github import pull_requests, wire
from mergeyard.adapters.forges.host import ForgeHost
from mergeyard.adapters.forges.http import ForgeClient, Reply, extract_error_detail
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import Repo, Sha
from mergeyard.ports.forge import Merge, Merged, MergeForbidden, MergeOutcome, MergeRefused, NotMerged

METHODS = {MergeMethod.MERGE_COMMIT: "merge", MergeMethod.SQUASH: "squash", MergeMethod.REBASE: "rebase"}
FORBIDDEN_STATUSES = (403, 404)
"""404 as well: the pull request was read just before, so it exists."""
DECIDED_STATUSES = (*FORBIDDEN_STATUSES, 405, 409, 422)
"""GitHub processed the request and did not merge."""
FORBIDDEN_MESSAGES = (
    "not allowed on this",
    "must not contain merge commits",
    "through the merge queue",
    "Cannot update this protected ref",
    "not authorized",
)
"""A setting forbids this merge method for all pull requests."""
PERMANENT_MESSAGES = ("can't be rebased", "cannot be rebased")
"""This pull request cannot be merged with this method. Every other refusal can be transient: GitHub computes
mergeability asynchronously."""


class Merging(ForgeHost):
    def unsupported_reason(self, method: MergeMethod, landing: LandingMethod) -> str | None:
        if landing is LandingMethod.PROVIDER_MERGE or method is MergeMethod.MERGE_COMMIT:
            return None
        return (
            "GitHub shows a pull request as merged only when its own commits are on the target branch, which is not "
            f"the case with `{method}`, or when GitHub merged it: set `landing` to `provider_merge`, or `mergeMethod` "
            "to `merge_commit`."
        )

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:
        """GitHub's call compares the head but not the base branch, so the pull request is read first."""
        client = await self._client_for(repo)
        outcome = await _find_outcome(client, merge)
        if outcome is not None:
            return outcome
        reply = await client.send("PUT", f"/pulls/{merge.number}/merge", _to_request(merge))
        if reply.is_success:
            return Merged(Sha(reply.decode(wire.MergeResult).sha))
        if reply.status not in DECIDED_STATUSES:
            raise reply.to_error()
        return await _find_outcome(client, merge) or _classify_refusal(reply)

    async def find_merge_commit(self, repo: Repo, merge: Merge) -> Sha | None:
        outcome = await _find_outcome(await self._client_for(repo), merge)
        return outcome.commit if isinstance(outcome, Merged) else None


def _to_request(merge: Merge) -> dict[str, str]:
    """A rebase keeps the messages of the commits."""
    request = {"sha": merge.head, "merge_method": METHODS[merge.method]}
    messages = {"commit_title": merge.title, "commit_message": merge.message}
    return request if merge.method is MergeMethod.REBASE else request | messages


async def _find_outcome(client: ForgeClient, merge: Merge) -> Merged | NotMerged | None:
    """The outcome if no merge call is needed; None: the merge can be tried."""
    payload = await pull_requests.fetch_pull_request(client, merge.number)
    if payload is None:
        return NotMerged("The pull request is gone.")
    if payload.head.sha != merge.head:
        return NotMerged("The head of the pull request changed.")
    if payload.base.ref != merge.base_branch:
        return NotMerged(f"The base branch of the pull request is now {payload.base.ref}.")
    if payload.merged_at and payload.merge_commit_sha:
        return Merged(Sha(payload.merge_commit_sha))
    return None if payload.state == "open" else NotMerged("The pull request was closed.")


def _classify_refusal(reply: Reply) -> MergeOutcome:
    """A refusal is final only for known messages."""
    detail = extract_error_detail(reply.body)
    if reply.status in FORBIDDEN_STATUSES or _contains_any(detail, FORBIDDEN_MESSAGES):
        return MergeForbidden(detail)
    return MergeRefused(detail) if _contains_any(detail, PERMANENT_MESSAGES) else NotMerged(detail)


def _contains_any(detail: str, messages: tuple[str, ...]) -> bool:
    return any(message.lower() in detail.lower() for message in messages)
