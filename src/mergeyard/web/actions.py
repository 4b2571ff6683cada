"""Actions on a queue and its pull requests. Each has a dialog (GET) that says what it costs, and a POST that does it.

What the user must still confirm is asked in the same dialog: a POST that lacks the answer changes nothing and returns
the question, with all fields of the form.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from starlette.responses import RedirectResponse, Response

from mergeyard.domain.access import Scope
from mergeyard.domain.config import LOWEST_PRIORITY, PRIORITIES, URGENT, format_priority, parse_priority
from mergeyard.domain.ids import PullRequestNumber, QueueKey, RunId, Sha
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.runs import Run
from mergeyard.domain.states import TERMINAL_STATES, CheckState, PullRequestState, QueueState, RunStatus
from mergeyard.ports.forge import HostError, OpenPullRequest
from mergeyard.service.audit_log import encode_actor
from mergeyard.service.errors import Code, RequestRefused, queue_not_found
from mergeyard.service.previews import Action
from mergeyard.service.submissions import HeadNotConfirmed, PullRequestCommand, SubmitOptions
from mergeyard.service.views import SubmissionView
from mergeyard.web.formats import (
    PULL_REQUEST_STATE_LABELS,
    parse_number,
    parse_queue_name,
    pluralize,
    queue_url,
    to_local_url,
)
from mergeyard.web.rendering import PageRequest

INVALID_PRIORITY = f"A priority is one of {', '.join(PRIORITIES)}, or a number up to {LOWEST_PRIORITY}."
MAX_STATE_REASON_CHARS = 500
HOST_TIMEOUT_S = 5.0
"""A user waits for the dialog."""
FIELDS_OF_CONFIRMATION = {"csrf", "queue", "number", "picked", "there"}
"""Those that the dialog of a confirmation has itself."""
COST_CONFIRMED = "cost"
SAME_HEAD_CONFIRMED = "same_head"
"""Values of the field `confirmed`."""


# The menu and the dialogs.


async def show_choices(page: PageRequest) -> Response:
    """Lists the actions that are possible for one pull request."""
    key = page.resolve_queue(page.query.get("queue", ""))
    view = await _view(page, key, _parse_pull_request_number(page.query.get("number", "")))
    return page.ask("pull_request_actions.html", key=key, view=view)


async def show_message(page: PageRequest) -> Response:
    """The commit message of a pull request, submitted or not, and how it would merge."""
    key = page.resolve_queue(page.query.get("queue", ""))
    number = _parse_pull_request_number(page.query.get("number", ""))
    preview = await page.service.previews.preview_merge(key, number)
    return page.ask("commit_message.html", key=key, number=number, preview=preview)


async def ask_to_submit(page: PageRequest) -> Response:
    """Without a number, the user chooses one of the open pull requests."""
    key = page.resolve_queue(page.query.get("queue", ""))
    ask = partial(page.ask, "submit_dialog.html", key=key)
    if not page.query.get("number"):
        await page.service.registry.get(key)
        choices = None if page.is_htmx else await _list_choices(page, key)
        return ask(number=None, ended=None, head=None, failure=None, choices=choices)
    number = _parse_pull_request_number(page.query["number"])
    ended = await _read_ended(page, key, number)
    if ended is None:
        return ask(number=number, ended=None, head=None, failure=None)
    head = await _read_head(page, key, number)
    failure = await _describe_unchanged_failure(page, ended, head)
    # The form names the head that the dialog shows, except for a fork: the user then confirms the head in a question.
    return ask(number=number, ended=ended, head=None if ended.submission.pull_request.fork else head, failure=failure)


async def show_open_pull_requests(page: PageRequest) -> Response:
    """The choices of the dialog, which it fetches when it is open already: the Git host can be slow."""
    key = page.resolve_queue(page.query.get("queue", ""))
    return page.render("open_pull_requests.html", key=key, choices=await _list_choices(page, key))


class Choices(Struct, frozen=True):
    pull_requests: Sequence[OpenPullRequest] = ()
    in_queue: Mapping[PullRequestNumber, str] = {}
    """The states of those that the queue holds."""
    error: str = ""


async def _list_choices(page: PageRequest, key: QueueKey) -> Choices:
    """The user's own pull requests first, then the newest."""
    queue = (await page.service.registry.get(key)).queue
    try:
        listed = await page.service.open_pull_requests.list(key)
    except RequestRefused as refused:
        return Choices(error=refused.detail)
    own = page.own_name.casefold()
    in_queue = {
        each.number: PULL_REQUEST_STATE_LABELS[submission.state]
        for each in listed
        if (submission := queue.submission_of(each.number)) is not None
    }
    return Choices(sorted(listed, key=lambda each: each.author.casefold() != own), in_queue)


