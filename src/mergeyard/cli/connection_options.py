"""Options that several commands share: settings files, the server, the queue, and ages."""

import os
import re
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace

from mergeyard.cli.output import ExitCode, exit_with_message, sanitize
from mergeyard.client import Client, MergeyardError, QueueName, RepoName, RetryPolicy, Unreachable
from mergeyard.domain.ids import Repo


def parse_repo(text: str) -> Repo:
    repo = Repo.parse(text)
    if repo is None:
        exit_with_message(f"{text} is not a repository name: write --repo host/owner/name.", ExitCode.USAGE_ERROR)
    return repo


COMPLETION_RETRY_POLICY = RetryPolicy(total_timeout_s=0, response_timeout_s=1)


def complete_repositories(incomplete: str) -> list[str]:
    return filter_by_prefix(incomplete, (str(queue.repo) for queue in fetch_queue_names()))


def complete_branches(incomplete: str) -> list[str]:
    return filter_by_prefix(incomplete, (queue.target_branch for queue in fetch_queue_names()))


def fetch_queue_names() -> list[QueueName]:
    url, token = os.environ.get("MERGEYARD_URL", ""), os.environ.get("MERGEYARD_TOKEN", "")
    try:
        with Client(url, token, retry_policy=COMPLETION_RETRY_POLICY) as client:
            return [queue.queue_name for queue in client.list_queues().queues]
    except (ImportError, ValueError, MergeyardError, Unreachable):
        return []


def filter_by_prefix(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})


CONNECTION_PANEL = "Connection"
URL_VARIABLE, TOKEN_VARIABLE = "MERGEYARD_URL", "MERGEYARD_TOKEN"

UrlOption = Annotated[
    str | None,
    typer.Option("--url", envvar=URL_VARIABLE, help="The URL of the server.", rich_help_panel=CONNECTION_PANEL),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        help=f"A file that contains the token; default: {TOKEN_VARIABLE}.",
        rich_help_panel=CONNECTION_PANEL,
    ),
]
RepoOption = Annotated[
    str | None,
    typer.Option(
        "--repo",
        envvar="MERGEYARD_REPO",
        metavar="HOST/OWNER/NAME",
        help="The repository; not needed if the token can read only one queue.",
        rich_help_panel=CONNECTION_PANEL,
        autocompletion=complete_repositories,
    ),
]
BranchOption = Annotated[
    str | None,
    typer.Option(
        "--branch",
        "--target-branch",
        envvar="MERGEYARD_BRANCH",
        metavar="BRANCH",
        help="The target branch; not needed if there is only one queue.",
        rich_help_panel=CONNECTION_PANEL,
        autocompletion=complete_branches,
    ),
]
QueueOption = Annotated[
    str | None,
    typer.Option(
        "--queue",
        metavar="HOST/OWNER/NAME:BRANCH",
        help="Repository and branch in one option, as in the URLs of the pages.",
        rich_help_panel=CONNECTION_PANEL,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the API response, for programs.")]


class ConnectionOptions(Struct, frozen=True, kw_only=True):
    """The parsed connection options."""

    url: UrlOption = None
    token_file: TokenFileOption = None
    repo: RepoOption = None
    branch: BranchOption = None
    queue: QueueOption = None
    as_json: JsonOption = False


MAX_LISTED_QUEUES = 20


def parse_repo_name(text: str) -> RepoName:
    try:
        return RepoName.parse(text)
    except ValueError:
        exit_with_message(
            f"{sanitize(text)} is not a repository name: write --repo host/owner/name.", ExitCode.USAGE_ERROR
        )


def expand_queue_option(options: ConnectionOptions) -> ConnectionOptions:
    """Splits --queue host/owner/name:branch into repository and branch."""
    if options.queue is None:
        return options
    repo, _, branch = options.queue.rpartition(":")
    if not (repo and branch):
        exit_with_message(
            f"{sanitize(options.queue)} is not a queue name: write --queue host/owner/name:branch.",
            ExitCode.USAGE_ERROR,
        )
    return replace(options, repo=repo, branch=branch)


def choose_queue(client: Client, repo: str | None, branch: str | None) -> QueueName:
    """Sends no request when repository and branch are both given."""
    repo_name = None if repo is None else parse_repo_name(repo)
    if repo_name is not None and branch is not None:
        return QueueName(repo_name, branch)
    matching = find_queues(client, repo_name, branch)
    if not matching:
        exit_with_message(
            f"{describe_missing_queue(repo_name, branch)} Create one with `mergeyard queue create`.",
            ExitCode.USAGE_ERROR,
        )
    if len(matching) > 1:
        exit_with_message(
            f"The token can read several queues. Choose one with --repo and --branch:\n{format_queues(matching)}",
            ExitCode.USAGE_ERROR,
        )
    return matching[0]


def find_queues(client: Client, repo: RepoName | None, branch: str | None) -> list[QueueName]:
    """All queues that the token can read, filtered by repository and branch if given."""
    queues = [queue.queue_name for queue in client.list_queues().queues]
    return [queue for queue in queues if is_same_repo(repo, queue) and branch in (None, queue.target_branch)]


def is_same_repo(repo: RepoName | None, queue: QueueName) -> bool:
    """Ignores case: most Git hosts do, and no host here has two repositories whose names differ only in case."""
    return repo is None or str(repo).lower() == str(queue.repo).lower()


def format_queues(queues: list[QueueName]) -> str:
    lines = [f"  --repo {queue.repo} --branch {queue.target_branch}" for queue in queues[:MAX_LISTED_QUEUES]]
    rest = [f"  and {len(queues) - MAX_LISTED_QUEUES} more"] if len(queues) > MAX_LISTED_QUEUES else []
    return "\n".join(map(sanitize, [*lines, *rest]))


def describe_missing_queue(repo: RepoName | None, branch: str | None) -> str:
    where = " of ".join(filter(None, [branch, None if repo is None else str(repo)]))
    return f"The token can read no queue for {sanitize(where)}." if where else "The token can read no queue."


AGE_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_age(text: str) -> timedelta:
    match = re.fullmatch(r"([1-9]\d{0,3})([mhdw])", text)
    if match is None:
        raise typer.BadParameter(f"{text} is not an age: write 30m, 12h, 7d or 2w.")
    return timedelta(**{AGE_UNITS[match[2]]: int(match[1])})


SinceOption = Annotated[
    timedelta, typer.Option("--since", metavar="AGE", parser=parse_age, help="Not older than 30m, 12h, 7d, 2w.")
]
