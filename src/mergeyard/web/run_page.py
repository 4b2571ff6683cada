"""The page of a test run, and the page of a check's output."""

import re
from collections.abc import Sequence

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from mergeyard.domain.ids import PullRequestNumber, QueueKey, RunId, Sha
from mergeyard.domain.pull_requests import RequiredSource, Status
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Member, Run
from mergeyard.domain.states import CheckState
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import estimates
from mergeyard.ports.forge import ChecksFrom
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.git_names import BISECTION_SUFFIX
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.runs import RunView, RunWithStatuses, TestedPullRequest
from mergeyard.web import run_progress
from mergeyard.web.formats import TargetList, list_targets
from mergeyard.web.rendering import PageContext
from mergeyard.web.user_sessions import CurrentUser

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
    host_url: str | None = None


class RunPageView(Struct, frozen=True, kw_only=True):
    key: QueueKey
    run_view: RunView
    purpose: str
    remarks: tuple[str, ...]
    prs_ahead: tuple[StackEntry, ...]
    tested: tuple[StackEntry, ...]
    checks: run_progress.RunChecks
    required_by: str
    duration: run_progress.RunDuration
    impacted_targets: TargetList | None
    impacted_targets_of_tested: TargetList | None

    @property
    def live(self) -> bool:
        return self.run_view.run.is_active


def build_run_view(key: QueueKey, queue: Queue, run_view: RunView, source: ChecksFrom, now: Instant) -> RunPageView:
    run, impact = run_view.run, run_view.impacted_targets
    pull_requests = _collect_pull_requests(queue, run_view)
    stack = [
        _build_stack_entry(pull_requests, member, step.commit)
        for member, step in zip(run.stack, run.chain, strict=False)
    ]
    first_tested = len(run.prs_ahead)
    return RunPageView(
        key=key,
        run_view=run_view,
        purpose=run_progress.describe_purpose(run, key.branch),
        remarks=tuple(run_progress.list_remarks(run, queue)),
        prs_ahead=tuple(stack[:first_tested]),
        tested=tuple(stack[first_tested:]),
        checks=run_progress.build_run_checks(RunWithStatuses(run, run_view.statuses), source),
        required_by=REQUIRED_BY[run.required_statuses_source],
        duration=run_progress.measure_duration(run, estimates.median_run_duration_ms(queue), now),
        impacted_targets=None if impact is None else list_targets(impact.all),
        impacted_targets_of_tested=None if impact is None else list_targets(impact.tested),
    )


def _collect_pull_requests(queue: Queue, run_view: RunView) -> dict[PullRequestNumber, TestedPullRequest]:
    """The pull requests that the run tests, and those ahead that are still in the queue."""
    live = (queue.submissions.get(member.submission_id) for member in run_view.run.prs_ahead)
    prs_ahead = {
        each.number: TestedPullRequest(each.number, each.pull_request.title, None) for each in live if each is not None
    }
    return prs_ahead | {pull_request.number: pull_request for pull_request in run_view.pull_requests}


def _build_stack_entry(
    pull_requests: dict[PullRequestNumber, TestedPullRequest], member: Member, commit: Sha
) -> StackEntry:
    pull_request = pull_requests.get(member.number) or TestedPullRequest(member.number, "", None)
    return StackEntry(member.number, pull_request.title, member.head, commit, pull_request.page_url)


RUN_ID_PATTERN = re.compile(r"[0-9a-f-]{36}")


class RunPage:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._service = context.service

    def routes(self) -> Sequence[Route]:
        return (Route("/runs/{run}", self.show),)

    async def show(self, request: Request) -> Response:
        user = await self._context.authenticate(request)
        queue_actor, run = await find_run(self._context, user, request.path_params["run"])
        run_view = await self._service.runs.view_run(queue_actor.key, run.id)
        source = self._service.repositories.get_host(queue_actor.key.repo.host).checks_from
        view = build_run_view(queue_actor.key, queue_actor.queue, run_view, source, self._service.clock.now())
        return self._context.render_page(request, "run.html", user, view=view)


async def find_run(context: PageContext, user: CurrentUser, name: str) -> tuple[QueueActor, Run]:
    """Searches the repositories that the user can see. A run that has not started yet has no page."""
    name = name.removesuffix(BISECTION_SUFFIX)
    found = await context.service.runs.find_by_id(RunId(name), user.token) if RUN_ID_PATTERN.fullmatch(name) else None
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


class CheckOutputPage:
    def __init__(self, context: PageContext) -> None:
        self._context = context

    def routes(self) -> Sequence[Route]:
        return (Route("/runs/{run}/output/{check:path}", self.show),)

    async def show(self, request: Request) -> Response:
        user = await self._context.authenticate(request)
        queue_actor, run = await find_run(self._context, user, request.path_params["run"])
        check: str = request.path_params["check"]
        output = await self._context.service.runner.output(run.id, check)
        if output is not None and "raw" in request.query_params:
            return PlainTextResponse(output)
        status = await self._find_status(queue_actor, run, check)
        return self._context.render(
            request,
            "check_output.html",
            404 if output is None else 200,
            user=user,
            key=queue_actor.key,
            run=run,
            check=check,
            check_status=status,
            growing=run.is_active and (status is None or status.check_state is CheckState.PENDING),
            tail=None if output is None else extract_tail(output),
        )

    async def _find_status(self, queue_actor: QueueActor, run: Run, check: str) -> Status | None:
        statuses = await self._context.service.store.statuses(queue_actor.key.repo, run.checked_commit)
        return next((status for status in statuses if status.context == check), None)


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
