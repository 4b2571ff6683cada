"""Commands for one pull request: submit, cancel, restart, status and watch."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer
from msgspec.structs import replace

from mergeyard.cli import output
from mergeyard.cli.session import Session, exit_code_for, follow_pull_request, with_session
from mergeyard.client import SubmittedPullRequest, TimelineEntry
from mergeyard.domain.config import LOWEST_PRIORITY, PRIORITIES

MAX_PULL_REQUEST_NUMBER = 2**31 - 1
PRIORITY_NAMES = ", ".join(PRIORITIES)
WAIT_HELP = "Wait until it is concluded: exit code 0 when merged, 1 when failed, 2 when removed."


def parse_number(text: str | int) -> int:
    """`12`, or `#12` as pages and messages write it."""
    digits = str(text).removeprefix("#")
    if not (digits.isascii() and digits.isdecimal() and 1 <= int(digits[:11]) <= MAX_PULL_REQUEST_NUMBER):
        raise typer.BadParameter("expected a pull request number, such as 12.")
    return int(digits)


parse_number.__name__ = "number"  # the help shows the name of a parser as the type of the argument

number_argument: Callable[..., Any] = partial(
    typer.Argument, metavar="N", parser=parse_number, help="The pull request's number, such as 12 or '#12'."
)
NumberArgument = Annotated[int, number_argument()]
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
    show_result(session, pull_request)


@with_session
def restart(session: Session, number: NumberArgument, wait: WaitOption = False) -> None:
    """Restart the tests of a pull request."""
    pull_request = session.client.restart(session.queue, number)
    show_result(session, pull_request, wait=wait)


@with_session
def status(
    session: Session,
    number: Annotated[int | None, number_argument()] = None,
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
    """Follow a pull request until it is merged, failed or removed.

    Every change is one line, with --json one object per line. The exit code is 0 when merged, 1 when failed, 2 when
    removed.
    """

    def print_entry(entry: TimelineEntry) -> None:
        session.show(entry, lambda: output.print_output(output.format_timeline_entry(entry)))

    raise typer.Exit(exit_code_for(follow_pull_request(session, number, print_entry)))


def show_result(session: Session, pull_request: SubmittedPullRequest, *, wait: bool = False) -> None:
    """Shows the pull request now, or with `wait` when it is concluded. The timeline is shown only if it was
    requested."""
    if not wait:
        show_pull_request(session, pull_request)
        return
    final = follow_pull_request(session, pull_request.pr_number)
    show_pull_request(session, replace(final, timeline=None) if pull_request.timeline is None else final)
    raise typer.Exit(exit_code_for(final))


STATES_WITH_CHECKS = ("testing", "pending_failure", "failed")


def show_pull_request(session: Session, pull_request: SubmittedPullRequest) -> None:
    session.show(pull_request, lambda: output.show_pull_request(pull_request, read_context(session, pull_request)))


def read_context(session: Session, pull_request: SubmittedPullRequest) -> output.PullRequestContext:
    """Reads the queue, which can be paused, and the run, whose checks can have failed."""
    client, name, run_id = session.client, session.queue, pull_request.test_run_id
    queue = None if pull_request.is_concluded else session.read_if_possible(lambda: client.get_queue(name))
    has_checks = run_id is not None and pull_request.state in STATES_WITH_CHECKS
    run = session.read_if_possible(lambda: client.get_run(name, run_id or "")) if has_checks else None
    return output.PullRequestContext(page=session.build_page_url(pull_request.pr_number), queue=queue, run=run)