async def ask_to_restart(page: PageRequest) -> Response:
    return await _ask_about_submission(page, Action.RESTART)


async def ask_to_cancel(page: PageRequest) -> Response:
    return await _ask_about_submission(page, Action.CANCEL)


async def ask_for_priority(page: PageRequest) -> Response:
    return await _ask_about_submission(page, Action.PRIORITY)


async def _ask_about_submission(page: PageRequest, action: Action) -> Response:
    key = page.resolve_queue(page.query.get("queue", ""))
    number = _parse_pull_request_number(page.query.get("number", ""))
    view = await _view(page, key, number)
    if view.submission.state in TERMINAL_STATES:
        state = PULL_REQUEST_STATE_LABELS[view.submission.state].lower()
        raise RequestRefused(Code.PR_NOT_IN_QUEUE, f"#{number} is no longer in the queue ({state}).")
    if action is Action.RESTART:
        _require_restartable(view)
    queue = (await page.service.registry.get(key)).queue
    is_bisecting = view.submission.id in queue.bisected_submission_ids
    cost = None if action is Action.PRIORITY else await page.service.previews.preview(key, number, action)
    return page.ask("action_dialog.html", key=key, view=view, action=action, cost=cost, is_bisecting=is_bisecting)


async def ask_for_state(action: str, page: PageRequest) -> Response:
    key = page.resolve_queue(page.query.get("queue", ""))
    queue = (await page.service.registry.get(key)).queue
    return page.ask("queue_action_dialog.html", key=key, queue=queue, action=action, max_chars=MAX_STATE_REASON_CHARS)


async def ask_to_delete(page: PageRequest) -> Response:
    key = _parse_deleted_queue(page, page.query.get("queue", ""))
    queue = (await page.service.registry.get(key)).queue
    return page.ask("queue_action_dialog.html", key=key, queue=queue, action="delete", max_chars=0)


def _ask_to_confirm(
    page: PageRequest, key: QueueKey, number: PullRequestNumber, action: Action, **question: object
) -> Response:
    """Sends the form back with a question; `confirmed` names what the user confirms by sending it again."""
    fields = [(name, value) for name, value in page.form.items() if name not in FIELDS_OF_CONFIRMATION]
    values = {"key": key, "number": number, "action": action, "fields": fields, "there": _next_url(page, key)}
    return page.ask("confirm_dialog.html", 409, **values, **question)


# What the actions do.


async def submit(page: PageRequest) -> Response:
    key, form = page.resolve_queue(page.form.get("queue")), page.form
    number = _parse_pull_request_number(form.get("number"), form.get("picked"))
    options = SubmitOptions(
        head=Sha(form.get("head")) if form.get("head") else None,
        priority=_parse_priority(form.get("priority")),
        no_batch="no_batch" in form or None,
        forced="force" in form or None,
        by_maintainer=page.user.has_scope(Scope.ADMIN),
    )
    if options.priority == URGENT or options.forced:
        page.user.require(Scope.PRIORITY)
    before = (await page.service.registry.get(key)).queue.submission_of(number)
    ended = None if before is not None else await _read_ended(page, key, number)
    confirmed = form.get_all("confirmed")
    if ended is not None and SAME_HEAD_CONFIRMED not in confirmed:
        head = await _read_head(page, key, number)
        failure = await _describe_unchanged_failure(page, ended, head)
        if failure is not None:
            return _ask_to_confirm(page, key, number, Action.SUBMIT, failure=failure, confirmed=SAME_HEAD_CONFIRMED)
    if options.priority == URGENT and not (before and before.is_urgent) and COST_CONFIRMED not in confirmed:
        return await _ask_to_confirm_urgent(page, key, number, Action.SUBMIT)
    try:
        return await _perform(
            page,
            key,
            number,
            lambda command: page.service.submissions.submit(command, options),
            partial(_report_submission, before, was_ended=ended is not None),
        )
    except HeadNotConfirmed as refused:
        host = page.service.repositories.get_host(key.repo.host)
        return _ask_to_confirm(
            page,
            key,
            number,
            Action.SUBMIT,
            head=refused.head,
            head_changed=refused.code is Code.SHA_MISMATCH,
            is_fork=refused.is_fork,
            host_url=host.pull_request_url(key.repo, number),
        )


