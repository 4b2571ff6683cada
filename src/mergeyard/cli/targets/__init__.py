"""Commands around impacted targets: compute them from changed paths, and upload them for parallel queues."""

import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from mergeyard.cli.exits import Ends, stop_with
from mergeyard.cli.plainly import in_json, say
from mergeyard.cli.session import Session, asking
from mergeyard.cli.targets.checkout import CannotTell, Checkout
from mergeyard.cli.targets.impact import impacted, targets_named
from mergeyard.cli.terminal import busy
from mergeyard.client import TargetsKept
from mergeyard.domain.targets import Targets
from mergeyard.service.repository_config import FILE, Broken, PathTargets, parse

app = typer.Typer(name="targets", no_args_is_help=True, help="Impacted targets, for parallel queues.")

Pr = Annotated[int | None, typer.Option("--pr", metavar="N", min=1, help="The number of the pull request.")]


@app.command("from-paths")
@asking
def from_paths(
    session: Session,
    base: Annotated[str, typer.Option("--base", metavar="COMMIT", help="What it will merge into.")] = "origin/main",
    head: Annotated[str, typer.Option("--head", metavar="COMMIT", help="The head of the pull request.")] = "HEAD",
    config: Annotated[Path | None, typer.Option("--config", help="Globs to try, else those of the base.")] = None,
    and_upload: Annotated[bool, typer.Option("--upload", help="Also upload them.")] = False,
    pr: Pr = None,
) -> None:
    """Print what the changes of this checkout impact, by the globs in .mergeyard.toml.

    The globs are those of the base, so a pull request cannot choose its own. With --json they are printed as the API
    takes them.
    """
    with refusals_told():
        checkout = Checkout(Path.cwd())
        base_sha, head_sha = checkout.commit(base), checkout.commit(head)
        content = checkout.file(base_sha, FILE) if config is None else config.read_bytes()
        targets = impacted(checkout.changed_paths(base_sha, head_sha), globs_in(content))
    show(session, targets)
    if and_upload:
        tell(upload(session, numbered(pr), targets, head_sha))


@app.command("set")
@asking
def set_targets(
    session: Session,
    names: Annotated[list[str] | None, typer.Argument(metavar="TARGET...", help="The targets, or ALL.")] = None,
    file: Annotated[Path | None, typer.Option("--file", help="Holds one target per line; - is the input.")] = None,
    nothing: Annotated[bool, typer.Option("--allow-empty", help="No target means that it impacts nothing.")] = False,
    sha: Annotated[str | None, typer.Option("--sha", help="The commit they belong to, else the present head.")] = None,
    pr: Pr = None,
) -> None:
    """Upload the impacted targets of a pull request, in place of those it had."""
    with refusals_told():
        given = [*(names or ()), *lines_of(file)]
    if not given and not nothing:
        words = "No target was given. If the pull request really impacts nothing, say so with --allow-empty."
        stop_with(words, Ends.WRONG_USE)
    kept = upload(session, numbered(pr), targets_named(given), sha)
    session.show(kept, lambda: tell(kept))


def upload(session: Session, number: int, targets: Targets, sha: str | None) -> TargetsKept:
    with busy("Uploading targets"):
        return session.client.set_impacted_targets(session.queue, number, as_members(targets), sha=sha)


def tell(kept: TargetsKept) -> None:
    say(f"Pull request {kept.pr_number} at {kept.pr_sha[:12]} impacts {extent(kept)}.")


def globs_in(content: bytes | None) -> PathTargets:
    config = parse(content)
    if isinstance(config, Broken):
        stop_with(config.words)
    if config.targets is None:
        say(f"{FILE} has no [targets] there, so every change impacts ALL.")
        return PathTargets({})
    return config.targets


def lines_of(file: Path | None) -> Iterable[str]:
    if file is None:
        return ()
    content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    return filter(None, map(str.strip, content.decode().split("\n")))


def numbered(pr: int | None) -> int:
    return stop_with("Say whose targets these are, with --pr N.", Ends.WRONG_USE) if pr is None else pr


def as_members(targets: Targets) -> Literal["ALL"] | list[str]:
    """As the API takes them."""
    return "ALL" if targets.everything else sorted(targets.names)


def extent(kept: TargetsKept) -> str:
    match kept.impacted_targets:
        case "ALL":
            return "ALL targets"
        case 1:
            return "1 target"
        case number:
            return f"{number} targets"


def show(session: Session, targets: Targets) -> None:
    members = as_members(targets)
    if session.whom.as_json:
        typer.echo(in_json(members))
    else:
        for name in [members] if isinstance(members, str) else members:
            typer.echo(name)


@contextmanager
def refusals_told() -> Generator[None]:
    try:
        yield
    except (CannotTell, OSError, UnicodeDecodeError) as reason:
        stop_with(str(reason))
