"""Session of a command that calls a server: the client, the queue it is about, and how the response is printed."""

import os
import re
import time
import webbrowser
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cached_property, wraps
from typing import Any, TypeVar
from urllib.parse import quote

import typer

from mergeyard.cli import connection_options, servers
from mergeyard.cli.output import (
    INTERRUPTED_EXIT_CODE,
    ExitCode,
    encode_json,
    exit_with_message,
    exit_with_usage_error,
    format_reason,
    label_state,
    print_message,
    sanitize,
    show_spinner,
)
from mergeyard.client import (
    Client,
    FieldError,
    MergeyardError,
    QueueName,
    RepoName,
    RetryPolicy,
    SubmittedPullRequest,
    TimelineEntry,
    Unreachable,
)

INTERACTIVE_RETRY_POLICY = RetryPolicy(total_timeout_s=8)
"""A user is waiting at the terminal."""
WAITING_RETRY_POLICY = RetryPolicy(total_timeout_s=300)
"""Longer than a server restart takes."""


Response = TypeVar("Response")

NOT_ALLOWED_STATUSES = (401, 403)
ERROR_HINTS = {
    "invalid_token": "Get a valid token and sign in with `mergeyard login URL`, or set it together with MERGEYARD_URL.",
    "queue_not_found": "`mergeyard queue list` lists the queues, `mergeyard queue create` creates one.",
    "queue_already_exists": "`mergeyard queue update` changes its settings.",
    "queue_not_empty": "`mergeyard cancel N` removes a pull request, `mergeyard queue drain` admits no new ones.",
    "pr_not_submitted": "`mergeyard submit N` submits a pull request, `mergeyard list` lists the submitted ones.",
    "pr_not_in_queue": "`mergeyard submit N` submits a pull request, `mergeyard list` lists the submitted ones.",
    "sha_required": "Review that head, then submit it with --sha HEAD.",
    "sha_mismatch": "Review that head, then submit it with --sha HEAD.",
    "test_run_not_found": "`mergeyard runs` lists the latest ones.",
}
"""By error code: which command or option helps. The messages of the server name neither."""
OPTION_BY_POINTER = {
    "/pr/number": "the pull request number",
    "/pr/sha": "--sha",
    "/pr/branch": "--head",
    "/repo": "--repo",
    "/targetBranch": "--branch",
    "/testRunId": "the id of the run",
    "/impactedTargets": "the targets",
    "/stateReason": "--reason",
    "/context": "the name of the check",
    "/url": "the URL",
    "/queues": "--queue",
    "/events": "--event",
    "/expiresAt": "--expires",
    "/repositories": "--repo",
    "/scopes": "--scope",
}
"""By JSON pointer, for members whose option has another name; a member of one of these counts too."""


def translate_error(error: MergeyardError) -> list[str]:
    """The lines of the message, with options in place of the members of the request."""
    detail = error.detail
    for issue in error.errors:
        detail = detail.replace(f"`{issue.pointer}`", name_option(issue)) if issue.pointer else detail
    others = [f"  {name_option(issue)}: {issue.message}" for issue in error.errors if issue.message not in detail]
    return [detail, *others]


def name_option(issue: FieldError) -> str:
    """The option or argument that a JSON pointer of the request is about."""
    for pointer, option in OPTION_BY_POINTER.items():
        if issue.pointer == pointer or issue.pointer.startswith(f"{pointer}/"):
            return option
    member = issue.pointer.split("/")[1] if issue.pointer.startswith("/") else ""
    return "--" + re.sub(r"(?=[A-Z])", "-", member).lower() if member else "the request"


NUMBER_ADVICE = "Pass the number of a pull request, such as 12."
PUSH_ADVICE = "Push or pull the branch, or pass the number."


