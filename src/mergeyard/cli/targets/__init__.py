"""Commands around impacted targets: compute them from changed paths, and upload them for parallel queues."""

import os
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mergeyard.api.answers import TargetsKept
from mergeyard.cli.options import repo_named, stop_with
from mergeyard.cli.targets.checkout import CannotTell, Checkout
from mergeyard.cli.targets.impact import impacted, targets_named
from mergeyard.cli.targets.uploading import Refused, Server, Subject, as_members, upload
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.targets import Targets
from mergeyard.service.repository_config import FILE, Broken, PathTargets, parse

app = typer.Typer(name="targets", no_args_is_help=True, help="Impacted targets, for parallel queues.")

URL = "MERGEYARD_URL"
TOKEN = "MERGEYARD_TOKEN"

Repo = Annotated[str | None, typer.Option("--repo", metavar="HOST/OWNER/NAME", help="The repository.")]
Branch = Annotated[str | None, typer.Option("--target-branch", metavar="BRANCH", help="The branch of the queue.")]
Pr = Annotated[int | None, typer.Option("--pr", metavar="N", min=1, help="The number of the pull request.")]


@app.command("from-paths")
def from_paths(
    base: Annotated[str, typer.Option("--base", metavar="COMMIT", help="What it will merge into.")] = "origin/main",
    head: Annotated[str, typer.Option("--head", metavar="COMMIT", help="The head of the pull request.")] = "HEAD",
    config: Annotated[Path | None, typer.Option("--config", help="Globs to try, else those of the base.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    and_upload: Annotated[bool, typer.Option("--upload", help="Also upload them.")] = False,
    repo: Repo = None,
    target_branch: Branch = None,
    pr: Pr = None,
) -> None:
    """Print what the changes of this checkout impact, by the globs in .mergeyard.toml.

    The globs are those of the base, so a pull request cannot choose its own.

    With --upload, MERGEYARD_URL and MERGEYARD_TOKEN say where to and by whom.
    """
    with refusals_told():
        checkout = Checkout(Path.cwd())
        base_sha, head_sha = checkout.commit(base), checkout.commit(head)
        content = checkout.file(base_sha, FILE) if config is None else config.read_bytes()
        targets = impacted(checkout.changed_paths(base_sha, head_sha), globs_in(content))
    show(targets, as_json=as_json)
    if and_upload:
        send(subject(repo, target_branch, pr, head_sha), targets)


@app.command("set")
def set_targets(
    names: Annotated[list[str] | None, typer.Argument(metavar="TARGET...", help="The targets, or ALL.")] = None,
    file: Annotated[Path | None, typer.Option("--file", help="Holds one target per line; - is the input.")] = None,
    nothing: Annotated[bool, typer.Option("--allow-empty", help="No target means that it impacts nothing.")] = False,
    sha: Annotated[str | None, typer.Option("--sha", help="The commit they belong to, else the present head.")] = None,
    repo: Repo = None,
    target_branch: Branch = None,
    pr: Pr = None,
) -> None:
    """Upload the impacted targets of a pull request, in place of those it had.

    MERGEYARD_URL and MERGEYARD_TOKEN say where to and by whom.
    """
    with refusals_told():
        given = [*(names or ()), *lines_of(file)]
    if not given and not nothing:
        stop_with("No target was given. If the pull request really impacts nothing, say so with --allow-empty.")
    send(subject(repo, target_branch, pr, None if sha is None else Sha(sha)), targets_named(given))


def globs_in(content: bytes | None) -> PathTargets:
    config = parse(content)
    if isinstance(config, Broken):
        stop_with(config.words)
    if config.targets is None:
        typer.echo(f"{FILE} has no [targets] there, so every change impacts ALL.", err=True)
        return PathTargets({})
    return config.targets


def lines_of(file: Path | None) -> Iterable[str]:
    if file is None:
        return ()
    content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    return filter(None, map(str.strip, content.decode().split("\n")))


def subject(repo: str | None, branch: str | None, pr: int | None, sha: Sha | None) -> Subject:
    if repo is None or branch is None or pr is None:
        stop_with("Say whose targets these are: --repo HOST/OWNER/NAME --target-branch BRANCH --pr N.")
    return Subject(QueueKey(repo_named(repo), branch), PrNumber(pr), sha)


def send(subject: Subject, targets: Targets) -> None:
    url, token = os.environ.get(URL, ""), os.environ.get(TOKEN, "")
    if not url.startswith(("http://", "https://")) or not token:
        stop_with(f"Set {URL} to where the service is, such as https://queue.example.com, and {TOKEN} to a token.")
    with refusals_told():
        kept = upload(Server(url, token), subject, targets)
    typer.echo(f"Pull request {kept.pr_number} at {kept.pr_sha[:12]} impacts {extent(kept)}.", err=True)


def extent(kept: TargetsKept) -> str:
    match kept.impacted_targets:
        case "ALL":
            return "ALL targets"
        case 1:
            return "1 target"
        case number:
            return f"{number} targets"


def show(targets: Targets, *, as_json: bool) -> None:
    members = as_members(targets)
    if as_json:
        typer.echo(msgspec.json.encode(members))
    else:
        for name in [members] if isinstance(members, str) else members:
            typer.echo(name)


@contextmanager
def refusals_told() -> Generator[None]:
    try:
        yield
    except (CannotTell, Refused, OSError, UnicodeDecodeError) as reason:
        stop_with(str(reason))
