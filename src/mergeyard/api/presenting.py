"""Converts views of the service into response structs."""

from itertools import groupby

from msgspec import UNSET, Raw, Struct, UnsetType, convert, json
from msgspec.structs import asdict

from mergeyard.api import response_schemas
from mergeyard.api.fields import format_time
from mergeyard.api.request_schemas import Repository
from mergeyard.domain import config
from mergeyard.domain.ids import PullRequestNumber, Repo, derive_submission_uuid
from mergeyard.domain.journal import PullRequestChanged, PullRequestEntry
from mergeyard.domain.pull_requests import ImpactedTargets, Status, StatusState
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import TERMINAL_STATES, PullRequestState
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.forge import OpenPullRequest
from mergeyard.service.audit_log import decode_actor_name
from mergeyard.service.previews import ActionPreview, MergePreview
from mergeyard.service.runs import RunImpactedTargets, RunView, TestingResult
from mergeyard.service.views import QueueView, SubmissionView, render_entry, view_obstacle

encode = json.Encoder().encode


def present_run(public_url: str, repo: Repo, view: RunView) -> response_schemas.TestRun:
    """Checks and pull requests without a page of their own link to the pages of this server."""
    run, run_url = view.run, f"{public_url}/runs/{view.run.id}"
    return response_schemas.TestRun(
        id=run.id,
        required_statuses=run.required_statuses,
        required_statuses_source=run.required_statuses_source,
        test_branch=view.branch,
        test_branch_sha=run.tip,
        check_suites=_present_check_suites(view, run_url),
        status_checks=tuple(
            response_schemas.StatusCheck(context=each.context, url=each.url or run_url, state=each.state)
            for each in view.statuses
            if not each.suite
        ),
        tested_pull_requests=tuple(
            response_schemas.TestedPullRequest(
                pr_number=pull_request.number,
                pr_url=pull_request.page_url or f"{public_url}/pulls/{repo}/{pull_request.number}",
                title=pull_request.title,
            )
            for pull_request in view.pull_requests
        ),
        status=run.status,
        created_at=format_time(run.started_at or Instant(0)),
        impacted_targets=_present_targets(view.impacted_targets, "all"),
        impacted_targets_for_tested_prs=_present_targets(view.impacted_targets, "tested"),
        dependent_prs=tuple(member.number for member in run.prs_ahead),
        is_bisection=run.kind is RunKind.BISECTION,
        base_sha=run.tested_on,
    )


def _present_check_suites(view: RunView, run_url: str) -> tuple[response_schemas.CheckSuite, ...]:
    def present(check: Status) -> response_schemas.CheckRun:
        is_pending = check.state is StatusState.PENDING
        return response_schemas.CheckRun(
            name=check.context,
            url=check.url or run_url,
            status="in_progress" if is_pending else "completed",
            conclusion=None if is_pending else check.state,
        )

    checks = sorted((status for status in view.statuses if status.suite), key=lambda status: status.suite)
    return tuple(
        response_schemas.CheckSuite(check_runs=tuple(map(present, suite)))
        for _, suite in groupby(checks, key=lambda check: check.suite)
    )


def present_pull_request(
    view: SubmissionView, timeline: tuple[response_schemas.TimelineEntry, ...] | UnsetType = UNSET
) -> response_schemas.SubmittedPullRequest:
    submission = view.submission
    name = config.format_priority(submission.priority)
    return response_schemas.SubmittedPullRequest(
        id=derive_submission_uuid(view.queue_id, submission.id),
        state=submission.state,
        state_changed_at=format_time(submission.state_changed_at),
        priority_value=submission.priority,
        priority_name=name,
        used_default_priority_name=name if submission.priority_is_default else UNSET,
        skip_the_line=submission.is_urgent,
        force_enqueued=submission.forced,
        is_currently_submitted_to_queue=submission.state not in TERMINAL_STATES,
        pr_number=submission.number,
        pr_title=submission.pull_request.title,
        pr_sha=submission.pull_request.head,
        pr_base_branch=submission.pull_request.base_branch,
        pr_author=submission.pull_request.author,
        readiness=response_schemas.Readiness(
            requires_impacted_targets=view.is_parallel and not _admitted_without_targets(view),
            does_base_branch_match=submission.pull_request.base_branch == view.target_branch,
            has_impacted_targets=view.has_impacted_targets,
        ),
        no_batch=submission.no_batch,
        mergeability=submission.pull_request.mergeability,
        test_run_id=view.run_id,
        verified_by_test_run=submission.verified_by,
        position=view.position,
        reason=convert(view.reason, response_schemas.ReasonDetails, from_attributes=True),
        requirements=convert(view.requirements, tuple[response_schemas.RuleRequirement, ...], from_attributes=True),
        estimated_merge_at=format_optional_time(view.estimated_merge_at),
        estimated_merge_at_p90=format_optional_time(view.estimated_merge_at_p90),
        estimate_note=view.estimate_note or None,
        bisection_note=None if view.bisection is None else view.bisection.message,
        submitted_at=format_time(submission.submitted_at),
        merged_sha=submission.merged_sha,
        timeline=timeline,
    )


