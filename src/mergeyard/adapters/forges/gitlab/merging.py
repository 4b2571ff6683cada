"""Merges merge requests with GitLab's merge call, and classifies why it was refused."""

import re
from collections import OrderedDict

from mergeyard.adapters.forges.gitlab import checks, wire
from mergeyard.adapters.forges.gitlab.merge_requests import PIPELINE_STATUSES, UNDECIDED_STATUSES
from mergeyard.adapters.forges.host import ForgeHost
from mergeyard.adapters.forges.http import ForgeClient, ForgeConfig, Reply, to_instant
from mergeyard.domain import ids
from mergeyard.domain.config import Config, HeadBranchFallback, LandingMethod, MergeMethod
from mergeyard.domain.ids import Repo, Sha
from mergeyard.domain.pull_requests import CHECK_STATE_BY_STATUS_STATE, Status, StatusState
from mergeyard.domain.states import SATISFIED_CHECK_STATES
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import HostUnavailable, Merge, Merged, MergeForbidden, MergeOutcome, MergeRefused, NotMerged

NO_REBASE = (
    "GitLab cannot rebase a merge request while it merges it: set landing to tested_commit and headBranchFallback to "
    "close, or set mergeMethod to squash."
)
NEVER_PUSHED_SQUASH = (
    "With moveHeadBranches false and headBranchFallback provider_merge, GitLab squashes every merge request itself: "
    "set landing to provider_merge, or set moveHeadBranches to true or headBranchFallback to close."
)
ONLY_FAST_FORWARD = (
    "The project merges by fast-forward only: choose a merge method with merge commits in its settings "
    "(Settings > Merge requests), or set landing to tested_commit."
)
ALWAYS_SQUASHED = (
    "GitLab squashes every merge request into this branch: allow merging without (Settings > Merge requests > Squash "
    "commits when merging, and the branch rules), or set mergeMethod to squash."
)
NEVER_SQUASHED = (
    "GitLab does not allow squashing into this branch: allow it (Settings > Merge requests > Squash commits when "
    "merging, and the branch rules), set landing to tested_commit with headBranchFallback close, or set mergeMethod to "
    "merge_commit."
)
SQUASH_NOT_CHANGED = (
    'GitLab did not let us change "Squash commits" of the merge request ({}): change it there, and submit it again.'
)
ARCHIVED = "The project is archived, so it cannot be changed: unarchive it (Settings > General), or delete its queue."
MERGE_NOT_ALLOWED = (
    "The account of Mergeyard is not allowed to merge into this branch: allow it "
    "(Settings > Repository > Protected branches)."
)
NO_PIPELINE = (
    "GitLab requires a successful pipeline of the head: run it again, set landing to tested_commit (for squash with "
    "headBranchFallback close), "
    'or turn off "Pipelines must succeed" in the settings of the project.'
)
NOT_ON_TIP = (
    "The project merges only a head that contains the tip of its target branch: set landing to tested_commit (for "
    "squash with headBranchFallback close), or choose the merge method with plain merge commits (Settings > Merge "
    "requests)."
)
GONE = "The merge request is gone."
UNFINISHED = "A pipeline of the head has not finished: submit the merge request again when it has passed."
MERGEABLE_STATUSES = ("mergeable", "")
"""With one of these, GitLab found no obstacle and tried to merge, but the merge failed."""
HOOK_MARKER = "hook"
"""A part of GitLab's message when a hook of the server declined the merge."""
TRANSIENT_HOOK_FAILURE = re.compile(
    r"time[d -]{0,2}out|deadline exceeded|internal (?:server |api )?error|internal api|not accessible|unreachable"
    r"|unavailable|refused to connect|connection refused|bad gateway|try again"
    r"|\b(?:error|status|http|code)(?:/[0-9.]{1,3})?[ :=]{1,3}50[0-9]\b",
    re.IGNORECASE,
)
"""The hook did not decide: GitLab could not ask it, or its own service behind it."""
MAX_FAILURE_CHARS = 2_000
RECOMPUTING_MS = 20 * SECOND
"""GitLab recomputes a pipeline some time after one of its statuses changed. After this time it waits for something
else, such as a job that it does not show."""


class PipelineIsRecomputed(HostUnavailable):
    """Our status is set to success, and GitLab has not recomputed its pipeline yet."""


