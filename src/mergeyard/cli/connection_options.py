"""Options that several commands share: the server, the queue, and ages."""

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

import typer

from mergeyard.cli import servers
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


def complete_queues(incomplete: str) -> list[str]:
    return filter_by_prefix(incomplete, (f"{queue.repo}:{queue.target_branch}" for queue in fetch_queue_names()))


def complete_servers(incomplete: str) -> list[str]:
    try:
        return filter_by_prefix(incomplete, servers.read_servers().servers)
    except servers.ServerError:
        return []


def fetch_queue_names() -> list[QueueName]:
    """None where the server cannot be asked: a completion prints no error."""
    try:
        server = servers.find_server(None, None)
        if server is None:
            return []
        with Client(server.url, servers.read_token(server, None), retry_policy=COMPLETION_RETRY_POLICY) as client:
            return [queue.queue_name for queue in client.list_queues().queues]
    except (ImportError, ValueError, MergeyardError, Unreachable, servers.ServerError):
        return []


def filter_by_prefix(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})


REPO_VARIABLE, BRANCH_VARIABLE, QUEUE_VARIABLE = "MERGEYARD_REPO", "MERGEYARD_BRANCH", "MERGEYARD_QUEUE"

connection_option: Callable[..., Any] = partial(typer.Option, rich_help_panel="Connection")

