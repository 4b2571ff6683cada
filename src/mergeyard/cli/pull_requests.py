"""Commands for pull requests: submit, cancel, restart, status, watch, message and list."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import typer
from msgspec.structs import replace

from mergeyard.cli import output
from mergeyard.cli.connection_options import WebOption, YesOption, filter_by_prefix
from mergeyard.cli.session import (
    Session,
    exit_code_for,
    follow_pull_request,
    page_of_pull_request,
    page_of_pull_requests,
    with_session,
)
from mergeyard.client import ActionPreview, CommitMessagePreview, PullRequests, SubmittedPullRequest, TimelineEntry
from mergeyard.domain.config import LOWEST_PRIORITY, PRIORITIES, URGENT
from mergeyard.domain.states import Reason

MAX_PULL_REQUEST_NUMBER = 2**31 - 1
PRIORITY_NAMES = ", ".join(PRIORITIES)
WAIT_HELP = "Wait until the pull request is merged (exit code 0), failed (1) or removed (2)."


def parse_number(text: str | int) -> int:
    """`12`, or `#12` as pages and messages write it."""
    digits = str(text).removeprefix("#")
    if not (digits.isascii() and digits.isdecimal() and 1 <= int(digits[:11]) <= MAX_PULL_REQUEST_NUMBER):
        raise typer.BadParameter("expected a pull request number, such as 12.")
    return int(digits)


parse_number.__name__ = "number"  # the help shows the name of a parser as the type of the argument

number_argument: Callable[..., Any] = partial(typer.Argument, metavar="N", parser=parse_number)
NumberArgument = Annotated[int, number_argument(help="The number of the pull request, such as 12 or '#12'.")]
OptionalNumberArgument = Annotated[
    int | None, number_argument(help="The number, such as 12. Default: the pull request of the current branch.")
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


def complete_priorities(incomplete: str) -> list[str]:
    return filter_by_prefix(incomplete, PRIORITIES)


PriorityOption = Annotated[
    str | None,
    typer.Option(
        "--priority",
        metavar="PRIORITY",
        parser=parse_priority_option,
        help=f"{PRIORITY_NAMES}, or 0 (first) to {LOWEST_PRIORITY}.",
        autocompletion=complete_priorities,
    ),
]


@with_session
def submit(
    session: Session,
    number: OptionalNumberArgument = None,
    priority: PriorityOption = None,
    no_batch: Annotated[bool | None, typer.Option("--no-batch/--batch", help="Test alone, or in a batch.")] = None,
    force: Annotated[bool | None, typer.Option("--force", help="Do not wait for the rules of the Git host.")] = None,
    sha: Annotated[
        str | None,
        typer.Option(
            "--sha",
            metavar="HEAD",
            help="Submit only if this is the head (required for forks, and for --force in scripts).",
        ),
    ] = None,
    wait: WaitOption = False,
    yes: YesOption = False,
) -> None:
    """Add a pull request to the queue.

    A pull request that is already queued keeps its position, and only the given options change.

    Examples:
        mergeyard submit 12
        mergeyard submit 12 --priority high --wait
        mergeyard submit 12 --force --sha 1f0c9b3e5a7d2c4b6e8f0a1b3c5d7e9f1a2b4c6d
    """
    number, sha = session.find_to_submit(number, sha)
    if force and sha is None:
        sha = confirm_forced_head(session, number, yes)
    if priority is not None and PRIORITIES.get(str(priority), priority) == URGENT:
        confirm_action(
            session,
            number,
            "submit",
            f"Submit #{number} to the queue for {session.queue} with the priority urgent?",
            yes,
            priority=URGENT,
        )
    with output.show_spinner("Submitting"):
        pull_request = session.client.submit(
            session.queue, number, priority=priority, no_batch=no_batch, force=force, sha=sha
        )
    show_result(session, pull_request, wait=wait)


@with_session
def cancel(session: Session, number: OptionalNumberArgument = None, yes: YesOption = False) -> None:
    """Remove a pull request from the queue.

    When the command has ended with 0, the pull request does not merge.

    Examples:
        mergeyard cancel 12
        mergeyard cancel 12 --yes
    """
    number = session.find_number(number)
    confirm_action(session, number, "cancel", f"Remove #{number} from the queue for {session.queue}?", yes)
    show_result(session, session.client.cancel(session.queue, number))


@with_session
def restart(
    session: Session, number: OptionalNumberArgument = None, wait: WaitOption = False, yes: YesOption = False
) -> None:
    """Restart the tests of a pull request.

    The pull request keeps its position.

    Examples:
        mergeyard restart 12
        mergeyard restart 12 --wait
    """
    number = session.find_number(number)
    confirm_action(session, number, "restart", f"Restart the tests of #{number} in the queue for {session.queue}?", yes)
    show_result(session, session.client.restart(session.queue, number), wait=wait)


def confirm_forced_head(session: Session, number: int, yes: bool) -> str:
    """The head that a user at a terminal sees and confirms. A script knows which commit was reviewed."""
    advice = "Review the pull request, then pass its head with --sha HEAD."
    if yes or not output.can_ask():
        output.exit_with_usage_error("--force skips reviews, so it must name the head that was reviewed.", hint=advice)
    listed = session.client.list_open_pull_requests(session.queue).pull_requests
    found = next((each for each in listed if each.pr_number == number), None)
    if found is None:
        message = f"#{number} is not one of the newest open pull requests into {session.queue.target_branch}."
        output.exit_with_usage_error(message, hint=advice)
    output.confirm(
        f"#{number} by {found.pr_author}: {found.pr_title}. Its head is {found.pr_sha}. Submit this commit without the "
        "reviews and the other rules of the Git host?",
        yes,
    )
    return found.pr_sha


def confirm_action(
    session: Session,
    number: int,
    action: Literal["submit", "cancel", "restart"],
    question: str,
    yes: bool,
    *,
    priority: int | None = None,
) -> None:
    """Asks on a terminal, with the test runs that the action stops."""
    if yes or not output.can_ask():
        return
    preview = session.read_if_possible(lambda: session.client.preview_action(session.queue, number, action, priority))
    output.confirm(question if preview is None else f"{describe_price(preview)}{question}", yes)


def describe_price(preview: ActionPreview) -> str:
    """`This stops 2 test runs (12 min of CI time). #13 and #14 are tested again. `, or nothing."""
    count = len(preview.stopped_test_runs)
    if not count:
        return ""
    runs = "1 test run" if count == 1 else f"{count} test runs"
    up_to = "up to " if preview.is_upper_bound else ""
    again = ", ".join(f"#{number}" for number in preview.retested_pr_numbers)
    lost = output.format_duration(preview.lost_ci_seconds)
    retested = f" The queue tests {again} again." if again else ""
    return f"This stops {up_to}{runs} and loses {up_to}{lost} of CI time.{retested} "


@with_session
def status(
    session: Session,
    number: OptionalNumberArgument = None,
    head: Annotated[
        str | None, typer.Option("--head", metavar="BRANCH", help="Find the pull request by its branch.")
    ] = None,
    timeline: Annotated[bool, typer.Option("--timeline", help="Also show the timeline.")] = False,
    wait: WaitOption = False,
    web: WebOption = False,
) -> None:
    """Show the state of a pull request.

    Examples:
        mergeyard status
        mergeyard status 12 --timeline
        mergeyard status --head my-branch --wait --json
    """
    if head is not None and number is None:
        pull_request = session.client.find_pull_request(session.queue, head, include_timeline=timeline or None)
    else:
        number = session.find_number(number)
        pull_request = session.client.get_pull_request(session.queue, number, include_timeline=timeline or None)
    if web:
        session.open_page(page_of_pull_request(session.queue, pull_request.pr_number))
    else:
        show_result(session, pull_request, wait=wait)


@with_session
def watch(session: Session, number: OptionalNumberArgument = None) -> None:
    """Follow a pull request until it is merged, failed or removed.

    The command prints one line for every change of the state, with --json one object per line. The exit code is 0 when
    merged, 1 when failed, 2 when removed.

    Examples:
        mergeyard watch 12
        mergeyard watch 12 --json
    """

    def print_entry(entry: TimelineEntry) -> None:
        session.show(entry, lambda: output.print_output(output.format_timeline_entry(entry)))

    raise typer.Exit(exit_code_for(follow_pull_request(session, session.find_number(number), print_entry)))


@with_session
def message(session: Session, number: OptionalNumberArgument = None) -> None:
    """Show the commit message with which a pull request would merge now, and how it would merge.

    The pull request need not be submitted. If its commit is being tested, this is the message of that commit.

    Examples:
        mergeyard message 12
        mergeyard message 12 --json
    """
    number = session.find_number(number)
    with output.show_spinner("Reading"):
        preview = session.client.preview_commit_message(session.queue, number)
    session.show(preview, lambda: show_message(preview))


def show_message(preview: CommitMessagePreview) -> None:
    """The words to standard output, so that they can be piped."""
    output.print_message(f"#{preview.pr_number}: {preview.explanation}\n")
    for at, text in enumerate(preview.commit_messages, 1):
        if len(preview.commit_messages) > 1:
            output.print_output(output.plain_text(f"Commit {at} of {len(preview.commit_messages)}:", "bold"))
        output.print_output(*map(output.plain_text, text.splitlines()))


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
    timeline = read_timeline(session, pull_request)
    has_own_priority = pull_request.used_default_priority_name is None
    return output.PullRequestContext(
        page=session.build_page_url(page_of_pull_request(name, pull_request.pr_number)),
        queue=queue,
        run=run,
        submitted_by=find_submitter(timeline),
        priority_set_by=find_actor(timeline, Reason.PRIORITY_CHANGED) if has_own_priority else "",
        forced_by=find_actor(timeline, Reason.FORCED) if pull_request.force_enqueued else "",
    )


def read_timeline(session: Session, pull_request: SubmittedPullRequest) -> Sequence[TimelineEntry]:
    """Newest first; empty if it cannot be read."""
    if pull_request.timeline is not None:
        return pull_request.timeline
    latest = session.read_if_possible(
        lambda: session.client.get_pull_request(session.queue, pull_request.pr_number, include_timeline=True)
    )
    # The pull request can have been submitted again meanwhile.
    if latest is None or latest.id != pull_request.id:
        return ()
    return latest.timeline or ()


def find_submitter(timeline: Sequence[TimelineEntry]) -> str:
    """The actor of the oldest entry; empty if the timeline is not known."""
    return timeline[-1].actor if timeline else ""


def find_actor(timeline: Sequence[TimelineEntry], reason: Reason) -> str:
    """Who caused the last entry with this reason. Without one, it was an option of the submission itself."""
    for entry in timeline:
        if entry.reason == reason:
            return entry.actor
    return find_submitter(timeline)


STATES_BY_NAME = {
    "not-ready": "not_ready",
    "queued": "pending",
    "testing": "testing",
    "passed": "tests_passed",
    "failing": "pending_failure",
    "merged": "merged",
    "failed": "failed",
    "removed": "cancelled",
}
"""By the first word of their labels. The names of the API count too."""


def parse_state(text: str) -> str:
    state = STATES_BY_NAME.get(text.lower(), text.lower())
    if state not in STATES_BY_NAME.values():
        raise typer.BadParameter(f"{text} is not a state: write one of {', '.join(STATES_BY_NAME)}.")
    return state


def complete_states(incomplete: str) -> list[str]:
    return filter_by_prefix(incomplete, STATES_BY_NAME)


StateOption = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="STATE",
        parser=parse_state,
        help=f"Only pull requests in this state: {', '.join(STATES_BY_NAME)}.",
        autocompletion=complete_states,
    ),
]


@with_session
def list_command(
    session: Session,
    state: StateOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="How many pull requests at most.")] = 30,
    web: WebOption = False,
) -> None:
    """List the pull requests of a queue, the latest submission first.

    The list also has pull requests that are merged, failed or removed.

    Examples:
        mergeyard list
        mergeyard list --state failed --limit 50
    """
    if web:
        session.open_page(page_of_pull_requests(session.queue))
        return
    listed = session.client.list_pull_requests(session.queue, state=state, take=limit)
    session.show(listed, lambda: show_list(listed))


def show_list(listed: PullRequests) -> None:
    table = output.build_table("PR", "state", "author", "title", "submitted", "reason")
    for each in listed.pull_requests:
        label = output.plain_text(output.label_state(each), output.STATE_STYLES.get(each.state, ""))
        cells = (output.plain_text(each.pr_author), output.cut_title(each.pr_title))
        reason = output.plain_text(output.format_reason(each.reason))
        table.add_row(f"#{each.pr_number}", label, *cells, output.format_time(each.submitted_at), reason)
    output.print_table(table, "No pull requests. Submit one with `mergeyard submit N`.")
