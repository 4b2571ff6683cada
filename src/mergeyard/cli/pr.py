"""Commands around the pull requests of plain Git repositories, which have no forge to open them on."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer
from rich.table import Table

from mergeyard.adapters.host_plain.branches import Refusal
from mergeyard.adapters.host_plain.changing import Change, close_pull, update_pull
from mergeyard.adapters.host_plain.folders import repository_at
from mergeyard.adapters.host_plain.listing import Unreadable, all_pulls
from mergeyard.adapters.host_plain.meta import BadMeta
from mergeyard.adapters.host_plain.opening import Opening, open_pull
from mergeyard.adapters.host_plain.pulls import StoredPull
from mergeyard.adapters.host_plain.refs import GREATEST
from mergeyard.cli.exits import stop_with
from mergeyard.cli.plainly import in_json, plain
from mergeyard.cli.terminal import put
from mergeyard.domain.ids import PrNumber
from mergeyard.ports.host import HostTrouble

app = typer.Typer(name="pr", no_args_is_help=True, help="Pull requests of plain Git repositories.")

RepoPath = Annotated[Path, typer.Option("--repo-path", metavar="DIR", help="The repository's folder.")]
Number = Annotated[int, typer.Argument(metavar="N", min=1, max=GREATEST, help="The pull request's number.")]
Title = Annotated[str | None, typer.Option("--title", help="Its title; at first the head commit's subject.")]
Outcome = TypeVar("Outcome")


@app.command("open")
def open_one(
    repo_path: RepoPath,
    head: Annotated[str, typer.Option("--head", metavar="BRANCH", help="The branch to merge.")],
    base: Annotated[str, typer.Option("--base", metavar="BRANCH", help="The branch to merge it into.")] = "main",
    title: Title = None,
    author: Annotated[str | None, typer.Option("--author", help="Else the head commit's author.")] = None,
    draft: Annotated[bool, typer.Option("--draft", help="Not to be merged yet.")] = False,
) -> None:
    """Open a pull request and print its number."""
    asked = Opening(head=head, base=base, title=title, author=author, draft=draft)
    typer.echo(outcome(open_pull(repository(repo_path), asked)))


@app.command("update")
def update_one(
    repo_path: RepoPath,
    number: Number,
    head: Annotated[str | None, typer.Option("--head", metavar="BRANCH", help="Take another branch.")] = None,
    base: Annotated[str | None, typer.Option("--base", metavar="BRANCH", help="Merge into another branch.")] = None,
    title: Title = None,
    draft: Annotated[bool | None, typer.Option("--draft/--ready", help="Whether it is still a draft.")] = None,
) -> None:
    """Show what was pushed to its branch, and change what is named."""
    change = Change(head=head, base=base, title=title, draft=draft)
    outcome(update_pull(repository(repo_path), PrNumber(number), change))


@app.command("close")
def close_one(repo_path: RepoPath, number: Number) -> None:
    """Close a pull request without merging it."""
    outcome(close_pull(repository(repo_path), PrNumber(number)))


@app.command("list")
def list_all(
    repo_path: RepoPath, as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False
) -> None:
    """List all pull requests."""
    pulls = outcome(all_pulls(repository(repo_path)))
    if as_json:
        typer.echo(in_json([members(pull) for pull in pulls]))
    else:
        show(pulls)


def members(pull: StoredPull | Unreadable) -> dict[str, Any]:
    match pull:
        case Unreadable():
            return {"number": pull.number, "state": "unreadable", "message": pull.words}
        case StoredPull():
            return {"number": pull.number, "head": pull.head, **msgspec.to_builtins(pull.meta)}


def show(pulls: list[StoredPull | Unreadable]) -> None:
    table = Table("PR", "state", "into", "branch", "head", "author", "title")
    for pull in pulls:
        match pull:
            case Unreadable():
                table.add_row(str(pull.number), "unreadable", "", "", "", "", plain(pull.words))
            case StoredPull(meta=meta):
                state = f"{meta.state}, draft" if meta.draft else str(meta.state)
                told = map(plain, (meta.base, meta.branch, pull.head[:12], meta.author, meta.title))
                table.add_row(str(pull.number), state, *told)
    put(table)


def repository(path: Path) -> Path:
    return repository_at(path) or stop_with(f"{path} is no Git repository. Name its folder with --repo-path.")


def outcome(work: Coroutine[None, None, Outcome]) -> Outcome:
    try:
        return asyncio.run(work)
    except (Refusal, HostTrouble, BadMeta) as reason:
        stop_with(str(reason))
