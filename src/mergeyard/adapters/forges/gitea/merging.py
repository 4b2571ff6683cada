"""Merges pull requests with Gitea's merge call, and marks pushed ones as merged: Gitea does not detect those."""

from mergeyard.adapters.forges.gitea import pull_requests, wire
from mergeyard.adapters.forges.gitea.checks import read_statuses
from mergeyard.adapters.forges.http import ForgeClient, Reply, extract_error_detail
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import StatusState
from mergeyard.ports import forge

METHODS = {MergeMethod.MERGE_COMMIT: "merge", MergeMethod.SQUASH: "squash", MergeMethod.REBASE: "rebase"}
NEWER_NAMES = {
    "Do": "do",
    "MergeTitleField": "merge_title_field",
    "MergeMessageField": "merge_message_field",
    "MergeCommitID": "merge_commit_id",
}
"""Member names since Gitea 1.26; earlier versions and Forgejo accept only the old ones."""
RETRY_MARKER = "try again later"
PUSH_REJECTED_MARKER = "PushRejected"
FORBIDDEN_STATUSES = (403, 423)
"""The token lacks a scope, or the repository is archived."""
NOT_FOUND, CONFLICT = 404, 409


class Merger:
    def __init__(self, client: ForgeClient, tracker: pull_requests.MergeabilityTracker) -> None:
        self._client = client
        self._tracker = tracker

    async def merge(self, repo: Repo, order: forge.Merge) -> forge.MergeOutcome:
        outcome = await self._known_outcome(repo, order)
        if outcome is not None:
            return outcome
        try:
            reply = await self._send_merge(repo, order.number, _to_request(order))
        except forge.HostUnavailable:
            refusal = await self._check_dependencies(repo, order)
            if refusal is None:
                raise
            return refusal
        return await self._classify_reply(repo, order, reply)

    async def find_merge_commit(self, repo: Repo, order: forge.Merge) -> Sha | None:
        outcome = await self._known_outcome(repo, order)
        return outcome.commit if isinstance(outcome, forge.Merged) else None

    async def mark_merged(self, repo: Repo, number: PullRequestNumber, head: Sha, commit: Sha) -> None:
        """Does nothing if the head changed: the new commits did not land, so the pull request stays open."""
        payload = await self._read(repo, number)
        if payload is None or payload.merged or payload.state != "open" or payload.head.sha != head:
            return
        reply = await self._send_merge(repo, number, {"Do": "manually-merged", "MergeCommitID": commit})
        if not reply.is_success and not await self._is_merged(repo, number):
            raise forge.HostRefused(
                f"{repo}#{number} landed as {commit}, but cannot be marked as merged: "
                f"{extract_error_detail(reply.body)}. "
                "In the repository's settings, under pull requests, enable "
                '"Mark pull request as manually merged" (allow_manual_merge)'
            )

    async def _known_outcome(self, repo: Repo, order: forge.Merge) -> forge.MergeOutcome | None:
        """The outcome if no merge call is needed, also after a lost response; None: the merge can be tried."""
        payload = await self._read(repo, order.number)
        if payload is None:
            return forge.NotMerged("The pull request is gone.")
        if payload.base.label != order.base_branch:
            return forge.NotMerged(f"The base branch of the pull request is now {payload.base.label}.")
        if payload.merged:
            return await self._find_merged_head(repo, payload, order.head)
        if payload.state != "open":
            return forge.NotMerged("The pull request was closed.")
        if payload.head.sha != order.head:
            return forge.NotMerged("The head of the pull request changed.")
        return forge.NotMerged("The pull request is a draft.") if payload.draft else None

    async def _find_merged_head(self, repo: Repo, payload: wire.PullRequestPayload, head: Sha) -> forge.MergeOutcome:
        """The reported head follows its branch even after the merge. The head ref does not, so it names the commit that
        was merged."""
        refs = await self._client.get_urgent(_head_ref_api_path(repo, payload.number), list[wire.GitRef]) or []
        if [ref.object.sha for ref in refs if ref.ref == pull_requests.head_ref(payload.number)] != [head]:
            return forge.NotMerged("Another head of the pull request was merged.")
        if payload.merge_commit_sha is None:
            raise forge.HostUnavailable(f"{repo}#{payload.number} is merged, but Gitea does not report by which commit")
        return forge.Merged(payload.merge_commit_sha)

    async def _check_dependencies(self, repo: Repo, order: forge.Merge) -> forge.MergeOutcome | None:
        """Gitea answers with an internal error if the pull request has an open dependency."""
        open_ones = await pull_requests.list_open_dependencies(self._client, repo, order.number)
        if not open_ones:
            return None
        return await self._known_outcome(repo, order) or forge.MergeRefused(
            f"The pull request depends on {', '.join(open_ones)}, still open: close it or remove the dependency, then "
            "submit the pull request again."
        )

    async def _classify_reply(self, repo: Repo, order: forge.Merge, reply: Reply) -> forge.MergeOutcome:
        detail = extract_error_detail(reply.body)
        if reply.status in FORBIDDEN_STATUSES:
            return forge.MergeForbidden(detail)
        if _is_transient(reply):
            self._tracker.record_refusal(repo, order.number, order.head)
            return forge.NotMerged(detail)
        return await self._known_outcome(repo, order) or await self._classify_refusal(repo, order, reply)

    async def _classify_refusal(self, repo: Repo, order: forge.Merge, reply: Reply) -> forge.MergeOutcome:
        """Refused, unless our account cannot merge there at all, or reviews or check results are still missing.

        The reported mergeability is no help here: Gitea recomputes it after every attempt to merge.
        """
        detail = extract_error_detail(reply.body)
        if reply.is_success:
            raise forge.HostUnavailable(f"{reply.url} answered with success, but the pull request is not merged")
        if not await self._can_merge(repo, order):
            return forge.MergeForbidden(detail)
        payload = await self._read(repo, order.number)
        is_waiting = (
            payload is None
            or await pull_requests.has_missing_reviews(self._client, repo, payload)
            or await self._has_pending_checks(repo, order)
        )
        return forge.NotMerged(detail) if is_waiting else forge.MergeRefused(detail)

    async def _has_pending_checks(self, repo: Repo, order: forge.Merge) -> bool:
        contexts = pull_requests.select_required_contexts(
            await pull_requests.read_branch(self._client, repo, order.base_branch)
        )
        statuses = await read_statuses(self._client, repo, order.head, "") if contexts else []
        return any(status.state is StatusState.PENDING for status in statuses if status.context in contexts)

    async def _can_merge(self, repo: Repo, order: forge.Merge) -> bool:
        """Whether our account is allowed to merge into the branch, with this method."""
        branch = await pull_requests.read_branch(self._client, repo, order.base_branch)
        repository = await self._client.get_urgent(wire.repo_api_path(repo), wire.Repository)
        can_merge = branch is not None and branch.user_can_merge
        return can_merge and repository is not None and wire.allows_method(repository, order.method)

    async def _is_merged(self, repo: Repo, number: PullRequestNumber) -> bool:
        payload = await self._read(repo, number)
        return payload is not None and payload.merged

    async def _send_merge(self, repo: Repo, number: PullRequestNumber, body: dict[str, str]) -> Reply:
        """With both spellings of the members, because the version is not known here."""
        body_for_all = body | {NEWER_NAMES[name]: value for name, value in body.items() if name in NEWER_NAMES}
        return await self._client.send("POST", f"{wire.pull_request_api_path(repo, number)}/merge", body_for_all)

    async def _read(self, repo: Repo, number: PullRequestNumber) -> wire.PullRequestPayload | None:
        return await self._client.get_urgent(wire.pull_request_api_path(repo, number), wire.PullRequestPayload)


def _to_request(order: forge.Merge) -> dict[str, str]:
    return {
        "Do": METHODS[order.method],
        "head_commit_id": order.head,
        "MergeTitleField": order.title,
        "MergeMessageField": order.message,
    }


def _head_ref_api_path(repo: Repo, number: PullRequestNumber) -> str:
    return f"{wire.repo_api_path(repo)}/git/refs/{wire.quote_segment(f'pull/{number}/head')}"


def _is_transient(reply: Reply) -> bool:
    detail = extract_error_detail(reply.body)
    if reply.status == CONFLICT:
        return PUSH_REJECTED_MARKER not in detail
    return reply.status == NOT_FOUND or RETRY_MARKER in detail