async def _ask_to_confirm_urgent(
    page: PageRequest, key: QueueKey, number: PullRequestNumber, action: Action
) -> Response:
    cost = await page.service.previews.preview(key, number, action, URGENT)
    return _ask_to_confirm(page, key, number, action, cost=cost, confirmed=COST_CONFIRMED)


def _report_submission(before: Submission | None, view: SubmissionView, *, was_ended: bool) -> str:
    after = view.submission
    if before is None or before.id != after.id:
        return f"#{after.number} {'resubmitted' if was_ended else 'added to the queue'}. {view.reason.message}"
    place = f"position {view.position}" if view.position else PULL_REQUEST_STATE_LABELS[after.state].lower()
    changes = [
        f"its priority is now {format_priority(after.priority)}" if before.priority != after.priority else "",
        "it is now tested alone" if before.no_batch != after.no_batch else "",
        "it no longer waits for the rules of the Git host" if before.forced != after.forced else "",
        "its guarded paths are approved" if before.by_maintainer != after.by_maintainer else "",
    ]
    changed = ", and ".join(filter(None, changes))
    already = "already queued" if view.position else "already in the queue"
    return f"#{after.number} is {already} ({place}). {changed[:1].upper()}{changed[1:] or 'Nothing changed'}."


async def change_priority(page: PageRequest) -> Response:
    key, number = page.resolve_queue(page.form.get("queue")), _parse_pull_request_number(page.form.get("number"))
    priority = _parse_priority(page.form.get("priority"))
    if priority is None:
        raise RequestRefused(Code.INVALID_REQUEST, INVALID_PRIORITY)
    before = (await page.service.registry.get(key)).queue.submission_of(number)
    if priority == URGENT:
        page.user.require(Scope.PRIORITY)
        if before and not before.is_urgent and COST_CONFIRMED not in page.form.get_all("confirmed"):
            return await _ask_to_confirm_urgent(page, key, number, Action.PRIORITY)
    name = format_priority(priority)
    if before and before.priority == priority and not before.priority_is_default:
        return _report(page, key, f"#{number} has the priority {name} already. Nothing changed.")
    return await _perform(
        page,
        key,
        number,
        lambda command: page.service.submissions.set_priority(command, priority),
        lambda _: f"#{number} is now urgent." if priority == URGENT else f"#{number} now has the priority {name}.",
    )


async def cancel(page: PageRequest) -> Response:
    key, number = page.resolve_queue(page.form.get("queue")), _parse_pull_request_number(page.form.get("number"))
    message = f"#{number} removed from the queue."
    return await _perform(page, key, number, page.service.submissions.cancel, lambda _: message)


async def restart(page: PageRequest) -> Response:
    key, number = page.resolve_queue(page.form.get("queue")), _parse_pull_request_number(page.form.get("number"))
    _require_restartable(await _view(page, key, number))
    queue = (await page.service.registry.get(key)).queue
    message = f"Tests of #{number} restarted."
    if not queue.can_start_runs:
        message = f"Tests of #{number} stopped. They start again when the queue is running."
    return await _perform(page, key, number, page.service.submissions.restart, lambda _: message)


def _require_restartable(view: SubmissionView) -> None:
    submission = view.submission
    if submission.state in (PullRequestState.NOT_READY, PullRequestState.PENDING):
        detail = f"#{submission.number} is not being tested, so there is nothing to restart. {view.reason.message}"
        raise RequestRefused(Code.INVALID_REQUEST, detail)


STATE_MESSAGES = {
    QueueState.PAUSED: "Queue paused. Nothing is tested or merged until it is resumed.",
    QueueState.DRAINING: "Queue draining. New pull requests wait until it is resumed.",
    QueueState.RUNNING: "Queue resumed.",
}


async def set_state(state: QueueState, page: PageRequest) -> Response:
    key, reason = page.resolve_queue(page.form.get("queue")), page.form.get("reason")
    if len(reason) > MAX_STATE_REASON_CHARS:
        detail = (
            f"A reason has at most {MAX_STATE_REASON_CHARS} characters, and this one has {len(reason)}: shorten it."
        )
        raise RequestRefused(Code.INVALID_REQUEST, detail)
    actor = encode_actor(page.user.token)
    await page.service.queues.update(key, {}, state, actor, lambda _: b"", None, state_reason=reason)
    return _report(page, key, STATE_MESSAGES[state])


