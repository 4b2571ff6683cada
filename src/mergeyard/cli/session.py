"""Session of a command that calls the server: the client, the queue it is about, and how the response is printed."""

import os
import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cached_property, wraps
from typing import Any, TypeVar
from urllib.parse import quote

import typer

from mergeyard.cli import connection_options
from mergeyard.cli.output import (
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
    MergeyardError,
    QueueName,
    RetryPolicy,
    SubmittedPullRequest,
    TimelineEntry,
    Unreachable,
    ValidationIssue,
)

INTERACTIVE_RETRY_POLICY = RetryPolicy(total_timeout_s=8)
"""A user is waiting at the terminal."""
WAITING_RETRY_POLICY = RetryPolicy(total_timeout_s=300)
"""Longer than a server restart takes."""


Response = TypeVar("Response")

ERROR_HINTS = {
    "sha_required": "Review that head, then submit it with --sha HEAD.",
    "sha_mismatch": "Review that head, then submit it with --sha HEAD.",
    "test_run_not_found": "`mergeyard runs` lists the latest ones.",
}
"""What to do about an error, in words of the command line."""
COMMAND_BY_OPERATION = {
    "submitPullRequest": "submit",
    "cancelPullRequest": "cancel",
    "restartTestsOnPullRequest": "restart",
    "getSubmittedPullRequest": "status",
    "setImpactedTargets": "targets set",
    "getMergeQueueTestingDetails": "runs show",
    "listMergeQueueTestingResults": "runs list",
    "createQueue": "queue create",
    "updateQueue": "queue update",
    "deleteQueue": "queue delete",
    "getQueue": "queue show",
    "listQueues": "queue list",
    "listEvents": "events",
    "verifyLandings": "verify",
    "replayQueue": "whatif",
}
OPERATION_PATTERN = re.compile(rf"`?\b({'|'.join(COMMAND_BY_OPERATION)})\b`?")
OPTION_BY_POINTER = {
    "/pr/number": "the pull request number",
    "/pr/sha": "--sha",
    "/pr/branch": "--head",
    "/repo": "--repo",
    "/targetBranch": "--branch",
    "/testRunId": "the id of the run",
    "/impactedTargets": "the targets",
    "/stateReason": "--reason",
}
"""By JSON pointer, for members whose option has another name; a member of one of these counts too."""
API_ADVICE = (
    " Correct it and send the request again.",
    ": see `testRunId` of a submitted pull request.",
)
"""Ends of messages for programs that call the API."""


def translate_error(error: MergeyardError) -> list[str]:
    """The lines of the message, with commands and options in place of the API's operations and members."""
    detail = error.detail
    for advice in API_ADVICE:
        detail = detail.replace(advice, "." if advice.startswith(":") else "")
    for issue in error.errors:
        detail = detail.replace(f"`{issue.pointer}`", name_option(issue)) if issue.pointer else detail
    others = [f"  {name_option(issue)}: {issue.message}" for issue in error.errors if issue.message not in detail]
    hints = [ERROR_HINTS[error.code]] if error.code in ERROR_HINTS else []
    return [replace_operations(line) for line in (detail, *others, *hints)]


def replace_operations(text: str) -> str:
    return OPERATION_PATTERN.sub(lambda found: f"`mergeyard {COMMAND_BY_OPERATION[found[1]]}`", text)


def name_option(issue: ValidationIssue) -> str:
    """The option or argument that a JSON pointer of the request is about."""
    for pointer, option in OPTION_BY_POINTER.items():
        if issue.pointer == pointer or issue.pointer.startswith(f"{pointer}/"):
            return option
    member = issue.pointer.split("/")[1] if issue.pointer.startswith("/") else ""
    return "--" + re.sub(r"(?=[A-Z])", "-", member).lower() if member else "the request"


class Session:
    """Creates the client on first use: commands that only compute something need no server."""

    def __init__(
        self,
        url: connection_options.UrlOption = None,
        token_file: connection_options.TokenFileOption = None,
        repo: connection_options.RepoOption = None,
        branch: connection_options.BranchOption = None,
        queue: connection_options.QueueOption = None,
        as_json: connection_options.JsonOption = False,
    ) -> None:
        self.repo, self.branch = (repo, branch) if queue is None else connection_options.split_queue_option(queue)
        self.as_json = as_json
        self._url = url
        self._token_file = token_file

    @cached_property
    def client(self) -> Client:
        url, token = connection_options.URL_VARIABLE, connection_options.TOKEN_VARIABLE
        if not self._url:
            exit_with_usage_error(f"No server given: set {url} to its URL, such as https://queue.example.com.")
        try:
            return Client(self._url, self._read_token(), retry_policy=INTERACTIVE_RETRY_POLICY)
        except ImportError:
            message = "The environment sets a SOCKS proxy, which needs a package that is not installed"
            exit_with_usage_error(f"{message}: unset ALL_PROXY, or `pip install 'httpx[socks]'`.")
        except ValueError as error:
            exit_with_usage_error(f"{error} Check {url} and {token}, or --url and --token-file.")

    @cached_property
    def queue(self) -> QueueName:
        return connection_options.choose_queue(self.client, self.repo, self.branch)

    @property
    def new_queue(self) -> QueueName:
        """The queue to create, which must be named by options."""
        if self.repo is None or self.branch is None:
            exit_with_usage_error("No branch given for the new queue: pass --repo host/owner/name --branch main.")
        return QueueName(connection_options.parse_repo_name(self.repo), self.branch)

    def build_page_url(self, number: int) -> str:
        """The page of a pull request, at the server that this command calls."""
        repo, branch = quote(str(self.queue.repo)), quote(self.queue.target_branch, safe="")
        return f"{(self._url or '').rstrip('/')}/pulls/{repo}/{number}?branch={branch}"

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
            yield
        except MergeyardError as error:
            reference = f"({error.code}, request {error.request_id})"
            exit_with_message("\n".join(map(sanitize, [*translate_error(error), reference])), ExitCode.REFUSED)
        except Unreachable as error:
            exit_with_message(f"{sanitize(self._url or '')}: {sanitize(str(error))}", ExitCode.UNREACHABLE)
        finally:
            if "client" in self.__dict__:
                self.client.close()

    def _read_token(self) -> str:
        variable, file = connection_options.TOKEN_VARIABLE, self._token_file
        try:
            token = os.environ.get(variable, "") if file is None else file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            exit_with_usage_error(f"Cannot read the token from {file} ({error}): pass another file with --token-file.")
        return token.strip() or exit_with_usage_error(
            f"No token given: set {variable} to a token, or pass a file that contains it with --token-file."
        )


def with_session(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: adds the connection options to a command and passes it the session they describe."""

    @wraps(command)
    def run(session: Session, **arguments: Any) -> None:
        with session.exit_on_client_errors():
            command(session, **arguments)

    return connection_options.with_options_of(Session, run)


POLL_INTERVAL_S = 1.0
EXIT_CODE_BY_STATE = {"merged": ExitCode.SUCCESS, "failed": ExitCode.FAILED, "cancelled": ExitCode.CANCELLED}


INTERRUPTED_EXIT_CODE = 130
"""As a shell reports a command that Ctrl-C ended."""


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
