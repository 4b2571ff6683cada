"""Session of a command that calls the server: the client, the queue it is about, and how the response is printed."""

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cached_property, wraps
from typing import Any

import typer

from mergeyard.cli import connection_options
from mergeyard.cli.output import (
    ExitCode,
    encode_json,
    exit_with_message,
    exit_with_usage_error,
    format_reason,
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
)

INTERACTIVE_RETRY_POLICY = RetryPolicy(total_timeout_s=8)
"""A user is waiting at the terminal."""
WAITING_RETRY_POLICY = RetryPolicy(total_timeout_s=300)
"""Longer than a server restart takes."""


ERROR_HINTS = {
    "sha_required": "Review that head, then submit it with --sha HEAD.",
    "sha_mismatch": "Review that head, then submit it with --sha HEAD.",
}
"""The CLI option that corresponds to the API field named in the error."""


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
            issues = [f"  {issue.pointer}: {issue.message}" for issue in error.errors]
            hints = [ERROR_HINTS[error.code]] if error.code in ERROR_HINTS else []
            reference = f"({error.code}, request {error.request_id})"
            exit_with_message("\n".join(map(sanitize, [error.detail, *issues, *hints, reference])), ExitCode.REFUSED)
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


def follow_pull_request(
    session: Session, number: int, on_change: Callable[[TimelineEntry], None] = lambda _: None
) -> SubmittedPullRequest:
    """Calls `on_change` once for every timeline entry, oldest first. On a terminal a spinner shows the current
    reason."""
    session.retry_longer()
    submission_uuid, reported = "", 0
    with show_spinner(f"#{number}") as update_spinner:
        while True:
            pull_request = session.client.get_pull_request(session.queue, number, include_timeline=True)
            timeline = pull_request.timeline or ()
            reported = reported if pull_request.id == submission_uuid else 0
            submission_uuid = pull_request.id
            for entry in reversed(timeline[: len(timeline) - reported]):
                on_change(entry)
            reported = len(timeline)
            if pull_request.is_concluded:
                return pull_request
            update_spinner(f"#{number} {pull_request.state}: {format_reason(pull_request.reason)}")
            time.sleep(POLL_INTERVAL_S)


def exit_code_for(pull_request: SubmittedPullRequest) -> ExitCode:
    """A terminal state that this version does not know counts as failed."""
    return EXIT_CODE_BY_STATE.get(pull_request.state, ExitCode.FAILED)
