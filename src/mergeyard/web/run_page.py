"""The page of a test run, and the page of a check's output."""

import re

from msgspec import Struct
from starlette.responses import PlainTextResponse, Response

from mergeyard.domain.ids import PullRequestNumber, RunId, Sha
from mergeyard.domain.pull_requests import RequiredSource
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import CheckState
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.git_names import BISECTION_SUFFIX
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.runs import RunView
from mergeyard.web import run_progress
from mergeyard.web.formats import list_targets
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


async def show(page: PageRequest) -> Response:
    queue_actor, run = await find_run(page)
    key, queue = queue_actor.key, queue_actor.queue
    run_view = await page.service.runs.view_run(key, run.id)
    run, targets = run_view.run, run_view.impacted_targets
    source = page.service.repositories.get_host(key.repo.host).checks_from
    stack = _build_stack(queue, run_view)
    return page.render(
        "run.html",
        key=key,
        run_view=run_view,
        run=run,
        live=run.is_active,
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


def _build_stack(queue: Queue, run_view: RunView) -> list[StackEntry]:
    """With the titles of the pull requests that the run tests, and of those ahead that are still in the queue."""
    run, tested = run_view.run, {pull_request.number: pull_request for pull_request in run_view.pull_requests}
    live = (queue.submissions.get(member.submission_id) for member in run.prs_ahead)
    titles = {each.number: each.pull_request.title for each in live if each is not None}
    titles |= {pull_request.number: pull_request.title for pull_request in tested.values()}
    return [
        StackEntry(
            member.number,
            titles.get(member.number, ""),
            member.head,
            step.commit,
            tested[member.number].page_url if member.number in tested else None,
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


MAX_OUTPUT_BYTES = 256 * 1024
ESCAPE_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""ANSI colors, cursor movements, hyperlinks and other terminal control sequences."""
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Tail(Struct, frozen=True):
    text: str
    left_out: int
    """The number of bytes before the text."""


async def show_check_output(page: PageRequest) -> Response:
    queue_actor, run = await find_run(page)
    check = page.path_parameter("check")
    output = await page.service.runner.output(run.id, check)
    if output is not None and "raw" in page.query:
        return PlainTextResponse(output)
    statuses = await page.service.store.statuses(queue_actor.key.repo, run.checked_commit)
    status = next((status for status in statuses if status.context == check), None)
    return page.render(
        "check_output.html",
        404 if output is None else 200,
        key=queue_actor.key,
        run=run,
        check=check,
        check_status=status,
        growing=run.is_active and (status is None or status.check_state is CheckState.PENDING),
        tail=None if output is None else extract_tail(output),
    )


def extract_tail(output: bytes, limit: int = MAX_OUTPUT_BYTES) -> Tail:
    """The last whole lines, or the end of the last line if that line alone exceeds the limit."""
    if len(output) <= limit:
        return Tail(to_readable_text(output), 0)
    end = output[-limit:]
    end = end.partition(b"\n")[2] or end
    return Tail(to_readable_text(end), len(output) - len(end))


def to_readable_text(output: bytes) -> str:
    text = ESCAPE_SEQUENCES.sub("", output.decode(errors="replace").replace("\r\n", "\n"))
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r", "\n"))
