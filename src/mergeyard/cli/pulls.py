"""Commands around one pull request in a queue."""

from typing import Annotated

import typer
from msgspec.structs import replace

from mergeyard.cli.exits import Ends, stop_with
from mergeyard.cli.following import end_of, follow, nobody
from mergeyard.cli.plainly import in_json
from mergeyard.cli.session import Session, asking
from mergeyard.cli.showing import moment_line, show_pull
from mergeyard.cli.terminal import busy, put
from mergeyard.client import Moment, SubmittedPullRequest
from mergeyard.domain.priorities import LOWEST, PRIORITIES

LARGEST = 2**31 - 1
NAMES = ", ".join(PRIORITIES)
WAITING = "Wait for the end: 0 when merged, 1 when failed, 2 when cancelled."

Number = Annotated[int, typer.Argument(metavar="N", min=1, max=LARGEST, help="The pull request's number.")]
Wait = Annotated[bool, typer.Option("--wait", help=WAITING)]


def read_priority(text: str) -> str | int:
    if text.isdecimal() and int(text) <= LOWEST:
        return int(text)
    if text.lower() in PRIORITIES:
        return text.lower()
    raise typer.BadParameter(f"{text} is none: write {NAMES}, or a number from 0 (first) to {LOWEST}.")


Priority = Annotated[
    str | None,
    typer.Option("--priority", metavar="NAME", parser=read_priority, help=f"{NAMES}, or 0 to {LOWEST}."),
]


@asking
def submit(
    session: Session,
    number: Number,
    priority: Priority = None,
    no_batch: Annotated[bool | None, typer.Option("--no-batch/--batch", help="Test it alone.")] = None,
    force: Annotated[bool | None, typer.Option("--force", help="Do not wait until it is mergeable.")] = None,
    sha: Annotated[
        str | None, typer.Option("--sha", metavar="HEAD", help="Only if this is its head (required for forks).")
    ] = None,
    wait: Wait = False,
) -> None:
    """Put a pull request into the queue.

    In it already, it keeps its place, and only what is named changes.
    """
    with busy("Submitting"):
        pull = session.client.submit(session.queue, number, priority=priority, no_batch=no_batch, force=force, sha=sha)
    end_with(session, pull, wait=wait)


@asking
def cancel(session: Session, number: Number) -> None:
    """Take a pull request out of the queue."""
    pull = session.client.cancel(session.queue, number)
    session.show(pull, lambda: show_pull(pull))


@asking
def restart(session: Session, number: Number, wait: Wait = False) -> None:
    """Run the tests of a pull request again."""
    pull = session.client.restart(session.queue, number)
    end_with(session, pull, wait=wait)


@asking
def status(
    session: Session,
    number: Annotated[int | None, typer.Argument(metavar="N", min=1, max=LARGEST, help="Its number.")] = None,
    head: Annotated[str | None, typer.Option("--head", metavar="BRANCH", help="Its branch, if not its number.")] = None,
    timeline: Annotated[bool, typer.Option("--timeline", help="Also what happened to it.")] = False,
    wait: Wait = False,
) -> None:
    """Show how a pull request stands."""
    if number is not None:
        pull = session.client.get_pull_request(session.queue, number, include_timeline=timeline or None)
    elif head is not None:
        pull = session.client.find_pull_request(session.queue, head, include_timeline=timeline or None)
    else:
        stop_with("Say which pull request: its number, or its branch with --head.", Ends.WRONG_USE)
    end_with(session, pull, wait=wait)


@asking
def watch(session: Session, number: Number) -> None:
    """Follow a pull request until its end.

    Every change is one line, with --json one object per line. Ends with 0 when merged, 1 when failed, 2 when cancelled.
    """

    def tell(moment: Moment) -> None:
        if session.whom.as_json:
            typer.echo(in_json(moment))
        else:
            put(moment_line(moment))

    raise typer.Exit(end_of(follow(session, number, tell)))


def end_with(session: Session, pull: SubmittedPullRequest, *, wait: bool) -> None:
    """Show it, at once or when it is over; with its timeline only if it came with one."""
    if not wait:
        session.show(pull, lambda: show_pull(pull))
        return
    last = follow(session, pull.pr_number, nobody)
    shown = replace(last, timeline=None) if pull.timeline is None else last
    session.show(shown, lambda: show_pull(shown))
    raise typer.Exit(end_of(last))