def present_open(found: OpenPullRequest) -> response_schemas.OpenPullRequest:
    return response_schemas.OpenPullRequest(
        pr_number=found.number,
        pr_title=found.title,
        pr_author=found.author,
        pr_sha=found.head,
        head_branch=found.head_branch,
        is_draft=found.draft,
    )


def present_preview(preview: ActionPreview) -> response_schemas.ActionPreview:
    return response_schemas.ActionPreview(
        stopped_test_runs=tuple(
            response_schemas.StoppedTestRun(
                test_run_id=each.run.id, pr_numbers=each.numbers, elapsed_seconds=each.elapsed_ms / SECOND
            )
            for each in preview.stopped
        ),
        retested_pr_numbers=preview.delayed,
        lost_ci_seconds=preview.elapsed_ms / SECOND,
        is_upper_bound=preview.is_upper_bound,
    )


def present_merge_preview(number: PullRequestNumber, preview: MergePreview) -> response_schemas.CommitMessagePreview:
    return response_schemas.CommitMessagePreview(
        pr_number=number,
        pr_sha=preview.head,
        merge_method=preview.merge_method,
        merges_by=preview.merges_by,
        explanation=preview.explanation,
        commit_messages=preview.messages,
    )


def present_queue(view: QueueView, *, with_pull_requests: bool = False) -> Struct:
    settings = asdict(view.queue.config)
    settings |= {name: Raw(settings[name].encode()) for name in config.JSON_TEXT_SETTINGS}
    return response_schemas.QueueResponse(
        state=view.queue.state,
        state_reason=view.queue.state_reason or None,
        branch=view.key.branch,
        repo=Repository.from_repo(view.key.repo),
        obstacle=_present_obstacle(view.queue),
        problems=UNSET if view.overview is None else view.overview.problems,
        pull_request_counts=_present_counts(view),
        next_merge=_present_next_merge(view),
        enqueued_pull_requests=tuple(map(_present_enqueued, view.submissions)) if with_pull_requests else UNSET,
        **settings,
    )


def _present_obstacle(queue: Queue) -> response_schemas.QueueObstacle | UnsetType:
    obstacle = view_obstacle(queue)
    if obstacle is None:
        return UNSET
    return response_schemas.QueueObstacle(
        code=obstacle.code,
        message=obstacle.message,
        since=format_time(obstacle.since),
        pr_number=obstacle.number,
        until=None if obstacle.until is None else format_time(obstacle.until),
    )


def _present_counts(view: QueueView) -> response_schemas.PullRequestCounts | UnsetType:
    if view.overview is None:
        return UNSET
    return convert(view.overview.counts, response_schemas.PullRequestCounts, from_attributes=True)


def _present_next_merge(view: QueueView) -> response_schemas.NextMerge | UnsetType:
    if view.next_merge is None:
        return UNSET
    at = format_optional_time(view.next_merge.at)
    return response_schemas.NextMerge(at=at, note=view.next_merge.note or None)


def _present_enqueued(view: SubmissionView) -> response_schemas.EnqueuedPullRequest:
    """Some of the members of the submitted pull request."""
    submitted, members = present_pull_request(view), response_schemas.EnqueuedPullRequest.__struct_fields__
    return response_schemas.EnqueuedPullRequest(**{name: getattr(submitted, name) for name in members})


def present_timeline_entry(entry: PullRequestEntry) -> response_schemas.TimelineEntry:
    """What a person changed while the state stayed the same has the same state before and after."""
    if isinstance(entry, PullRequestChanged):
        source, to, run = entry.source, entry.to, entry.run
        causes = entry.causes
    else:
        source, to, run = entry.state, entry.state, None
        causes = ()
    return response_schemas.TimelineEntry(
        at=format_time(entry.at),
        source=source,
        to=to,
        reason=entry.reason,
        message=render_entry(entry),
        actor=decode_actor_name(entry.actor),
        caused_by=tuple(cause.number for cause in causes),
        test_run_id=run,
    )


def present_testing_result(decided: TestingResult) -> response_schemas.TestingResult:
    run = decided.run
    started, finished = run.started_at or Instant(0), run.decided_at or Instant(0)
    return response_schemas.TestingResult(
        pr_number=decided.number,
        test_run_id=run.id,
        status=run.status,
        is_bisection=run.kind is RunKind.BISECTION,
        started_at=format_time(started),
        finished_at=format_time(finished),
        duration_seconds=(finished - started) / 1000,
    )


def _admitted_without_targets(view: SubmissionView) -> bool:
    """True after a switch to parallel mode: pull requests admitted before it need no upload and count as ALL."""
    submission = view.submission
    return (
        submission.admitted_at is not None
        and submission.state is not PullRequestState.NOT_READY
        and not view.has_impacted_targets
    )


def format_optional_time(instant: Instant | None) -> str | None:
    return None if instant is None else format_time(instant)


def _present_targets(impact: RunImpactedTargets | None, which: str) -> tuple[str, ...] | UnsetType:
    if impact is None:
        return UNSET
    targets: ImpactedTargets = getattr(impact, which)
    return ("ALL",) if targets.everything else tuple(sorted(targets.names))