class ServerSession:
    """For a command that calls a server. Creates the client on first use: a command that only computes something needs
    no server."""

    def __init__(
        self,
        server: connection_options.ServerOption = None,
        url: connection_options.UrlOption = None,
        token_file: connection_options.TokenFileOption = None,
        as_json: connection_options.JsonOption = False,
    ) -> None:
        self.as_json = as_json
        self._server_name = server
        self._url = url
        self._token_file = token_file

    @property
    def is_configured(self) -> bool:
        """Whether an option, a variable or the stored default names a server. A file that cannot be read, such as that
        of another user, names none."""
        try:
            return servers.find_server(self._url, self._server_name) is not None
        except servers.ServerError:
            variables = (os.environ.get(servers.URL_VARIABLE), os.environ.get(servers.SERVER_VARIABLE))
            return any((self._url, self._server_name, *variables))

    @cached_property
    def server(self) -> servers.Server:
        try:
            server = servers.find_server(self._url, self._server_name)
        except servers.ServerError as error:
            exit_with_usage_error(str(error), hint=error.hint)
        if server is None:
            advice = f"Sign in with `mergeyard login https://queue.example.com`, or set {servers.URL_VARIABLE}."
            exit_with_usage_error("No server is configured.", hint=advice)
        return server

    @property
    def has_token(self) -> bool:
        """False also where the server or its token cannot be determined."""
        try:
            servers.find_server(self._url, self._server_name)
            return bool(self._token)
        except servers.ServerError:
            return False

    @cached_property
    def _token(self) -> str:
        if not self.server.is_named_by_url and os.environ.get(servers.TOKEN_VARIABLE):
            print_message(f"{servers.TOKEN_VARIABLE} is not used: it needs --url or {servers.URL_VARIABLE}.")
        return servers.read_token(self.server, self._token_file)

    @cached_property
    def client(self) -> Client:
        try:
            return open_client(self.server.url, self._token)
        except servers.ServerError as error:
            exit_with_usage_error(str(error), hint=error.hint)

    def build_page_url(self, page: str) -> str:
        """The address of a page, at the server that this command calls."""
        return f"{self.server.url}{page}"

    def open_page(self, page: str) -> None:
        """Opens a page in the browser of the user, and prints its address for users without one."""
        url = self.build_page_url(page)
        print_message(url)
        webbrowser.open(url)

    def read_if_possible(self, read: Callable[[], Response]) -> Response | None:
        """For a detail that a command shows in addition to its result: None when the token cannot read it, or when
        the server does not have it or does not respond."""
        try:
            return read()
        except (MergeyardError, Unreachable):
            return None

    def retry_longer(self) -> None:
        """For commands that wait for hours: keep retrying while the server restarts."""
        self.client.retry_policy = WAITING_RETRY_POLICY

    def show(self, response: Any, render: Callable[[], None]) -> None:
        """Prints the response as JSON with --json, otherwise rendered for users."""
        if self.as_json:
            typer.echo(encode_json(response))
        else:
            render()

    @contextmanager
    def exit_on_client_errors(self) -> Generator[None]:
        """Closes the client at the end."""
        try:
            with exit_on_client_errors(lambda: self.server.url):
                yield
        finally:
            if "client" in self.__dict__:
                self.client.close()


class Session(ServerSession):
    """For a command about one queue."""

    def __init__(
        self,
        server: connection_options.ServerOption = None,
        url: connection_options.UrlOption = None,
        token_file: connection_options.TokenFileOption = None,
        repo: connection_options.RepoOption = None,
        branch: connection_options.BranchOption = None,
        queue: connection_options.QueueOption = None,
        as_json: connection_options.JsonOption = False,
    ) -> None:
        super().__init__(server, url, token_file, as_json)
        self.repo, self.branch = connection_options.choose_names(repo, branch, queue)

    @cached_property
    def queue(self) -> QueueName:
        return connection_options.choose_queue(self.client, self.repo, self.branch)

    @property
    def new_queue(self) -> QueueName:
        """The queue to create, whose branch must be named."""
        repo = self.named_repo
        if repo is None or self.branch is None:
            advice = "Pass --repo host/owner/name --branch main."
            exit_with_usage_error("No repository or no branch is given for the new queue.", hint=advice)
        return QueueName(repo, self.branch)

    @property
    def named_repo(self) -> RepoName | None:
        """The repository of the options or variables, else that of the remote `origin` of the checkout."""
        if self.repo is not None:
            return connection_options.parse_repo_name(self.repo)
        return connection_options.read_origin()

    def find_to_submit(self, number: int | None, sha: str | None) -> tuple[int, str | None]:
        """The given number and head, else the open pull request whose head is checked out here, with that head."""
        if number is not None:
            return number, sha
        branch, head = connection_options.read_current_branch(), connection_options.read_head()
        if branch is None or head is None:
            exit_with_usage_error("No pull request is given, and no branch is checked out here.", hint=NUMBER_ADVICE)
        from_branch = [
            each for each in self.client.list_open_pull_requests(self.queue).pull_requests if each.head_branch == branch
        ]
        # A fork can have a branch with the same name, but rarely at this commit.
        found = next((each for each in from_branch if each.pr_sha == head and sha in (None, head)), None)
        if found is None:
            message = f"No open pull request into {self.queue} has the branch {sanitize(branch)} at {head[:12]}."
            others = ", ".join(f"#{each.pr_number} is at {sanitize(each.pr_sha[:12])}" for each in from_branch)
            exit_with_usage_error(message, hint=f"{others}. {PUSH_ADVICE}" if others else NUMBER_ADVICE)
        print_message(f"The branch {branch} is that of #{found.pr_number} by {found.pr_author}: {found.pr_title}")
        return found.pr_number, head

    def find_number(self, number: int | None, advice: str = NUMBER_ADVICE) -> int:
        """The given number, else that of the pull request of the current branch. `advice`: how to give a number."""
        if number is not None:
            return number
        branch = connection_options.read_current_branch()
        if branch is None:
            exit_with_usage_error("No pull request is given, and no branch is checked out here.", hint=advice)
        try:
            found = self.client.find_pull_request(self.queue, branch)
        except MergeyardError as error:
            if error.code != "pr_not_submitted":
                raise
            message = f"No pull request from the branch {sanitize(branch)} was submitted to the queue for {self.queue}."
            exit_with_usage_error(message, hint=advice)
        # A fork can have a branch with the same name.
        if not connection_options.has_commit(found.pr_sha):
            message = f"#{found.pr_number} by {sanitize(found.pr_author)} comes from a branch with this name, but its"
            exit_with_usage_error(f"{message} head {sanitize(found.pr_sha[:12])} is not in this checkout.", hint=advice)
        print_message(f"The branch {branch} is that of #{found.pr_number} by {found.pr_author}: {found.pr_title}")
        return found.pr_number


