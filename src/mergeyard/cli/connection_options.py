"""Options that several commands share: the server, the queue, and ages."""

import os
import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from mergeyard.cli.output import exit_with_usage_error, sanitize
from mergeyard.client import Client, MergeyardError, Queue, QueueName, RepoName, RetryPolicy, Unreachable
from mergeyard.domain.ids import Repo

HELP_OPTIONS = ["--help", "-h"]


def with_options_of(make: Callable[..., Any], command: Callable[..., None]) -> Callable[..., None]:
    """Adds the parameters of `make` to a command as options, and passes it the result of `make` as first argument."""
    options = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in signature(make).parameters.values()]

    @wraps(command)
    def run(**arguments: Any) -> None:
        made = make(**{option.name: arguments.pop(option.name) for option in options})
        command(made, **arguments)

    _, *own = signature(command).parameters.values()
    return set_signature(run, [*own, *options])


def set_signature(run: Callable[..., None], parameters: Iterable[Parameter]) -> Callable[..., None]:
    """Typer derives arguments and options from the signature of a function."""
    vars(run)["__signature__"] = Signature(list(parameters))
    return run


COMPLETION_RETRY_POLICY = RetryPolicy(total_timeout_s=0, response_timeout_s=1)


def complete_repositories(incomplete: str) -> list[str]:
    return filter_by_prefix(incomplete, (str(queue.repo) for queue in fetch_queue_names()))


def complete_branches(incomplete: str) -> list[str]:
    return filter_by_prefix(incomplete, (queue.target_branch for queue in fetch_queue_names()))


def fetch_queue_names() -> list[QueueName]:
    url, token = os.environ.get(URL_VARIABLE, ""), os.environ.get(TOKEN_VARIABLE, "")
    try:
        with Client(url, token, retry_policy=COMPLETION_RETRY_POLICY) as client:
            return [queue.queue_name for queue in client.list_queues().queues]
    except (ImportError, ValueError, MergeyardError, Unreachable):
        return []


def filter_by_prefix(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})


URL_VARIABLE, TOKEN_VARIABLE = "MERGEYARD_URL", "MERGEYARD_TOKEN"

connection_option: Callable[..., Any] = partial(typer.Option, rich_help_panel="Connection")

UrlOption = Annotated[str | None, connection_option("--url", envvar=URL_VARIABLE, help="The URL of the server.")]
TokenFileOption = Annotated[
    Path | None,
    connection_option("--token-file", help=f"A file that contains the token; default: {TOKEN_VARIABLE}."),
]
RepoOption = Annotated[
    str | None,
    connection_option(
        "--repo",
        envvar="MERGEYARD_REPO",
        metavar="HOST/OWNER/NAME",
        help="The repository; not needed if the token can read only one queue.",
        autocompletion=complete_repositories,
    ),
]
BranchOption = Annotated[
    str | None,
    connection_option(
        "--branch",
        "--target-branch",
        envvar="MERGEYARD_BRANCH",
        metavar="BRANCH",
        help="The target branch; not needed if there is only one queue.",
        autocompletion=complete_branches,
    ),
]
QueueOption = Annotated[
    str | None,
    connection_option(
        "--queue",
        metavar="HOST/OWNER/NAME:BRANCH",
        help="Repository and branch in one option, as in the URLs of the pages.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the API response, for programs.")]


MAX_LISTED_QUEUES = 20
INVALID_REPO = "{} is not a repository name: write --repo host/owner/name."


def parse_repo(text: str) -> Repo:
    return Repo.parse(text) or exit_with_usage_error(INVALID_REPO.format(sanitize(text)))


def parse_repo_name(text: str) -> RepoName:
    try:
        return RepoName.parse(text)
    except ValueError:
        exit_with_usage_error(INVALID_REPO.format(sanitize(text)))


def split_queue_option(queue: str) -> tuple[str, str]:
    """Splits --queue host/owner/name:branch into repository and branch."""
    repo, _, branch = queue.rpartition(":")
    if not (repo and branch):
        exit_with_usage_error(f"{sanitize(queue)} is not a queue name: write --queue host/owner/name:branch.")
    return repo, branch


def choose_queue(client: Client, repo: str | None, branch: str | None) -> QueueName:
    """Sends no request when repository and branch are both given."""
    repo_name = None if repo is None else parse_repo_name(repo)
    if repo_name is not None and branch is not None:
        return QueueName(repo_name, branch)
    matching = [queue.queue_name for queue in find_queues(client, repo_name, branch)]
    if not matching:
        exit_with_usage_error(f"{describe_missing_queue(repo_name, branch)} Create one with `mergeyard queue create`.")
    if len(matching) > 1:
        exit_with_usage_error(
            f"The token can read several queues. Choose one with --repo and --branch:\n{format_queues(matching)}"
        )
    return matching[0]


def find_queues(client: Client, repo: RepoName | None, branch: str | None) -> list[Queue]:
    """All queues that the token can read, filtered by repository and branch if given."""
    return filter_queues(client.list_queues().queues, repo, branch)


def filter_queues(queues: Iterable[Queue], repo: RepoName | None, branch: str | None) -> list[Queue]:
    """Ignores the case of repository names: most Git hosts do, and no host here has two repositories that differ only
    in case."""
    return [
        queue
        for queue in queues
        if (repo is None or str(repo).lower() == str(queue.repo).lower()) and branch in (None, queue.branch)
    ]


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
