"""Session of a command that calls the server: the client, the queue it is about, and how the response is printed."""

import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import cached_property, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import typer

from mergeyard.cli import connection_options
from mergeyard.cli.output import ExitCode, encode_json, exit_with_message, format_reason, sanitize, show_spinner
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


class Session:
    """Creates the client on first use: commands that only compute something need no server."""

    def __init__(self, options: connection_options.ConnectionOptions) -> None:
        self.options = connection_options.expand_queue_option(options)

    @cached_property
    def client(self) -> Client:
        if not self.options.url:
            exit_with_message(
                f"No server given: set {connection_options.URL_VARIABLE} to its URL, such as https://queue.example.com.",
                ExitCode.USAGE_ERROR,
            )
        try:
            return Client(self.options.url, self._read_token(), retry_policy=INTERACTIVE_RETRY_POLICY)
        except ImportError:
            message = "The environment sets a SOCKS proxy, which needs a package that is not installed"
            exit_with_message(f"{message}: unset ALL_PROXY, or `pip install 'httpx[socks]'`.", ExitCode.USAGE_ERROR)
        except ValueError as error:
            exit_with_message(
                f"{error} Check {connection_options.URL_VARIABLE} and {connection_options.TOKEN_VARIABLE}, "
                "or --url and --token-file.",
                ExitCode.USAGE_ERROR,
            )

    @cached_property
    def queue(self) -> QueueName:
        return connection_options.choose_queue(self.client, self.options.repo, self.options.branch)

    @property
    def new_queue(self) -> QueueName:
        """The queue to create, which must be named by options."""
        if self.options.repo is None or self.options.branch is None:
            exit_with_message(
                "No branch given for the new queue: pass --repo host/owner/name --branch main.", ExitCode.USAGE_ERROR
            )
        return QueueName(connection_options.parse_repo_name(self.options.repo), self.options.branch)

    def retry_longer(self) -> None:
        """For commands that wait for hours: keep retrying while the server restarts."""
        self.client.retry_policy = WAITING_RETRY_POLICY

    def show(self, response: Any, render: Callable[[], None]) -> None:
        """Prints the response as JSON with --json, otherwise rendered for users."""
        if self.options.as_json:
            typer.echo(encode_json(response))
        else:
            render()

    def close(self) -> None:
        if "client" in self.__dict__:
            self.client.close()

    def _read_token(self) -> str:
        token = (
            os.environ.get(connection_options.TOKEN_VARIABLE, "")
            if self.options.token_file is None
            else _read_token_file(self.options.token_file)
        )
        if not token.strip():
            exit_with_message(
                f"No token given: set {connection_options.TOKEN_VARIABLE} to a token, "
                "or pass a file that contains it with --token-file.",
                ExitCode.USAGE_ERROR,
            )
        return token.strip()


def with_session(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: adds the connection options to a command and passes it the session they describe."""
    fields = msgspec.structs.fields(connection_options.ConnectionOptions)

    @wraps(command)
    def run(**arguments: Any) -> None:
        session = Session(
            connection_options.ConnectionOptions(**{field.name: arguments.pop(field.name) for field in fields})
        )
        with exit_on_client_errors(session.options):
            try:
                command(session, **arguments)
            finally:
                session.close()

    own_parameters = list(signature(command).parameters.values())[1:]
    hints = get_type_hints(connection_options.ConnectionOptions, include_extras=True)
    option_parameters = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for field in fields
    ]
    return set_signature(run, [*own_parameters, *option_parameters])


def set_signature(run: Callable[..., None], parameters: Iterable[Parameter]) -> Callable[..., None]:
    """Typer derives arguments and options from the signature of a function."""
    vars(run)["__signature__"] = Signature(list(parameters))
    return run


ERROR_HINTS = {
    "sha_required": "Review that head, then submit it with --sha HEAD.",
    "sha_mismatch": "Review that head, then submit it with --sha HEAD.",
}
"""The CLI option that corresponds to the API field named in the error."""


@contextmanager
def exit_on_client_errors(options: connection_options.ConnectionOptions) -> Generator[None]:
    try:
        yield
    except MergeyardError as error:
        issues = [f"  {issue.pointer}: {issue.message}" for issue in error.errors]
        hints = [ERROR_HINTS[error.code]] if error.code in ERROR_HINTS else []
        reference = f"({error.code}, request {error.request_id})"
        exit_with_message("\n".join(map(sanitize, [error.detail, *issues, *hints, reference])), ExitCode.REFUSED)
    except Unreachable as error:
        exit_with_message(f"{sanitize(options.url or '')}: {sanitize(str(error))}", ExitCode.UNREACHABLE)


def _read_token_file(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        exit_with_message(
            f"Cannot read the token from {file} ({error}): pass another file with --token-file.", ExitCode.USAGE_ERROR
        )


POLL_INTERVAL_S = 1.0
EXIT_CODE_BY_STATE = {"merged": ExitCode.SUCCESS, "failed": ExitCode.FAILED, "cancelled": ExitCode.CANCELLED}


def follow_pull_request(
    session: Session, number: int, on_change: Callable[[TimelineEntry], None]
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


def ignore_change(_: TimelineEntry) -> None:
    """For callers that only need the final state."""


def exit_code_for(pull_request: SubmittedPullRequest) -> ExitCode:
    """A terminal state that this version does not know counts as failed."""
    return EXIT_CODE_BY_STATE.get(pull_request.state, ExitCode.FAILED)
