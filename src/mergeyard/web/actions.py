"""Actions on a queue and its pull requests, one POST route for each, and the page that creates a queue."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mergeyard.domain.access import Scope, Token
from mergeyard.domain.config import LOWEST_PRIORITY, PRIORITIES, URGENT, Config, parse_priority
from mergeyard.domain.ids import TEST_BRANCH_PREFIX, PullRequestNumber, QueueKey, Repo, Sha
from mergeyard.domain.states import QueueState
from mergeyard.service import git_names
from mergeyard.service.audit_log import encode_actor
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.registry import queue_not_found
from mergeyard.service.submissions import HeadNotConfirmed, PullRequestCommand, SubmitOptions
from mergeyard.service.views import SubmissionView
from mergeyard.web.formats import page_not_found, parse_queue_name, queue_url, to_local_url
from mergeyard.web.rendering import PageContext
from mergeyard.web.user_sessions import CurrentUser, Form, read_user_form

MAX_PULL_REQUEST_NUMBER = 2**31 - 1
INVALID_PRIORITY = f"A priority is one of {', '.join(PRIORITIES)}, or a number up to {LOWEST_PRIORITY}."

Action = Callable[[CurrentUser, QueueKey, Form], Awaitable[str]]
"""Performs the action and returns the message for the user."""


class Actions:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._service = context.service
        self._actions: Mapping[str, tuple[Scope, Action]] = {
            "submit": (Scope.SUBMIT, self._submit),
            "priority": (Scope.SUBMIT, self._change_priority),
            "cancel": (Scope.SUBMIT, self._cancel),
            "restart": (Scope.SUBMIT, self._restart),
            "pause": (Scope.ADMIN, self._pause),
            "drain": (Scope.ADMIN, self._drain),
            "resume": (Scope.ADMIN, self._resume),
        }

    def routes(self) -> Sequence[Route]:
        return (
            Route("/actions", self.show_choices, methods=["GET"]),
            Route("/actions/{action}", self.perform, methods=["POST"]),
        )

    async def show_choices(self, request: Request) -> Response:
        """Lists the actions that are possible for one pull request."""
        user = await self._context.authenticate(request, Scope.SUBMIT)
        key = self._context.resolve_queue(user, request.query_params.get("queue", ""))
        view = await self._service.submission_queries.view_by_number(
            key, _parse_number(request.query_params.get("number", ""))
        )
        return self._context.render_page(request, "pull_request_actions.html", user, key=key, view=view)

    async def perform(self, request: Request) -> Response:
        scope, action = self._actions.get(request.path_params["action"], (None, None))
        if scope is None or action is None:
            raise page_not_found()
        user = await self._context.authenticate(request, scope)
        form = await read_user_form(user, request)
        key = self._context.resolve_queue(user, form.get("queue"))
        try:
            message = await action(user, key, form)
        except HeadNotConfirmed as refused:
            return self._ask_to_confirm_head(request, user, key, form, refused)
        next_url = to_local_url(form.get("there")) if "there" in form else queue_url(key)
        return self._context.report_success(request, message, next_url)

    def _ask_to_confirm_head(
        self, request: Request, user: CurrentUser, key: QueueKey, form: Form, refused: HeadNotConfirmed
    ) -> Response:
        """Shows the current head and a form that submits exactly that head."""
        number = _parse_number(form.get("number"))
        values = {
            "key": key,
            "number": number,
            "head": refused.head,
            "head_changed": refused.code is Code.SHA_MISMATCH,
            "fields": {name: form.get(name) for name in ("priority", "no_batch", "force", "there") if name in form},
            "host_url": self._service.repositories.get_host(key.repo.host).pull_request_url(key.repo, number),
        }
        template = "confirm_head_form.html" if "hx-request" in request.headers else "confirm_head.html"
        return self._context.render(request, template, 409, user=user, **values)

    async def _submit(self, user: CurrentUser, key: QueueKey, form: Form) -> str:
        options = SubmitOptions(
            head=Sha(form.get("head")) if form.get("head") else None,
            priority=_parse_priority(form.get("priority")),
            no_batch="no_batch" in form or None,
            forced="force" in form or None,
            by_maintainer=user.has_scope(Scope.ADMIN),
        )
        if options.priority == URGENT or options.forced:
            user.require(Scope.PRIORITY)
        command = _build_command(user, key, form, "was submitted.")
        return (await self._service.submissions.submit(command, options)).decode()

    async def _change_priority(self, user: CurrentUser, key: QueueKey, form: Form) -> str:
        priority = _parse_priority(form.get("priority"))
        if priority is None:
            raise RequestRefused(Code.INVALID_REQUEST, INVALID_PRIORITY)
        if priority == URGENT:
            user.require(Scope.PRIORITY)
        command = _build_command(user, key, form, "has a new priority.")
        return (await self._service.submissions.set_priority(command, priority)).decode()

    async def _cancel(self, user: CurrentUser, key: QueueKey, form: Form) -> str:
        command = _build_command(user, key, form, "was removed from the queue.")
        return (await self._service.submissions.cancel(command)).decode()

    async def _restart(self, user: CurrentUser, key: QueueKey, form: Form) -> str:
        command = _build_command(user, key, form, "is tested again.")
        return (await self._service.submissions.restart(command)).decode()

    async def _pause(self, user: CurrentUser, key: QueueKey, _: Form) -> str:
        return await self._set_state(user, key, QueueState.PAUSED, "The queue is paused. Nothing merges.")

    async def _drain(self, user: CurrentUser, key: QueueKey, _: Form) -> str:
        return await self._set_state(user, key, QueueState.DRAINING, "The queue is draining. Nothing new is admitted.")

    async def _resume(self, user: CurrentUser, key: QueueKey, _: Form) -> str:
        return await self._set_state(user, key, QueueState.RUNNING, "The queue is running.")

    async def _set_state(self, user: CurrentUser, key: QueueKey, state: QueueState, message: str) -> str:
        actor = encode_actor(user.token)
        return (await self._service.queues.update(key, {}, state, actor, lambda _: message.encode(), None)).decode()


def _build_command(user: CurrentUser, key: QueueKey, form: Form, done: str) -> PullRequestCommand:
    """`done` says what happened to the pull request; the message adds its current situation."""
    number = _parse_number(form.get("number"))

    def present(view: SubmissionView) -> bytes:
        return f"Pull request #{number} {done} {view.reason.message}".encode()

    return PullRequestCommand(key=key, number=number, actor=encode_actor(user.token), render=present)


def _parse_number(text: str) -> PullRequestNumber:
    digits = text.removeprefix("#")
    if digits.isascii() and digits.isdecimal() and len(digits) <= 10 and 1 <= int(digits) <= MAX_PULL_REQUEST_NUMBER:
        return PullRequestNumber(int(digits))
    raise RequestRefused(Code.INVALID_REQUEST, "Give the number of a pull request, such as 12.")


def _parse_priority(text: str) -> int | None:
    """None if the user chose nothing."""
    priority = parse_priority(text)
    if text and priority is None:
        raise RequestRefused(Code.INVALID_REQUEST, INVALID_PRIORITY)
    return priority


FIELD_BY_ERROR = {
    Code.HOST_NOT_ALLOWED: "host",
    Code.INVALID_REPO: "repo",
    Code.REPOSITORY_NOT_FOUND: "repo",
    Code.QUEUE_ALREADY_EXISTS: "branch",
    Code.BRANCH_NOT_FOUND: "branch",
    Code.INVALID_BRANCH: "branch",
}
"""The form field that shows the error."""


class CreateQueuePage:
    def __init__(self, context: PageContext) -> None:
        self._context = context

    def routes(self) -> Sequence[Route]:
        return (
            Route("/queues/new", self.show_form, methods=["GET"]),
            Route("/queues/new", self.create, methods=["POST"]),
            Route("/actions/delete", self.delete, methods=["POST"]),
        )

    async def show_form(self, request: Request) -> Response:
        user = await self._context.authenticate(request, Scope.ADMIN)
        return self._render(request, user, {}, {})

    async def create(self, request: Request) -> Response:
        user = await self._context.authenticate(request, Scope.ADMIN)
        form = await read_user_form(user, request)
        try:
            key = self._parse_key(user, form)
            await self._context.service.queues.create(key, Config(), encode_actor(user.token), lambda _: b"", None)
        except RequestRefused as refused:
            if refused.code not in FIELD_BY_ERROR:
                raise
            return self._render(request, user, form.to_dict(), {FIELD_BY_ERROR[refused.code]: refused.detail})
        return RedirectResponse(queue_url(key, "settings"), 303)

    async def delete(self, request: Request) -> Response:
        user = await self._context.authenticate(request, Scope.ADMIN)
        form = await read_user_form(user, request)
        key = parse_queue_name(form.get("queue"))  # not normalized: its host may no longer be configured
        if not user.token.can_access(key.repo):
            raise queue_not_found(key)
        await self._context.service.queues.delete(key, encode_actor(user.token), b"", None)
        return RedirectResponse("/", 303)

    def _parse_key(self, user: CurrentUser, form: Form) -> QueueKey:
        owner, _, name = form.get("repo").rpartition("/")
        if not (git_names.is_owner(owner) and git_names.is_repository_name(name)):
            raise RequestRefused(Code.INVALID_REPO, "Give the owner and the name of the repository, such as acme/app.")
        if not git_names.is_target_branch(form.get("branch")):
            raise RequestRefused(
                Code.INVALID_BRANCH, f"Give a valid branch name, not below {TEST_BRANCH_PREFIX}, such as main."
            )
        repo = self._context.service.repositories.canonical_repo(Repo(form.get("host"), owner, name), user.token)
        if not user.token.can_access(repo):
            raise RequestRefused(Code.REPOSITORY_NOT_FOUND, f"{repo} does not exist: check its owner and name.")
        return QueueKey(repo, form.get("branch"))

    def _render(
        self, request: Request, user: CurrentUser, values: Mapping[str, str], errors: Mapping[str, str]
    ) -> Response:
        return self._context.render_form(
            request,
            "create_queue.html",
            user,
            errors,
            hosts=_list_visible_hosts(user.token, self._context.service.repositories.hosts),
            values=values,
            errors=errors,
        )


def _list_visible_hosts(token: Token, hosts: Iterable[str]) -> list[str]:
    """A token that is limited to repositories sees only the hosts of these repositories."""
    visible = {repo.host for repo in token.repos}
    return sorted(host for host in hosts if not visible or host in visible)