def open_client(url: str, token: str, retry_policy: RetryPolicy = INTERACTIVE_RETRY_POLICY) -> Client:
    try:
        return Client(url, token, retry_policy=retry_policy)
    except ImportError:
        message = "The environment sets a SOCKS proxy, which needs a package that is not installed."
        exit_with_usage_error(message, hint="Unset ALL_PROXY, or `pip install 'httpx2[socks]'`.")
    except ValueError as error:
        exit_with_usage_error(sanitize(str(error)))


@contextmanager
def exit_on_client_errors(get_url: Callable[[], str]) -> Generator[None]:
    try:
        yield
    except MergeyardError as error:
        message, *details = map(sanitize, translate_error(error))
        reference = f"({sanitize(error.code)}, request {sanitize(error.request_id)})"
        code = ExitCode.NOT_ALLOWED if error.status in NOT_ALLOWED_STATUSES else ExitCode.REFUSED
        hint = ERROR_HINTS.get(error.code, "")
        exit_with_message("\n".join([f"{message} {reference}", *details]), code, hint=hint)
    except Unreachable as error:
        exit_with_message(f"{sanitize(get_url())}: {sanitize(str(error))}", ExitCode.UNREACHABLE)


def page_of_queue(queue: QueueName) -> str:
    return f"/queues/{quote(f'{queue.repo}:{queue.target_branch}', safe='/:')}"


def page_of_pull_request(queue: QueueName, number: int) -> str:
    return f"/pulls/{quote(str(queue.repo))}/{number}?branch={quote(queue.target_branch, safe='')}"


def page_of_pull_requests(queue: QueueName) -> str:
    return f"/pulls?queue={quote(f'{queue.repo}:{queue.target_branch}', safe='/:')}"


def with_session(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: adds the connection options to a command and passes it the session they describe."""
    return with_session_of(Session, command)


def with_server_session(command: Callable[..., None]) -> Callable[..., None]:
    """As `with_session`, for a command that is not about a queue."""
    return with_session_of(ServerSession, command)


def with_session_of(kind: type[ServerSession], command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of this kind of session to a command, and passes it the session."""

    @wraps(command)
    def run(session: ServerSession, **arguments: Any) -> None:
        with session.exit_on_client_errors():
            command(session, **arguments)

    return connection_options.with_options_of(kind, run)


POLL_INTERVAL_S = 1.0
EXIT_CODE_BY_STATE = {"merged": ExitCode.SUCCESS, "failed": ExitCode.FAILED, "cancelled": ExitCode.CANCELLED}


def follow_pull_request(
    session: Session, number: int, on_change: Callable[[TimelineEntry], None] = lambda _: None
) -> SubmittedPullRequest:
    """Calls `on_change` once for every timeline entry, oldest first. On a terminal a spinner shows the current
    reason. Ctrl-C ends the command, and not the submission."""
    session.retry_longer()
    pull_request, reported = None, 0
    try:
        with show_spinner(f"#{number}") as update_spinner:
            while True:
                previous_id = None if pull_request is None else pull_request.id
                pull_request = session.client.get_pull_request(session.queue, number, include_timeline=True)
                timeline = pull_request.timeline or ()
                reported = reported if pull_request.id == previous_id else 0
                for entry in reversed(timeline[: len(timeline) - reported]):
                    on_change(entry)
                reported = len(timeline)
                if pull_request.is_concluded:
                    return pull_request
                update_spinner(f"#{number} {format_progress(pull_request)}")
                time.sleep(POLL_INTERVAL_S)
    except KeyboardInterrupt:
        print_message(describe_interrupted_wait(number, pull_request))
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None


def format_progress(pull_request: SubmittedPullRequest) -> str:
    position = "" if pull_request.position is None else f" (position {pull_request.position})"
    return f"{label_state(pull_request)}{position}: {format_reason(pull_request.reason)}"


def describe_interrupted_wait(number: int, pull_request: SubmittedPullRequest | None) -> str:
    """`pull_request`: as it was read last, if it was read."""
    again = f"`mergeyard status {number} --wait` waits again."
    if pull_request is None:
        return f"Stopped waiting for #{number}. {again}"
    if pull_request.position is None:
        return f"Stopped waiting; #{number} stays in the queue (not ready). {again}"
    return f"Stopped waiting; #{number} stays queued (position {pull_request.position}). {again}"


def exit_code_for(pull_request: SubmittedPullRequest) -> ExitCode:
    """A terminal state that this version does not know counts as failed."""
    return EXIT_CODE_BY_STATE.get(pull_request.state, ExitCode.FAILED)