ServerOption = Annotated[
    str | None,
    connection_option(
        "--server",
        metavar="NAME",
        help=f"A server that you signed in to ({servers.SERVER_VARIABLE}).",
        autocompletion=complete_servers,
    ),
]
UrlOption = Annotated[
    str | None, connection_option("--url", metavar="URL", help=f"The URL of a server ({servers.URL_VARIABLE}).")
]
TokenFileOption = Annotated[
    Path | None,
    connection_option(
        "--token-file",
        metavar="FILE",
        help=f"A file with the token for --url ({servers.TOKEN_FILE_VARIABLE}, {servers.TOKEN_VARIABLE}).",
    ),
]
RepoOption = Annotated[
    str | None,
    connection_option(
        "--repo",
        metavar="REPO",
        help=f"The repository, as host/owner/name ({REPO_VARIABLE}). Default: that of the remote origin.",
        autocompletion=complete_repositories,
    ),
]
BranchOption = Annotated[
    str | None,
    connection_option(
        "--branch",
        metavar="BRANCH",
        help=f"The target branch ({BRANCH_VARIABLE}), if the repository has several queues.",
        autocompletion=complete_branches,
    ),
]
QueueOption = Annotated[
    str | None,
    connection_option(
        "--queue",
        metavar="QUEUE",
        help=f"Repository and branch in one, as host/owner/name:branch ({QUEUE_VARIABLE}).",
        autocompletion=complete_queues,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the response of the API as JSON.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
WebOption = Annotated[bool, typer.Option("--web", "-w", help="Open the page in a browser instead.")]


def choose_names(repo: str | None, branch: str | None, queue: str | None) -> tuple[str | None, str | None]:
    """Repository and branch as the options name them, else the variables."""
    if queue is not None:
        if repo is not None or branch is not None:
            exit_with_usage_error("--queue names the repository and the branch: omit --repo and --branch.")
        return split_queue_option(queue)
    variable = os.environ.get(QUEUE_VARIABLE) if repo is None else None  # its branch is that of another repository
    names = (
        split_queue_option(variable) if variable else (os.environ.get(REPO_VARIABLE), os.environ.get(BRANCH_VARIABLE))
    )
    return repo or names[0] or None, branch or names[1] or None


REMOTE_SCHEMES = {"https", "http", "ssh", "git", "git+ssh", "ssh+git"}
SCP_PATTERN = re.compile(r"(?:[^@/:]+@)?([^@/:\s]+):/?(.+)")
"""`git@github.com:acme/app.git`."""


def read_origin() -> RepoName | None:
    """The repository of the remote `origin` of the current checkout; None without one, and for a local path."""
    return parse_remote_url(read_origin_url())


def read_origin_url() -> str:
    """Empty without a checkout, and for one without the remote `origin`."""
    return _run_git("remote", "get-url", "origin") or ""


def read_current_branch() -> str | None:
    """None without a checkout, and for a commit that was checked out without a branch."""
    return _run_git("symbolic-ref", "--quiet", "--short", "HEAD")


def read_head() -> str | None:
    return _run_git("rev-parse", "--verify", "--quiet", "HEAD")


def has_commit(sha: str) -> bool:
    """Whether the checkout has this commit, also one that a rebase replaced."""
    return sha.isalnum() and _run_git("cat-file", "-e", f"{sha}^{{commit}}") is not None


def _run_git(*arguments: str) -> str | None:
    """What it prints; None if it fails or is not installed."""
    try:
        result = subprocess.run(["git", *arguments], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return result.stdout.decode(errors="replace").strip()


def parse_remote_url(url: str) -> RepoName | None:
    """The repository that the URL of a remote names, as https, ssh or scp-like URL; None for a local path."""
    try:
        if "://" in url:
            parts = urlsplit(url)
            host, path = (parts.hostname or "", unquote(parts.path)) if parts.scheme in REMOTE_SCHEMES else ("", "")
        else:
            matched = SCP_PATTERN.fullmatch(url)
            host, path = matched.groups() if matched else ("", "")
        return RepoName.parse(f"{host}/{path.strip('/').removesuffix('.git')}")
    except ValueError:
        return None


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
    origin_url = "" if repo_name is not None else read_origin_url()
    origin = parse_remote_url(origin_url)
    try:
        queues = client.list_queues().queues
    except MergeyardError:
        if origin is None or branch is None:
            raise
        return QueueName(origin, branch)  # a token that cannot read queues
    matching = filter_queues(queues, repo_name or origin, branch)
    if origin_url and origin is None:
        # The only queue that the token can read would be that of another repository.
        matching = [queue for queue in matching if is_path_of(origin_url, queue.repo)]
        missing = describe_foreign_path(origin_url, branch)
    else:
        missing = describe_missing_queue(repo_name or origin, branch, is_origin=origin is not None)
    if len(matching) != 1:
        listed = f"Choose one with --repo and --branch:\n{format_queues(matching or queues)}"
        exit_with_usage_error(
            "The token can read several queues." if matching else missing,
            hint=listed if queues else "Create a queue with `mergeyard queue create`.",
        )
    return matching[0].queue_name


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


def is_path_of(url: str, repo: RepoName) -> bool:
    """Whether a remote without a host name ends as the repository does: `/srv/git/acme/app.git` is acme/app."""
    path = url.rstrip("/").removesuffix(".git").lower()
    return f"/{path}".endswith(f"/{repo.owner}/{repo.name}".lower())


def format_queues(queues: Sequence[Queue]) -> str:
    lines = [f"  --repo {queue.repo} --branch {queue.branch}" for queue in queues[:MAX_LISTED_QUEUES]]
    rest = [f"  and {len(queues) - MAX_LISTED_QUEUES} more"] if len(queues) > MAX_LISTED_QUEUES else []
    return "\n".join(map(sanitize, [*lines, *rest]))


def describe_missing_queue(repo: RepoName | None, branch: str | None, *, is_origin: bool) -> str:
    where = " of ".join(filter(None, [branch, None if repo is None else str(repo)]))
    origin = " (the remote origin of this checkout)" if is_origin else ""
    return f"The token can read no queue for {sanitize(where)}{origin}." if where else "The token can read no queue."


def describe_foreign_path(url: str, branch: str | None) -> str:
    where = sanitize(url)
    if branch is not None:
        where = f"{sanitize(branch)} of {where}"
    return f"The token can read no queue for {where} (the remote origin of this checkout)."


AGE_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_age(text: str) -> timedelta:
    match = re.fullmatch(r"([1-9][0-9]{0,3})([mhdw])", text)
    if match is None:
        raise typer.BadParameter(f"{text} is not an age: write 30m, 12h, 7d or 2w.")
    return timedelta(**{AGE_UNITS[match[2]]: int(match[1])})


SinceOption = Annotated[
    timedelta,
    typer.Option("--since", metavar="AGE", parser=parse_age, help="How far back to look, such as 30m, 12h, 7d or 2w."),
]
