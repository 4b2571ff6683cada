"""`mergeyard pr`: pull requests of plain Git repositories."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
import typer

from mergeyard.cli.output import (
    build_table,
    cut_title,
    encode_json,
    exit_with_message,
    exit_with_usage_error,
    plain_text,
    print_table,
)
from mergeyard.cli.pull_requests import NumberArgument
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.ports.forge import HostError

if TYPE_CHECKING:
    from mergeyard.adapters.host_plain.host import UnreadablePullRequest
    from mergeyard.adapters.host_plain.pull_requests import StoredPullRequest

app = typer.Typer(name="pr", no_args_is_help=True, help="Manage pull requests of plain Git repositories.")


RepoPathOption = Annotated[
    Path | None, typer.Option("--repo-path", metavar="DIR", help="The folder of the repository (required).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


TitleOption = Annotated[str | None, typer.Option("--title", help="The title; default: the subject of the head commit.")]


Result = TypeVar("Result")


@app.command("open")
def open_command(
    head: Annotated[str, typer.Option("--head", metavar="BRANCH", help="The branch to merge.")],
    repo_path: RepoPathOption = None,
    base: Annotated[str, typer.Option("--base", metavar="BRANCH", help="The branch to merge into.")] = "main",
    title: TitleOption = None,
    author: Annotated[
        str | None, typer.Option("--author", help="The author; default: that of the head commit.")
    ] = None,
    draft: Annotated[bool, typer.Option("--draft", help="Open a draft, which cannot be merged yet.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Open a pull request and print its number.

    Examples:
        mergeyard pr open --repo-path /srv/git/acme/app.git --head topic
    """
    from mergeyard.adapters.host_plain import editor

    opening = editor.NewPullRequest(head=head, base=base, title=title, author=author, draft=draft)
    number = run_or_exit(editor.open_pull_request(resolve_repository(repo_path), opening))
    typer.echo(encode_json({"number": number}) if as_json else number)


@app.command("update")
def update_command(
    number: NumberArgument,
    repo_path: RepoPathOption = None,
    head: Annotated[str | None, typer.Option("--head", metavar="BRANCH", help="Merge another branch.")] = None,
    base: Annotated[str | None, typer.Option("--base", metavar="BRANCH", help="Merge into another branch.")] = None,
    title: TitleOption = None,
    draft: Annotated[bool | None, typer.Option("--draft/--ready", help="Mark as a draft, or as ready.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Update a pull request to the latest commit of its branch, and change the given properties.

    Examples:
        mergeyard pr update 12 --repo-path /srv/git/acme/app.git --ready
    """
    from mergeyard.adapters.host_plain import editor

    change = editor.PullRequestChange(head=head, base=base, title=title, draft=draft)
    run_or_exit(editor.update_pull_request(resolve_repository(repo_path), PullRequestNumber(number), change))
    if as_json:
        typer.echo(encode_json({"number": number}))


@app.command("close")
def close_command(number: NumberArgument, repo_path: RepoPathOption = None, as_json: JsonOption = False) -> None:
    """Close a pull request without merging it.

    Examples:
        mergeyard pr close 12 --repo-path /srv/git/acme/app.git
    """
    from mergeyard.adapters.host_plain import editor

    run_or_exit(editor.close_pull_request(resolve_repository(repo_path), PullRequestNumber(number)))
    if as_json:
        typer.echo(encode_json({"number": number}))


@app.command("list")
def list_command(repo_path: RepoPathOption = None, as_json: JsonOption = False) -> None:
    """List all pull requests of a plain Git repository. `mergeyard list` lists those of a queue.

    Examples:
        mergeyard pr list --repo-path /srv/git/acme/app.git
    """
    from mergeyard.adapters.host_plain.host import list_pull_requests

    pull_requests = run_or_exit(list_pull_requests(resolve_repository(repo_path)))
    if as_json:
        typer.echo(encode_json({"pullRequests": [to_members(pull_request) for pull_request in pull_requests]}))
    else:
        show_pull_requests(pull_requests)


def to_members(pull_request: "StoredPullRequest | UnreadablePullRequest") -> dict[str, Any]:
    from mergeyard.adapters.host_plain.host import UnreadablePullRequest

    if isinstance(pull_request, UnreadablePullRequest):
        return {"number": pull_request.number, "state": "unreadable", "message": pull_request.detail}
    return {"number": pull_request.number, "head": pull_request.head, **msgspec.to_builtins(pull_request.meta)}


def show_pull_requests(pull_requests: "list[StoredPullRequest | UnreadablePullRequest]") -> None:
    from mergeyard.adapters.host_plain.host import UnreadablePullRequest

    table = build_table("PR", "state", "into", "branch", "head", "author", "title")
    for pull_request in pull_requests:
        if isinstance(pull_request, UnreadablePullRequest):
            table.add_row(f"#{pull_request.number}", "unreadable", "", "", "", "", plain_text(pull_request.detail))
        else:
            meta = pull_request.meta
            state = f"{meta.state}, draft" if meta.draft else str(meta.state)
            cells = map(plain_text, (meta.base, meta.branch, pull_request.head[:12], meta.author))
            table.add_row(f"#{pull_request.number}", state, *cells, cut_title(meta.title))
    print_table(table, "No pull requests. Open one with `mergeyard pr open`.")


def resolve_repository(path: Path | None) -> Path:
    from mergeyard.adapters.host_plain.host import find_repository

    if path is None:
        advice = "Pass its folder with --repo-path. `mergeyard list` lists the pull requests of a queue."
        exit_with_usage_error("`mergeyard pr` needs the folder of a plain Git repository.", hint=advice)
    return find_repository(path) or exit_with_message(
        f"{path} is not a Git repository: pass its folder with --repo-path."
    )


def run_or_exit(operation: Coroutine[None, None, Result]) -> Result:
    from mergeyard.adapters.host_plain.editor import EditRefused
    from mergeyard.adapters.host_plain.pull_requests import InvalidMetadata

    try:
        return asyncio.run(operation)
    except (EditRefused, HostError, InvalidMetadata) as error:
        exit_with_message(str(error))
