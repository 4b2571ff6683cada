"""Shows what the service knows as the wire has it."""

from itertools import groupby

from msgspec import UNSET, Struct, UnsetType, json

from mergeyard.api import answers
from mergeyard.api.times import written
from mergeyard.api.wire import RepoReference
from mergeyard.domain import priorities
from mergeyard.domain.ids import stay_id
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import PrChanged
from mergeyard.domain.repositories import Repo
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import TERMINAL, PrState
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.domain.targets import Targets
from mergeyard.service.journaling import name_of
from mergeyard.service.runs import DecidedRun, Impact, RunView
from mergeyard.service.views import PullView, QueueView, Why, sentence

encode = json.Encoder().encode


class Presenter:
    """Knows the address under which people find our own pages."""

    def __init__(self, public_url: str) -> None:
        self._public_url = public_url

    def run(self, repo: Repo, view: RunView) -> answers.RunDetails:
        run = view.run
        return answers.RunDetails(
            id=run.id,
            required_statuses=run.required,
            required_statuses_source=run.required_source,
            test_branch=view.branch,
            test_branch_sha=view.tip,
            check_suites=self._suites(view),
            status_checks=tuple(
                answers.StatusCheck(context=each.context, url=each.url or self._run_page(run.id), state=each.state)
                for each in view.statuses
                if not each.suite
            ),
            tested_pull_requests=tuple(
                answers.TestedPullRequest(
                    pr_number=pull.number, pr_url=pull.page or self._pull_page(repo, pull.number), title=pull.title
                )
                for pull in view.pulls
            ),
            status=run.status,
            created_at=written(run.started_at or Instant(0)),
            impacted_targets=_targets(view.impact, "all"),
            impacted_targets_for_tested_prs=_targets(view.impact, "tested"),
            dependent_prs=view.dependents,
            is_bisection=run.kind is RunKind.BISECTION,
            base_sha=view.base,
        )

    def _suites(self, view: RunView) -> tuple[answers.CheckSuite, ...]:
        checks = sorted((status for status in view.statuses if status.suite), key=lambda status: status.suite)
        return tuple(
            answers.CheckSuite(check_runs=tuple(self._check_run(view, check) for check in suite))
            for _, suite in groupby(checks, key=lambda check: check.suite)
        )

    def _check_run(self, view: RunView, check: Status) -> answers.CheckRun:
        under_way = check.state is StatusState.PENDING
        return answers.CheckRun(
            name=check.context,
            url=check.url or self._run_page(view.run.id),
            status="in_progress" if under_way else "completed",
            conclusion=None if under_way else check.state,
        )

    def _run_page(self, run: str) -> str:
        return f"{self._public_url}/runs/{run}"

    def _pull_page(self, repo: Repo, number: int) -> str:
        return f"{self._public_url}/pulls/{repo}/{number}"


def pull(view: PullView, timeline: tuple[answers.Moment, ...] | UnsetType = UNSET) -> answers.SubmittedPullRequest:
    stay = view.stay
    name = priority_name(stay.priority)
    return answers.SubmittedPullRequest(
        id=stay_id(view.queue, stay.ticket),
        state=stay.state,
        state_changed_at=written(stay.state_changed_at),
        priority_value=stay.priority,
        priority_name=name,
        used_default_priority_name=name if stay.priority_is_default else UNSET,
        skip_the_line=stay.urgent,
        force_enqueued=stay.forced,
        is_currently_submitted_to_queue=stay.state not in TERMINAL,
        pr_number=stay.number,
        pr_title=stay.pull.title,
        pr_sha=stay.pull.head,
        pr_base_branch=stay.pull.base,
        pr_author=stay.pull.author,
        readiness=answers.Readiness(
            requires_impacted_targets=view.parallel and not _admitted_without_targets(view),
            does_base_branch_match=stay.pull.base == view.target,
            has_impacted_targets=view.has_targets,
        ),
        no_batch=stay.no_batch,
        mergeability=stay.pull.mergeability,
        test_run_id=view.run,
        verified_by_test_run=stay.verified_by,
        position=view.position,
        reason=_why(view.why),
        estimated_merge_at=None if view.merges_at is None else written(view.merges_at),
        estimated_merge_at_p90=None if view.merges_by is None else written(view.merges_by),
        submitted_at=written(stay.submitted_at),
        merged_sha=stay.merged_sha,
        timeline=timeline,
    )


def enqueued(view: PullView) -> answers.EnqueuedPullRequest:
    stay = view.stay
    return answers.EnqueuedPullRequest(
        id=stay_id(view.queue, stay.ticket),
        state=stay.state,
        state_changed_at=written(stay.state_changed_at),
        priority_value=stay.priority,
        priority_name=priority_name(stay.priority),
        skip_the_line=stay.urgent,
        no_batch=stay.no_batch,
        pr_number=stay.number,
        pr_title=stay.pull.title,
        pr_sha=stay.pull.head,
        pr_base_branch=stay.pull.base,
        pr_author=stay.pull.author,
        test_run_id=view.run,
        position=view.position,
        reason=_why(view.why),
    )


def queue(view: QueueView) -> Struct:
    return _queue(view, UNSET)


def queue_with_pulls(view: QueueView) -> Struct:
    return _queue(view, tuple(map(enqueued, view.pulls)))


def moment(entry: PrChanged) -> answers.Moment:
    return answers.Moment(
        at=written(entry.at),
        source=entry.source,
        to=entry.to,
        reason=entry.reason,
        message=sentence(entry.reason, entry.words, upon=entry.upon),
        actor=name_of(entry.actor),
        test_run_id=entry.run,
    )


def result(decided: DecidedRun) -> answers.TestingResult:
    run = decided.run
    started, finished = run.started_at or Instant(0), run.decided_at or Instant(0)
    return answers.TestingResult(
        pr_number=decided.number,
        test_run_id=run.id,
        status=run.status,
        is_bisection=run.kind is RunKind.BISECTION,
        started_at=written(started),
        finished_at=written(finished),
        duration_seconds=(finished - started) / 1000,
    )


def priority_name(priority: int) -> str:
    return priorities.shown(priority)


def _queue(view: QueueView, pulls: tuple[answers.EnqueuedPullRequest, ...] | UnsetType) -> Struct:
    return answers.queue(
        view.queue.config,
        state=view.queue.state,
        branch=view.key.branch,
        repo=RepoReference.to(view.key.repo),
        enqueued=pulls,
    )


def _admitted_without_targets(view: PullView) -> bool:
    """Before the queue became parallel: such a one is tested without."""
    stay = view.stay
    return stay.admitted_at is not None and stay.state is not PrState.NOT_READY and not view.has_targets


def _why(why: Why) -> answers.Why:
    return answers.Why(code=why.code, message=why.message, waiting_for=why.waiting_for)


def _targets(impact: Impact | None, which: str) -> tuple[str, ...] | UnsetType:
    if impact is None:
        return UNSET
    targets: Targets = getattr(impact, which)
    return ("ALL",) if targets.everything else tuple(sorted(targets.names))
