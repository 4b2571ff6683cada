"""Merges merge requests with GitLab's merge call, and classifies why it was refused."""

from collections.abc import Iterable

from mergeyard.adapters.forges.gitlab import checks, wire
from mergeyard.adapters.forges.gitlab.merge_requests import PIPELINE_STATUSES, UNDECIDED_STATUSES
from mergeyard.adapters.forges.host import ForgeHost
from mergeyard.adapters.forges.http import ForgeClient, Reply, extract_error_detail, to_instant
from mergeyard.domain import ids
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import Repo, Sha
from mergeyard.domain.pull_requests import CHECK_STATE_BY_STATUS_STATE, Status, StatusState
from mergeyard.domain.states import SATISFIED_CHECK_STATES
from mergeyard.ports.forge import HostUnavailable, Merge, Merged, MergeForbidden, MergeOutcome, MergeRefused, NotMerged

NO_REBASE = (
    "GitLab cannot rebase a merge request while it merges it, and shows one that was rebased elsewhere as unmerged: "
    "set mergeMethod to merge_commit, or to squash with landing provider_merge."
)
NO_PUSHED_SQUASH = (
    "GitLab shows a squashed merge request as merged only if GitLab squashes it: set landing to provider_merge."
)
ONLY_FAST_FORWARD = (
    "The project merges by fast-forward only: choose a merge method with merge commits in its settings "
    "(Settings > Merge requests), or set landing to tested_commit."
)
ALWAYS_SQUASHED = (
    "The project squashes every merge request: allow merging without (Settings > Merge requests > Squash commits), "
    "or set mergeMethod to squash."
)
NEVER_SQUASHED = (
    "The project does not allow squashing: allow it (Settings > Merge requests > Squash commits), "
    "or set mergeMethod to merge_commit."
)
MERGE_NOT_ALLOWED = (
    "The account of Mergeyard is not allowed to merge into this branch: allow it "
    "(Settings > Repository > Protected branches)."
)
NO_PIPELINE = (
    "GitLab requires a successful pipeline of the head: run it again, set landing to tested_commit, "
    'or turn off "Pipelines must succeed" in the settings of the project.'
)
NOT_ON_TIP = (
    "The project merges only a head that contains the tip of its target branch: set landing to tested_commit, "
    "or choose the merge method with plain merge commits (Settings > Merge requests)."
)
MERGEABLE_STATUSES = ("mergeable", "")
"""With one of these, GitLab found no obstacle and tried to merge, but the merge failed."""
HOOK_MARKER = "hook"
RETRY_MARKER = "Try again"
"""Parts of GitLab's message when a hook of the server declined the merge, or did not respond in time."""


class Merging(ForgeHost):
    def unsupported_reason(self, method: MergeMethod, landing: LandingMethod) -> str | None:
        if method is MergeMethod.REBASE:
            return NO_REBASE
        if method is MergeMethod.SQUASH and landing is LandingMethod.TESTED_COMMIT:
            return NO_PUSHED_SQUASH
        return None

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:
        client = await self._client_for(repo)
        project = await client.read_repository(wire.Project, urgent=True)
        outcome = _known_outcome(await _read_merge_request(client, merge), merge)
        if outcome is not None:
            return outcome
        if message := _find_forbidding_setting(project, merge.method):
            return MergeForbidden(message)
        reply = await client.send("PUT", f"/merge_requests/{merge.number}/merge", _to_request(merge))
        if not reply.is_success:
            return await _classify_refusal(client, merge, reply)
        payload = reply.decode(wire.MergeRequest)
        if (outcome := _known_outcome(payload, merge)) is not None:
            return outcome
        if payload.merge_error:
            return _classify_failure(payload.merge_error)
        raise HostUnavailable(f"merge request {merge.number} of {repo} is still being merged")

    async def find_merge_commit(self, repo: Repo, merge: Merge) -> Sha | None:
        outcome = _known_outcome(await _read_merge_request(await self._client_for(repo), merge), merge)
        return outcome.commit if isinstance(outcome, Merged) else None


async def _read_merge_request(client: ForgeClient, merge: Merge) -> wire.MergeRequest | None:
    return await client.get(f"/merge_requests/{merge.number}", wire.MergeRequest, urgent=True)