class Merging(ForgeHost):
    def __init__(self, config: ForgeConfig, clock: Clock) -> None:
        super().__init__(config, clock)
        self._recomputing_since = OrderedDict[tuple[Repo, Sha], Instant]()

    def unsupported_reason(self, config: Config) -> str | None:
        """GitLab itself can squash and cannot rebase, so only a queue that squashes can leave merge requests to it."""
        pushes = config.landing is LandingMethod.TESTED_COMMIT
        closes = config.head_branch_fallback is HeadBranchFallback.CLOSE
        match config.merge_method:
            case MergeMethod.MERGE_COMMIT:
                return None
            case MergeMethod.SQUASH:
                return NEVER_PUSHED_SQUASH if pushes and not (config.move_head_branches or closes) else None
            case MergeMethod.REBASE:
                return None if pushes and closes else NO_REBASE

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:
        client = await self._client_for(repo)
        project = await client.read_repository(wire.Project, urgent=True)
        current = await _read_merge_request(client, merge)
        outcome = _known_outcome(current, merge)
        if current is None or outcome is not None:
            return outcome or NotMerged(GONE)
        message = _find_forbidding_setting(project, merge.method, current)
        message = message or await _set_squash(client, project, merge, current)
        if message:
            return MergeForbidden(message)
        reply = await client.send("PUT", f"/merge_requests/{merge.number}/merge", _to_request(merge), urgent=True)
        if not reply.is_success:
            try:
                return await _classify_refusal(client, project, merge, reply)
            except PipelineIsRecomputed:
                if self._has_waited(repo, merge.head):
                    return NotMerged(UNFINISHED)
                raise
        payload = reply.decode(wire.MergeRequest)
        if (outcome := _known_outcome(payload, merge)) is not None:
            return outcome
        if payload.merge_error:
            return _classify_failure(payload.merge_error)
        raise HostUnavailable(f"merge request !{merge.number} of {repo} is still being merged")

    async def find_merge_commit(self, repo: Repo, merge: Merge) -> Sha | None:
        outcome = _known_outcome(await _read_merge_request(await self._client_for(repo), merge), merge)
        return outcome.commit if isinstance(outcome, Merged) else None

    def _has_waited(self, repo: Repo, head: Sha) -> bool:
        """Whether GitLab had the time to recompute the pipeline. If so, the next attempt to merge has as much time: the
        queue sets our status to pending between them."""
        now = self._clock.now()
        since = self._recomputing_since.pop((repo, head), now)
        if now - since >= RECOMPUTING_MS:
            return True
        checks.remember(self._recomputing_since, (repo, head), since)
        return False


async def _read_merge_request(client: ForgeClient, merge: Merge) -> wire.MergeRequest | None:
    return await client.get(f"/merge_requests/{merge.number}", wire.MergeRequest, urgent=True)


def _known_outcome(payload: wire.MergeRequest | None, merge: Merge) -> MergeOutcome | None:
    """The outcome if no merge call is needed; None: the merge can be tried."""
    if payload is None:
        return NotMerged(GONE)
    if payload.sha != merge.head:
        return NotMerged("The head of the merge request changed.")
    if payload.target_branch != merge.base_branch:
        return NotMerged(f"The target branch of the merge request is now {payload.target_branch}.")
    if payload.state == "merged":
        return Merged(_merge_commit(payload))
    if payload.state == "closed":
        return NotMerged("The merge request was closed.")
    return None


def _merge_commit(payload: wire.MergeRequest) -> Sha:
    return Sha(payload.merge_commit_sha or payload.squash_commit_sha or payload.sha or "")


def _find_forbidding_setting(project: wire.Project, method: MergeMethod, current: wire.MergeRequest) -> str | None:
    if project.archived:
        return ARCHIVED
    if not current.user.can_merge:
        return MERGE_NOT_ALLOWED
    if method is MergeMethod.REBASE:
        return NO_REBASE
    is_fast_forward = project.merge_method == "ff" and method is MergeMethod.MERGE_COMMIT
    return ONLY_FAST_FORWARD if is_fast_forward else None


async def _set_squash(
    client: ForgeClient, project: wire.Project, merge: Merge, current: wire.MergeRequest
) -> str | None:
    """Sets whether GitLab squashes it; the message if it refuses, or a setting of the project or of the branch decides
    otherwise. The merge call itself can only turn squashing on: GitLab ignores its `squash` if that is false."""
    wanted = merge.method is MergeMethod.SQUASH
    if _will_squash(project, current) is not wanted:
        reply = await client.send("PUT", f"/merge_requests/{merge.number}", {"squash": wanted}, urgent=True)
        current = await _read_merge_request(client, merge) or current
        if not reply.is_success and _will_squash(project, current) is not wanted:
            return SQUASH_NOT_CHANGED.format(reply.detail)
    if _will_squash(project, current) is wanted:
        return None
    return NEVER_SQUASHED if wanted else ALWAYS_SQUASHED


