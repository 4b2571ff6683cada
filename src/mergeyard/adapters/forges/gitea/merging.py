"""Merges pull requests with Gitea's merge call, marks pushed ones as merged, which Gitea does not detect, and prepares
the deletion of their branches."""

from mergeyard.adapters.forges.gitea import pull_requests, wire
from mergeyard.adapters.forges.gitea.pull_requests import PullRequests
from mergeyard.adapters.forges.http import ForgeClient, Reply, quote_segment
from mergeyard.domain.config import Config, MergeMethod
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
MAX_RETARGETED = 100


class Merging(PullRequests):
    def unsupported_reason(self, config: Config) -> None:
        """Gitea supports all methods, and any pushed commit can be marked as the merge of a pull request."""

    async def merge(self, repo: Repo, merge: forge.Merge) -> forge.MergeOutcome:
        client = await self._client_for(repo)
        outcome = await _find_outcome(client, merge)
        if outcome is not None:
            return outcome
        try:
            reply = await _send_merge(client, merge.number, _to_request(merge))
        except forge.HostUnavailable:
            refusal = await _check_dependencies(client, repo, merge)
            if refusal is None:
                raise
            return refusal
        detail = reply.detail
        if reply.status in FORBIDDEN_STATUSES:
            return forge.MergeForbidden(detail)
        if _is_transient(reply):
            self._mergeability_tracker.record_refusal(repo, merge.number, merge.head)
            return forge.NotMerged(detail)
        return await _find_outcome(client, merge) or await self._classify_refusal(client, repo, merge, reply)

    async def _classify_refusal(
        self, client: ForgeClient, repo: Repo, merge: forge.Merge, reply: Reply
    ) -> forge.MergeOutcome:
        """Refused, unless our account cannot merge there at all, a requirement is unmet, or checks are in progress.

        The reported mergeability is no help here: Gitea recomputes it after every attempt to merge.
        """
        detail = reply.detail
        if reply.is_success:
            raise forge.HostUnavailable(f"{reply.url} answered with success, but the pull request is not merged")
        if not await _can_merge(client, merge):
            return forge.MergeForbidden(detail)
        pull_request = await self.read_pull_request(repo, merge.number)
        is_waiting = pull_request is None or pull_request.unmet_requirements or await _has_pending_checks(client, merge)
        return forge.NotMerged(detail) if is_waiting else forge.MergeRefused(detail)

    async def find_merge_commit(self, repo: Repo, merge: forge.Merge) -> Sha | None:
        outcome = await _find_outcome(await self._client_for(repo), merge)
        return outcome.commit if isinstance(outcome, forge.Merged) else None

    async def mark_merged(self, repo: Repo, number: PullRequestNumber, head: Sha, commit: Sha) -> bool:
        """Does nothing if the author pushed: the new commits did not land, so the pull request stays open. Its head is
        the landed commit if the queue moved its branch."""
        client = await self._client_for(repo)
        payload = await _read(client, number)
        if payload is None or payload.merged:
            return True
        if payload.state != "open" or payload.head.sha not in (head, commit):
            return False
        reply = await _send_merge(client, number, {"Do": "manually-merged", "MergeCommitID": commit})
        if reply.is_success:
            return True
        payload = await _read(client, number)
        if payload is None or not payload.merged:
            raise forge.HostRefused(
                f"{repo}#{number} is on its target branch as {commit}, but cannot be marked as merged: "
                f"{reply.detail}. "
                "In the repository's settings, under pull requests, enable "
                '"Mark pull request as manually merged" (allow_manual_merge)'
            )
        return True

    async def close_pull_request(self, repo: Repo, number: PullRequestNumber) -> None:
        client = await self._client_for(repo)
        payload = await _read(client, number)
        if payload is not None and pull_requests.is_open(payload):
            (await client.send("PATCH", f"/pulls/{number}", {"state": "closed"})).raise_for_status()

    async def retarget_pull_requests(self, repo: Repo, branch: str, target: str) -> None:
        """Raises `HostRefused` if the branch must stay: it is the head of another open pull request, or Gitea refuses
        to change a base, for example because the head has another pull request into the target branch."""
        client = await self._client_for(repo)
        found = await client.get_all("/pulls", list[wire.PullRequestPayload], {"state": "open", "limit": 50})
        based = [payload for payload in found if payload.base.label == branch]
        if len(based) > MAX_RETARGETED or any(
            payload.head.label == branch and not pull_requests.is_fork(payload) for payload in found
        ):
            raise forge.HostRefused(
                f"{branch} of {repo} is the head of another open pull request, or the base of more than "
                f"{MAX_RETARGETED}: delete it when they are merged or closed"
            )
        for payload in based:
            (await client.send("PATCH", f"/pulls/{payload.number}", {"base": target})).raise_for_status()


