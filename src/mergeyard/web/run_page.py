"""The page of a test run, and the page of a check's output."""

import re

from msgspec import Struct
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PullRequestNumber, QueueKey, RunId, Sha
from mergeyard.domain.pull_requests import RequiredSource, Status
from mergeyard.domain.runs import Run
from mergeyard.domain.states import SATISFIED_CHECK_STATES, CheckState
from mergeyard.service import persistence
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.git_names import BISECTION_SUFFIX
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.runs import RunView
from mergeyard.web import check_output, run_progress
from mergeyard.web.formats import check_output_url, list_targets, parse_integer
from mergeyard.web.rendering import PageRequest

REQUIRED_BY = {
    RequiredSource.MERGE_INSTANCE: "the queue's settings",
    RequiredSource.SERVICE_CONFIG: ".mergeyard.toml on the target branch",
    RequiredSource.BRANCH_PROTECTION: "the branch protection on the Git host",
}


class StackEntry(Struct, frozen=True):
    """One pull request in the stack, with its head and the commit made from it."""

    number: PullRequestNumber
    title: str
    head: Sha
    commit: Sha
    host_url: str | None


MAX_TITLES = 100
"""Of the pull requests ahead that left the queue: the store reads each title by itself."""


async def show(page: PageRequest) -> Response:
    queue_actor, run = await find_run(page)
    key, queue = queue_actor.key, queue_actor.queue
    run_view = await page.service.runs.view_run(key, run.id)
    run = run_view.run
    targets = run_view.impacted_targets if queue.config.mode is Mode.PARALLEL else None
    source = page.service.repositories.get_host(key.repo.host).checks_from
    stack = _build_stack(page, key, run_view, await _read_titles_ahead(page, queue_actor, run))
    return page.render(
        "run.html",
        key=key,
        run_view=run_view,
        run=run,
        live=run.is_active,
        name=run_progress.name_run(run, key.branch),
        purpose=run_progress.describe_purpose(run, key.branch),
        remarks=list(run_progress.list_remarks(run, queue)),
        prs_ahead=stack[: len(run.prs_ahead)],
        tested=stack[len(run.prs_ahead) :],
        checks=run_progress.build_run_checks(run_view, source),
        required_by=REQUIRED_BY[run.required_statuses_source],
        duration=run_progress.measure_duration(run, queue, page.service.clock.now()),
        impacted_targets=None if targets is None else list_targets(targets.all),
        impacted_targets_of_tested=None if targets is None else list_targets(targets.tested),
    )


async def _read_titles_ahead(page: PageRequest, queue_actor: QueueActor, run: Run) -> dict[PullRequestNumber, str]:
    titles = dict[PullRequestNumber, str]()
    for member in run.prs_ahead[-MAX_TITLES:]:
        live = queue_actor.queue.submissions.get(member.submission_id)
        submission = live or await persistence.read_submission(page.service.store, queue_actor.id, member.submission_id)
        if submission is not None:
            titles[member.number] = submission.pull_request.title
    return titles


def _build_stack(
    page: PageRequest, key: QueueKey, run_view: RunView, titles_ahead: dict[PullRequestNumber, str]
) -> list[StackEntry]:
    run, host = run_view.run, page.service.repositories.get_host(key.repo.host)
    titles = titles_ahead | {pull_request.number: pull_request.title for pull_request in run_view.pull_requests}
    return [
        StackEntry(
            member.number,
            titles.get(member.number, ""),
            member.head,
            step.commit,
            host.pull_request_url(key.repo, member.number),
        )
        for member, step in zip(run.stack, run.chain, strict=False)
    ]


RUN_ID_PATTERN = re.compile(r"[0-9a-f-]{36}")


async def find_run(page: PageRequest) -> tuple[QueueActor, Run]:
    """Searches the repositories that the user can see. A run that has not started yet has no page."""
    name = page.path_parameter("run").removesuffix(BISECTION_SUFFIX)
    is_id = RUN_ID_PATTERN.fullmatch(name)
    found = await page.service.runs.find_by_id(RunId(name), page.user.token) if is_id else None
    if found is None or found[1].started_at is None:
        detail = "There is no such test run, or your token cannot see it. A pull request's page lists its runs."
        raise RequestRefused(Code.TEST_RUN_NOT_FOUND, detail)
    return found


async def show_check_output(page: PageRequest) -> Response:
    """With `raw`, the output itself. With `q`, marks the lines that contain it; `hit` is the match that is shown."""
    queue_actor, run = await find_run(page)
    check = page.path_parameter("check")
    output = await page.service.runner.output(run.id, check)
    if output is not None and "raw" in page.query:
        return PlainTextResponse(output)
    statuses = await page.service.store.statuses(queue_actor.key.repo, run.checked_commit)
    status = next((status for status in statuses if status.context == check), None)
    growing = run.is_active and (status is None or status.check_state is CheckState.PENDING)
    rendered, found = _render_output(page, output or b"", status, growing=growing)
    wrap = page.query.get("wrap") != "off"
    if found.line and "hit" not in page.query and not page.is_htmx:  # the form of the search cannot name the line
        url = check_output.output_url(check_output_url(run.id, check), found.query, hit=1, wrap=wrap, line=found.line)
        return RedirectResponse(url, 303)
    return page.render(
        "check_output.html",
        404 if output is None else 200,
        key=queue_actor.key,
        run=run,
        check=check,
        check_status=status,
        growing=growing,
        name=run_progress.name_run(run, queue_actor.key.branch),
        wrap=wrap,
        output_url=check_output.output_url,
        found=found,
        **rendered,
        has_output=output is not None,
    )


def _render_output(
    page: PageRequest, output: bytes, status: Status | None, *, growing: bool
) -> tuple[dict[str, object], check_output.Search]:
    limit = check_output.MAX_GROWING_BYTES if growing else check_output.MAX_BYTES
    tail = check_output.extract_tail(output, limit)
    lines = check_output.read_lines(tail)
    query = page.query.get("q", "")[: check_output.MAX_QUERY_LENGTH]
    found = check_output.search(lines, query, parse_integer(page.query.get("hit", ""), 1, 10**9) or 1)
    is_satisfied = status is not None and status.check_state in SATISFIED_CHECK_STATES
    failure = None if is_satisfied else check_output.find_failure(lines)
    return {"tail": tail, "lines": check_output.render_lines(lines, found), "failure": failure}, found