def _will_squash(project: wire.Project, payload: wire.MergeRequest) -> bool:
    if payload.squash_on_merge is not None:
        return payload.squash_on_merge
    return {"always": True, "never": False}.get(project.squash_option, payload.squash)


def _to_request(merge: Merge) -> dict[str, str | bool]:
    message = f"{merge.title}\n\n{merge.message}".rstrip()
    squash = merge.method is MergeMethod.SQUASH
    messages = {"merge_commit_message": message} | ({"squash_commit_message": message} if squash else {})
    return {"sha": merge.head, "squash": squash, **messages}


async def _classify_refusal(client: ForgeClient, project: wire.Project, merge: Merge, reply: Reply) -> MergeOutcome:
    detail = reply.detail
    payload = await _read_merge_request(client, merge)
    outcome = _known_outcome(payload, merge)
    if payload is None or outcome is not None:
        return outcome or NotMerged(detail)
    if reply.status == 403 or not payload.user.can_merge:
        return MergeForbidden(detail if reply.status == 403 else MERGE_NOT_ALLOWED)
    if payload.detailed_merge_status in UNDECIDED_STATUSES or payload.state == "locked":
        raise HostUnavailable(f"merge request !{merge.number} of {client.repo} cannot be merged yet: {detail}")
    if payload.detailed_merge_status in PIPELINE_STATUSES:
        return await _handle_pipeline_refusal(client, project, merge, payload)
    was_tried = reply.status == 422 and payload.detailed_merge_status in MERGEABLE_STATUSES
    if payload.detailed_merge_status == "need_rebase":
        return MergeForbidden(NOT_ON_TIP)
    if was_tried and not payload.merge_error and project.merge_method != "merge":
        return MergeForbidden(NOT_ON_TIP)  # Versions before 16.10 report such a merge request as mergeable.
    return _classify_failure(payload.merge_error or detail) if was_tried else NotMerged(detail)


async def _handle_pipeline_refusal(
    client: ForgeClient, project: wire.Project, merge: Merge, payload: wire.MergeRequest
) -> MergeOutcome:
    """Judges by the pipeline that GitLab judges by: of a fork it is in another project, and of the merged result it has
    another commit. If only our own status keeps it from succeeding, sets that to success and raises for a retry."""
    pipeline = payload.deciding_pipeline
    if pipeline is None:
        return MergeRefused(NO_PIPELINE) if payload.detailed_merge_status == "ci_must_pass" else NotMerged(UNFINISHED)
    listed = [] if pipeline.tests_merged_result else await checks.list_commit_statuses(client, merge.head, urgent=True)
    reported = [status for status in listed if status.pipeline_id in (pipeline.id, None)]
    own, result = checks.find_own_status(reported), checks.evaluate_pipeline(pipeline, reported)
    is_untested = result is not None and result.is_skipped and not project.allow_merge_on_skipped_pipeline
    if is_untested or (result is not None and result.state is StatusState.FAILURE):
        return MergeRefused(NO_PIPELINE)
    is_satisfied = result is None or CHECK_STATE_BY_STATUS_STATE[result.state] in SATISFIED_CHECK_STATES
    if own is None or not is_satisfied or pipeline.status == checks.SUCCESS:
        return NotMerged(UNFINISHED)
    is_set = own.status == checks.SUCCESS or await _set_own_status_to_success(client, merge.head, own)
    if not is_set:
        return NotMerged(UNFINISHED)
    raise PipelineIsRecomputed(
        f"merge request !{merge.number} of {client.repo} cannot be merged yet: its pipeline waits for our status"
    )


async def _set_own_status_to_success(client: ForgeClient, head: Sha, own: wire.CommitStatus) -> bool:
    """False if GitLab did not change it, for example because the pipeline is archived."""
    at, url = to_instant(own.created_at), own.target_url or ""
    success = Status(context=ids.STATUS_CONTEXT, state=StatusState.SUCCESS, at=at, url=url, description="Merging.")
    return await checks.report_status(client, head, success, own, urgent=True)


def _classify_failure(detail: str) -> MergeOutcome:
    """A merge that a server hook declined is not the fault of this merge request; other failures can be transient."""
    is_declined = HOOK_MARKER in detail and not TRANSIENT_HOOK_FAILURE.search(detail[:MAX_FAILURE_CHARS])
    return MergeForbidden(detail) if is_declined else NotMerged(detail)