async def delete_queue(page: PageRequest) -> Response:
    key = _parse_deleted_queue(page, page.form.get("queue"))
    await page.service.queues.delete(key, encode_actor(page.user.token), b"", None)
    return Response(status_code=204, headers={"hx-redirect": "/"}) if page.is_htmx else RedirectResponse("/", 303)


def _parse_deleted_queue(page: PageRequest, name: str) -> QueueKey:
    """The name is not normalized: the host of the queue may no longer be configured."""
    key = parse_queue_name(name)
    if not page.user.token.can_access(key.repo):
        raise queue_not_found(key)
    return key


# Shared by the actions.


async def _perform(
    page: PageRequest,
    key: QueueKey,
    number: PullRequestNumber,
    execute: Callable[[PullRequestCommand], Awaitable[bytes]],
    present: Callable[[SubmissionView], str],
) -> Response:
    """The message also says how many test runs the action stopped."""
    queue_actor = await page.service.registry.get(key)
    running = {run.id for run in queue_actor.queue.runs_in_progress}
    command = PullRequestCommand(
        key=key, number=number, actor=encode_actor(page.user.token), render=lambda view: present(view).encode()
    )
    message = (await execute(command)).decode()
    stopped = _count_stopped(running, queue_actor.queue.runs)
    if stopped:
        message += f" {pluralize(stopped, 'test run')} {'was' if stopped == 1 else 'were'} stopped."
    return _report(page, key, message)


def _count_stopped(running: set[RunId], runs: Mapping[RunId, Run]) -> int:
    return sum(run.status is RunStatus.CANCELLED for run in runs.values() if run.id in running)


def _report(page: PageRequest, key: QueueKey, message: str) -> Response:
    return page.report_success(message, _next_url(page, key))


def _next_url(page: PageRequest, key: QueueKey) -> str:
    return to_local_url(page.form.get("there")) if "there" in page.form else queue_url(key)


async def _view(page: PageRequest, key: QueueKey, number: PullRequestNumber) -> SubmissionView:
    return await page.service.submission_queries.view_by_number(key, number)


async def _read_ended(page: PageRequest, key: QueueKey, number: PullRequestNumber) -> SubmissionView | None:
    """The last submission, if the queue no longer holds the pull request."""
    queue_actor = await page.service.registry.get(key)
    if queue_actor.queue.submission_of(number) is not None:
        return None
    return await page.service.submission_queries.view_last_ended(queue_actor, number)


async def _read_head(page: PageRequest, key: QueueKey, number: PullRequestNumber) -> Sha | None:
    """None if the Git host does not answer soon: then the user is not asked about unchanged commits."""
    host = page.service.repositories.get_host(key.repo.host)
    try:
        async with asyncio.timeout(HOST_TIMEOUT_S):
            pull_request = await host.read_pull_request(key.repo, number, with_requirements=False)
    except (HostError, TimeoutError):
        return None
    return None if pull_request is None else pull_request.head


async def _describe_unchanged_failure(page: PageRequest, ended: SubmissionView, head: Sha | None) -> str | None:
    """The failed checks, if the pull request has the commits with which it failed; None if it has others."""
    submission = ended.submission
    if submission.state is not PullRequestState.FAILED or submission.pull_request.head != head:
        return None
    found = None if ended.run_id is None else await page.service.runs.find_by_id(ended.run_id, page.user.token)
    failed = () if found is None else (name for name, state in found[1].checks.items() if state is CheckState.FAILED)
    return ", ".join(failed)


def _parse_pull_request_number(text: str, picked: str = "") -> PullRequestNumber:
    """`picked` counts if the text is not a number: the user then searched with it."""
    number = parse_number(text.removeprefix("#")) or parse_number(picked)
    if number is None:
        raise RequestRefused(Code.INVALID_REQUEST, "Choose a pull request, or enter its number, for example 12.")
    return number


def _parse_priority(text: str) -> int | None:
    """None if the user chose nothing."""
    priority = parse_priority(text)
    if text and priority is None:
        raise RequestRefused(Code.INVALID_REQUEST, INVALID_PRIORITY)
    return priority
