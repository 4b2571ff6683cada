"""Commands for one pull request: submit, cancel, restart, status and watch."""

from typing import Annotated

import typer
from msgspec.structs import replace

from mergeyard.cli import output
from mergeyard.cli.session import Session, exit_code_for, follow_pull_request, with_session
from mergeyard.client import SubmittedPullRequest, TimelineEntry
from mergeyard.domain.config import LOWEST_PRIORITY, PRIORITIES

MAX_PULL_REQUEST_NUMBER = 2**31 - 1
PRIORITY_NAMES = ", ".join(PRIORITIES)
WAIT_HELP = "Wait until it is concluded: exit code 0 when merged, 1 when failed, 2 when cancelled."

NumberArgument = Annotated[
    int, typer.Argument(metavar="N", min=1, max=MAX_PULL_REQUEST_NUMBER, help="The pull request's number.")
]
WaitOption = Annotated[bool, typer.Option("--wait", help=WAIT_HELP)]


def parse_priority_option(text: str) -> str | int:
    if text.isdecimal() and int(text) <= LOWEST_PRIORITY:
        return int(text)
    if text.lower() in PRIORITIES:
        return text.lower()
    raise typer.BadParameter(
        f"{text} is not a priority: write {PRIORITY_NAMES}, or a number from 0 (first) to {LOWEST_PRIORITY}."
    )


PriorityOption = Annotated[
    str | None,
    typer.Option(
        "--priority", metavar="NAME", parser=parse_priority_option, help=f"{PRIORITY_NAMES}, or 0 to {LOWEST_PRIORITY}."
    ),
]


@with_session
def submit(
    session: Session,
    number: NumberArgument,
    priority: PriorityOption = None,
    no_batch: Annotated[bool | None, typer.Option("--no-batch/--batch", help="Test it alone.")] = None,
    force: Annotated[bool | None, typer.Option("--force", help="Do not wait until it is mergeable.")] = None,
    sha: Annotated[
        str | None, typer.Option("--sha", metavar="HEAD", help="Only if this is its head (required for forks).")
    ] = None,
    wait: WaitOption = False,
) -> None:
    """Add a pull request to the queue.

    A pull request that is already queued keeps its position; only the given options change.
    """
    with output.show_spinner("Submitting"):
        pull_request = session.client.submit(
            session.queue, number, priority=priority, no_batch=no_batch, force=force, sha=sha
        )
    show_result(session, pull_request, wait=wait)


@with_session
def cancel(session: Session, number: NumberArgument) -> None:
    """Remove a pull request from the queue."""
    pull_request = session.client.cancel(session.queue, number)
    session.show(pull_request, lambda: output.show_pull_request(pull_request))


@with_session
def restart(session: Session, number: NumberArgument, wait: WaitOption = False) -> None:
    """Run the tests of a pull request again."""
    pull_request = session.client.restart(session.queue, number)
    show_result(session, pull_request, wait=wait)


@with_session
def status(
    session: Session,
    number: Annotated[
        int | None, typer.Argument(metavar="N", min=1, max=MAX_PULL_REQUEST_NUMBER, help="Its number.")
    ] = None,
    head: Annotated[
        str | None, typer.Option("--head", metavar="BRANCH", help="Its branch, instead of its number.")
    ] = None,
    timeline: Annotated[bool, typer.Option("--timeline", help="Also show its timeline.")] = False,
    wait: WaitOption = False,
) -> None:
    """Show the state of a pull request."""
    if number is not None:
        pull_request = session.client.get_pull_request(session.queue, number, include_timeline=timeline or None)
    elif head is not None:
        pull_request = session.client.find_pull_request(session.queue, head, include_timeline=timeline or None)
    else:
        output.exit_with_usage_error("No pull request given: pass its number, or its branch with --head.")
    show_result(session, pull_request, wait=wait)


@with_session
def watch(session: Session, number: NumberArgument) -> None:
    """Follow a pull request until it is merged, failed or cancelled.

    Every change is one line, with --json one object per line. The exit code is 0 when merged, 1 when failed, 2 when
    cancelled.
    """

    def print_entry(entry: TimelineEntry) -> None:
        session.show(entry, lambda: output.print_output(output.format_timeline_entry(entry)))

    raise typer.Exit(exit_code_for(follow_pull_request(session, number, print_entry)))


def show_result(session: Session, pull_request: SubmittedPullRequest, *, wait: bool) -> None:
    """Shows the pull request now, or with `wait` when it is concluded. The timeline is shown only if it was
    requested."""
    if not wait:
        session.show(pull_request, lambda: output.show_pull_request(pull_request))
        return
    final = follow_pull_request(session, pull_request.pr_number)
    displayed = replace(final, timeline=None) if pull_request.timeline is None else final
    session.show(displayed, lambda: output.show_pull_request(displayed))
    raise typer.Exit(exit_code_for(final))
