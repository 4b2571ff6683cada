"""Actions on a queue and its pull requests, one POST route for each, and the page that creates a queue."""

from starlette.responses import RedirectResponse, Response

from mergeyard.domain.access import Scope
from mergeyard.domain.config import LOWEST_PRIORITY, PRIORITIES, URGENT, parse_priority
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Sha
from mergeyard.domain.states import QueueState
from mergeyard.service.audit_log import encode_actor
from mergeyard.service.errors import Code, RequestRefused, queue_not_found
from mergeyard.service.submissions import HeadNotConfirmed, PullRequestCommand, SubmitOptions
from mergeyard.service.views import SubmissionView
from mergeyard.web.formats import parse_number, parse_queue_name, queue_url, to_local_url
from mergeyard.web.rendering import PageRequest

INVALID_PRIORITY = f"A priority is one of {', '.join(PRIORITIES)}, or a number up to {LOWEST_PRIORITY}."


async def show_choices(page: PageRequest) -> Response:
    """Lists the actions that are possible for one pull request."""
    key = page.resolve_queue(page.query.get("queue", ""))
    number = _parse_pull_request_number(page.query.get("number", ""))
    view = await page.service.submission_queries.view_by_number(key, number)
    return page.render("pull_request_actions.html", key=key, view=view)


async def submit(page: PageRequest) -> Response:
    form = page.form
    options = SubmitOptions(
        head=Sha(form.get("head")) if form.get("head") else None,
        priority=_parse_priority(form.get("priority")),
        no_batch="no_batch" in form or None,
        forced="force" in form or None,
        by_maintainer=page.user.has_scope(Scope.ADMIN),
    )
    if options.priority == URGENT or options.forced:
        page.user.require(Scope.PRIORITY)
    command = _build_command(page, "was submitted.")
    try:
        return _report(page, command.key, await page.service.submissions.submit(command, options))
    except HeadNotConfirmed as refused:
        return _ask_to_confirm_head(page, command, refused)


def _ask_to_confirm_head(page: PageRequest, command: PullRequestCommand, refused: HeadNotConfirmed) -> Response:
    """Shows the current head and a form that submits exactly that head."""
    key, form = command.key, page.form
    return page.render(
        "confirm_head_form.html" if page.is_htmx else "confirm_head.html",
        409,
        key=key,
        number=command.number,
        head=refused.head,
        head_changed=refused.code is Code.SHA_MISMATCH,
        fields={name: form.get(name) for name in ("priority", "no_batch", "force", "there") if name in form},
        host_url=page.service.repositories.get_host(key.repo.host).pull_request_url(key.repo, command.number),
    )


async def change_priority(page: PageRequest) -> Response:
    priority = _parse_priority(page.form.get("priority"))
    if priority is None:
        raise RequestRefused(Code.INVALID_REQUEST, INVALID_PRIORITY)
    if priority == URGENT:
        page.user.require(Scope.PRIORITY)
    command = _build_command(page, "has a new priority.")
    return _report(page, command.key, await page.service.submissions.set_priority(command, priority))


async def cancel(page: PageRequest) -> Response:
    command = _build_command(page, "was removed from the queue.")
    return _report(page, command.key, await page.service.submissions.cancel(command))


async def restart(page: PageRequest) -> Response:
    command = _build_command(page, "is tested again.")
    return _report(page, command.key, await page.service.submissions.restart(command))


STATE_MESSAGES = {
    QueueState.PAUSED: "The queue is paused. Nothing merges.",
    QueueState.DRAINING: "The queue is draining. Nothing new is admitted.",
    QueueState.RUNNING: "The queue is running.",
}


async def set_state(state: QueueState, page: PageRequest) -> Response:
    key, message = page.resolve_queue(page.form.get("queue")), STATE_MESSAGES[state].encode()
    await page.service.queues.update(key, {}, state, encode_actor(page.user.token), lambda _: message, None)
    return _report(page, key, message)


def _report(page: PageRequest, key: QueueKey, message: bytes) -> Response:
    next_url = to_local_url(page.form.get("there")) if "there" in page.form else queue_url(key)
    return page.report_success(message.decode(), next_url)


def _build_command(page: PageRequest, done: str) -> PullRequestCommand:
    """`done` says what happened to the pull request; the message adds its current situation."""
    key, number = page.resolve_queue(page.form.get("queue")), _parse_pull_request_number(page.form.get("number"))

    def present(view: SubmissionView) -> bytes:
        return f"Pull request #{number} {done} {view.reason.message}".encode()

    return PullRequestCommand(key=key, number=number, actor=encode_actor(page.user.token), render=present)


def _parse_pull_request_number(text: str) -> PullRequestNumber:
    number = parse_number(text.removeprefix("#"))
    if number is None:
        raise RequestRefused(Code.INVALID_REQUEST, "Give the number of a pull request, such as 12.")
    return number


def _parse_priority(text: str) -> int | None:
    """None if the user chose nothing."""
    priority = parse_priority(text)
    if text and priority is None:
        raise RequestRefused(Code.INVALID_REQUEST, INVALID_PRIORITY)
    return priority


async def delete_queue(page: PageRequest) -> Response:
    key = parse_queue_name(page.form.get("queue"))  # not normalized: its host may no longer be configured
    if not page.user.token.can_access(key.repo):
        raise queue_not_found(key)
    await page.service.queues.delete(key, encode_actor(page.user.token), b"", None)
    return RedirectResponse("/", 303)