def _known_outcome(payload: wire.MergeRequest | None, merge: Merge) -> MergeOutcome | None:
    """The outcome if no merge call is needed; None: the merge can be tried."""
    if payload is None:
        return NotMerged("The merge request is gone.")
    if payload.sha != merge.head:
        return NotMerged("The head of the merge request changed.")
    if payload.target_branch != merge.base_branch:
        return NotMerged(f"The target branch of the merge request is now {payload.target_branch}.")
    if payload.state == "merged":
        return Merged(_merge_commit(payload))
    if payload.state == "closed":
        return NotMerged("The merge request was closed.")
    return None if payload.user.can_merge else MergeForbidden(MERGE_NOT_ALLOWED)


def _merge_commit(payload: wire.MergeRequest) -> Sha:
    return Sha(payload.merge_commit_sha or payload.squash_commit_sha or payload.sha or "")


def _find_forbidding_setting(project: wire.Project, method: MergeMethod) -> str | None:
    if method is MergeMethod.REBASE:
        return NO_REBASE
    if method is MergeMethod.SQUASH:
        return NEVER_SQUASHED if project.squash_option == "never" else None
    if project.squash_option == "always":
        return ALWAYS_SQUASHED
    return ONLY_FAST_FORWARD if project.merge_method == "ff" else None


def _to_request(merge: Merge) -> dict[str, str | bool]:
    message = f"{merge.title}\n\n{merge.message}".rstrip()
    squash = merge.method is MergeMethod.SQUASH
    messages = {"merge_commit_message": message} | ({"squash_commit_message": message} if squash else {})
    return {"sha": merge.head, "squash": squash, **messages}


async def _classify_refusal(client: ForgeClient, merge: Merge, reply: Reply) -> MergeOutcome:
    detail = extract_error_detail(reply.body)
    payload = await _read_merge_request(client, merge)
    outcome = _known_outcome(payload, merge)
    if payload is None or outcome is not None:
        return outcome or NotMerged(detail)
    if reply.status == 403:
        return MergeForbidden(detail)
    if payload.detailed_merge_status in UNDECIDED_STATUSES or payload.state == "locked":
        raise HostUnavailable(f"merge request {merge.number} of {client.repo} cannot be merged yet: {detail}")
    if payload.detailed_merge_status in PIPELINE_STATUSES:
        return await _handle_pipeline_refusal(client, merge, payload)
    if payload.detailed_merge_status == "need_rebase":
        return MergeForbidden(NOT_ON_TIP)
    was_tried = reply.status == 422 and payload.detailed_merge_status in MERGEABLE_STATUSES
    return _classify_failure(payload.merge_error or detail) if was_tried else NotMerged(detail)


async def _handle_pipeline_refusal(client: ForgeClient, merge: Merge, payload: wire.MergeRequest) -> MergeOutcome:
    """If only our own status keeps the pipeline from succeeding, sets it to success and raises for a retry."""
    statuses = await checks.read_statuses(client, merge.head)
    overall = next((status.state for status in statuses if status.context == checks.PIPELINE), None)
    own_statuses = [
        status for status in await checks.list_commit_statuses(client, merge.head) if status.name == ids.STATUS_CONTEXT
    ]
    if own_statuses and (overall is None or CHECK_STATE_BY_STATUS_STATE[overall] in SATISFIED_CHECK_STATES):
        await _set_own_statuses_to_success(client, merge.head, own_statuses)
        raise HostUnavailable(
            f"merge request {merge.number} of {client.repo} cannot be merged yet: its pipeline waits for our status"
        )
    if payload.detailed_merge_status == "ci_must_pass" and overall in (StatusState.FAILURE, None):
        return MergeRefused(NO_PIPELINE)
    return NotMerged("A pipeline of the head has not finished.")


async def _set_own_statuses_to_success(
    client: ForgeClient, head: Sha, own_statuses: Iterable[wire.CommitStatus]
) -> None:
    """A pipeline that must succeed includes our own status. GitLab needs a moment to recompute it afterwards."""
    for own in own_statuses:
        if checks.derive_job_state(own) is not StatusState.SUCCESS:
            at, url = to_instant(own.created_at), own.target_url or ""
            success = Status(
                context=ids.STATUS_CONTEXT, state=StatusState.SUCCESS, at=at, url=url, description="Merging."
            )
            await checks.set_status(client, head, success)


def _classify_failure(detail: str) -> MergeOutcome:
    """A merge that a server hook declined is not the fault of this merge request; other failures can be transient."""
    is_declined = HOOK_MARKER in detail and RETRY_MARKER not in detail
    return MergeForbidden(detail) if is_declined else NotMerged(detail)