async def _find_outcome(client: ForgeClient, merge: forge.Merge) -> forge.MergeOutcome | None:
    """The outcome if no merge call is needed, also after a lost response; None: the merge can be tried."""
    payload = await _read(client, merge.number)
    if payload is None:
        return forge.NotMerged("The pull request is gone.")
    if payload.base.label != merge.base_branch:
        return forge.NotMerged(f"The base branch of the pull request is now {payload.base.label}.")
    if payload.merged:
        return await _find_merged_head(client, payload, merge.head)
    if payload.state != "open":
        return forge.NotMerged("The pull request was closed.")
    if payload.head.sha != merge.head:
        return forge.NotMerged("The head of the pull request changed.")
    return forge.NotMerged("The pull request is a draft.") if payload.draft else None


async def _find_merged_head(client: ForgeClient, payload: wire.PullRequestPayload, head: Sha) -> forge.MergeOutcome:
    """The reported head follows its branch even after the merge. The head ref does not, so it names the commit that
    was merged."""
    head_ref = f"pull/{payload.number}/head"
    path = f"/git/refs/{quote_segment(head_ref)}"
    refs = await client.get(path, list[wire.GitRef], urgent=True) or []
    if [ref.object.sha for ref in refs if ref.ref == f"refs/{head_ref}"] != [head]:
        return forge.NotMerged("Another head of the pull request was merged.")
    if payload.merge_commit_sha is None:
        raise forge.HostUnavailable(f"{client.repo}#{payload.number} is merged, but Gitea does not report its commit")
    return forge.Merged(payload.merge_commit_sha)


async def _check_dependencies(client: ForgeClient, repo: Repo, merge: forge.Merge) -> forge.MergeOutcome | None:
    """Gitea answers with an internal error if the pull request has an open dependency."""
    open_ones = await pull_requests.list_open_dependencies(client, repo, merge.number)
    if not open_ones:
        return None
    return await _find_outcome(client, merge) or forge.MergeRefused(
        f"The pull request depends on {', '.join(open_ones)}, still open: close it or remove the dependency, then "
        "submit the pull request again."
    )


async def _has_pending_checks(client: ForgeClient, merge: forge.Merge) -> bool:
    contexts = pull_requests.select_required_contexts(await pull_requests.read_branch(client, merge.base_branch))
    statuses = await pull_requests.read_statuses(client, merge.head, "") if contexts else []
    return any(status.state is StatusState.PENDING for status in statuses if status.context in contexts)


async def _can_merge(client: ForgeClient, merge: forge.Merge) -> bool:
    """Whether our account is allowed to merge into the branch, with this method."""
    branch = await pull_requests.read_branch(client, merge.base_branch)
    repository = await client.get("", wire.Repository, urgent=True)
    can_merge = branch is not None and branch.user_can_merge
    return can_merge and repository is not None and wire.allows_method(repository, merge.method)


async def _send_merge(client: ForgeClient, number: PullRequestNumber, body: dict[str, str]) -> Reply:
    """With both spellings of the members, because the version is not known here."""
    body_for_all = body | {NEWER_NAMES[name]: value for name, value in body.items() if name in NEWER_NAMES}
    return await client.send("POST", f"/pulls/{number}/merge", body_for_all, urgent=True)


async def _read(client: ForgeClient, number: PullRequestNumber) -> wire.PullRequestPayload | None:
    return await client.get(f"/pulls/{number}", wire.PullRequestPayload, urgent=True)


def _to_request(merge: forge.Merge) -> dict[str, str]:
    return {
        "Do": METHODS[merge.method],
        "head_commit_id": merge.head,
        "MergeTitleField": merge.title,
        "MergeMessageField": merge.message,
    }


def _is_transient(reply: Reply) -> bool:
    detail = reply.detail
    if reply.status == CONFLICT:
        return PUSH_REJECTED_MARKER not in detail
    return reply.status == NOT_FOUND or RETRY_MARKER in detail
