"""Output of commands: tables, JSON, exit codes, and text from other sources made safe for terminals."""

import json
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import IntEnum
from functools import cache
from itertools import pairwise
from typing import Any, NoReturn

import msgspec
import typer
from msgspec.structs import replace
from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from mergeyard import client

REPLACEMENT_CHARACTER = "�"


def sanitize(text: str) -> str:
    """Replaces unprintable characters: control characters, and those that change the writing direction."""
    return "".join(character if character.isprintable() else REPLACEMENT_CHARACTER for character in text)


def plain_text(text: object, style: str = "") -> Text:
    """Text without markup: brackets stay brackets."""
    return Text(sanitize(str(text)), style)


def print_message(message: str) -> None:
    """Prints to standard error. Line breaks are kept, other unprintable characters are replaced."""
    typer.echo("\n".join(map(sanitize, message.split("\n"))), err=True)


def print_hint(advice: str) -> None:
    print_message(f"hint: {advice}")


def encode_json(response: Any) -> str:
    """With the member names of the API. Non-ASCII and control characters are escaped."""
    members = msgspec.to_builtins(response, builtin_types=(datetime,))
    return json.dumps(members, default=_encode_time)


def _encode_time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class ExitCode(IntEnum):
    SUCCESS = 0
    """With --wait and for `watch`: the pull request was merged."""
    FAILED = 1
    CANCELLED = 2
    REFUSED = 3
    UNREACHABLE = 4
    MERGE_MISMATCH = 5
    """A merge differs from its record."""
    NOT_ALLOWED = 6
    """The token is not valid, or lacks a scope."""
    USAGE_ERROR = 64
    INTERNAL_ERROR = 70
    """A bug in Mergeyard, independent of the state of any pull request."""


INTERRUPTED_EXIT_CODE = 130
"""As a shell reports a command that Ctrl-C ended. A user who answers no ends a command in the same way."""


def exit_with_message(message: str, code: ExitCode = ExitCode.FAILED, *, hint: str = "") -> NoReturn:
    """`hint`: what the user can do next, if the message itself does not contain it."""
    print_message(f"error: {message}")
    if hint:
        print_hint(hint)
    raise typer.Exit(code)


def exit_with_usage_error(message: str, *, hint: str = "") -> NoReturn:
    exit_with_message(message, ExitCode.USAGE_ERROR, hint=hint)


def can_ask() -> bool:
    """Whether a user at a terminal sees a question and can answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str, yes: bool) -> None:
    """Asks on a terminal, and ends the command if the user does not agree. Scripts have no terminal: there the
    command acts at once, as with `yes`."""
    if yes or not can_ask():
        return
    try:
        agreed = typer.confirm(sanitize(question), err=True)
    except typer.Abort:
        typer.echo(err=True)
        agreed = False
    if not agreed:
        print_message("Nothing was changed.")
        raise typer.Exit(INTERRUPTED_EXIT_CODE)


def is_terminal() -> bool:
    return sys.stdout.isatty()


@cache
def get_console() -> Console:
    """A single console, so that printed lines and the spinner below them do not interfere."""
    return Console(highlight=False)


def print_output(*renderables: RenderableType, pipe_width: int = 10_000) -> None:
    """In a pipe nothing is wrapped or padded."""
    if is_terminal():
        get_console().print(*renderables, sep="\n")
        return
    out = Console(width=pipe_width, highlight=False)
    with out.capture() as captured:
        out.print(*renderables, sep="\n")
    typer.echo("\n".join(map(str.rstrip, captured.get().splitlines())))


@contextmanager
def show_spinner(message: str) -> Generator[Callable[[str], None]]:
    """Shows a spinner with the message until the block ends; call the yielded function to change it. Output to a pipe
    stays clean."""
    spinner, is_interactive = Spinner("dots", plain_text(message)), is_terminal()
    out = get_console() if is_interactive else Console(stderr=True)
    with Live(spinner, console=out, transient=True, redirect_stdout=is_interactive, redirect_stderr=is_interactive):
        yield lambda new_message: spinner.update(text=plain_text(new_message))


MAX_PIPED_TITLE = 60
MIN_TITLE_WIDTH = 20


def build_table(*columns: str) -> Table:
    """The one style of tables: columns without lines. Where the terminal is too narrow, cells are folded, and titles
    cut (see `cut_title`)."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for name in columns:
        is_title = name == "title"
        table.add_column(name.upper(), no_wrap=is_title, overflow="ellipsis" if is_title else "fold")
    return table


def print_table(table: Table, empty: str) -> None:
    """Prints the table to standard output, or without rows the message `empty` to standard error."""
    if table.row_count:
        print_output(table)
    else:
        print_message(empty)


def cut_title(title: str) -> Text:
    """A title in one cell of a table: cut to a third of the terminal, in a pipe to 60 columns."""
    width = max(MIN_TITLE_WIDTH, get_console().width // 3) if is_terminal() else MAX_PIPED_TITLE
    shown = plain_text(title)
    shown.truncate(width, overflow="ellipsis")
    return shown


STATE_COLUMN_WIDTH = 15
STATE_MARKS = {"testing": "…", "tests_passed": "✓", "pending_failure": "✗"}
STATE_LABELS = {
    "not_ready": "Not ready",
    "pending": "Queued",
    "testing": "Testing",
    "tests_passed": "Passed",
    "pending_failure": "Failing, cause not confirmed",
    "merged": "Merged",
    "failed": "Failed",
    "cancelled": "Removed",
    "RUNNING": "Running",
    "PAUSED": "Paused",
    "DRAINING": "Draining",
    "SWITCHING_MODES": "Switching modes",
}
"""Of pull requests and queues, as on the pages."""
RUN_LABELS = {"in_progress": "Testing", "succeeded": "Passed", "failed": "Failed", "cancelled": "Stopped"}
CHECK_LABELS = {
    "success": "passed",
    "skipped": "skipped",
    "neutral": "neutral",
    "failure": "failed",
    "error": "error",
    "pending": "running",
    "missing": "pending",
    "never": "not reported",
    "unfinished": "not finished",
}
CHECK_MARKS = {"success": "✓", "skipped": "✓", "neutral": "✓", "failure": "✗", "error": "✗"}
FAILED_CHECK_STATES = ("failure", "error")
QUEUE_REASONS = ("queue_paused", "queue_draining", "switching_modes")
UNFINISHED_CHECK_STATES = ("never", "unfinished")
STATE_STYLES = {
    "not_ready": "bright_black",
    "pending": "blue",
    "testing": "yellow",
    "in_progress": "yellow",
    "pending_failure": "magenta",
    "tests_passed": "cyan",
    "merged": "green",
    "succeeded": "green",
    "success": "green",
    "RUNNING": "green",
    "failed": "red",
    "failure": "red",
    "error": "red",
    "never": "red",
    "unfinished": "red",
    "cancelled": "bright_black",
    "PAUSED": "yellow",
    "DRAINING": "yellow",
    "SWITCHING_MODES": "yellow",
}


def style_state(name: str, labels: Mapping[str, str] = STATE_LABELS) -> Text:
    """The label of a state. A newer server can send one without a label."""
    return plain_text(labels.get(name, name), STATE_STYLES.get(name, ""))


NOT_RUNNING_REASONS = {"queue_paused", "queue_draining", "switching_modes"}


def is_not_ready(pull_request: client.EnqueuedPullRequest | client.SubmittedPullRequest) -> bool:
    """Whether it lacks something. One that only waits until the queue runs counts as waiting."""
    return pull_request.state == "not_ready" and pull_request.reason.code not in NOT_RUNNING_REASONS


def label_state(pull_request: client.EnqueuedPullRequest | client.SubmittedPullRequest) -> str:
    if pull_request.state == "not_ready" and not is_not_ready(pull_request):
        return "Waiting"
    return STATE_LABELS.get(pull_request.state, pull_request.state)


class PullRequestContext(msgspec.Struct, frozen=True, kw_only=True):
    """What `status` shows in addition to the pull request itself; None where it could not be read."""

    page: str
    """The URL of its page."""
    queue: client.Queue | None = None
    run: client.Run | None = None
    """Of a pull request that is being tested or failed: the run in progress, else the last one."""
    submitted_by: str = ""
    priority_set_by: str = ""
    """Empty for the default priority."""
    forced_by: str = ""


FORCED_NOTE = "conflicts and rules of the Git host ignored"
UNBATCHED_NOTE = "off: tested alone"


def show_pull_request(pull_request: client.SubmittedPullRequest, context: PullRequestContext) -> None:
    title = plain_text(f"#{pull_request.pr_number} {pull_request.pr_title}", "bold")
    first_facts = {
        "position": format_position(pull_request, datetime.now(UTC)),
        "bisection": pull_request.bisection_note,
        **format_requirements(pull_request),
    }
    facts = {
        "queue": None if context.queue is None else list_problems(context.queue, pull_request.reason),
        "author": pull_request.pr_author,
        "head": pull_request.pr_sha[:12],
        "priority": format_priority(pull_request, context),
        "batching": UNBATCHED_NOTE if pull_request.no_batch else None,
        "run": pull_request.test_run_id,
        "submitted": format_submission(pull_request, context),
        "forced": format_force(pull_request, context),
        "expected": format_expected(pull_request),
        "merged as": None if pull_request.merged_sha is None else pull_request.merged_sha[:12],
        "page": context.page,
    }
    failing = [] if context.run is None else list_failing_checks(context.run)
    print_output(
        Text.assemble(title, "  ", plain_text(label_state(pull_request), STATE_STYLES.get(pull_request.state, ""))),
        build_facts_table(first_facts),
        *([build_checks_table(failing)] if failing else []),
        build_facts_table(facts),
        *map(format_timeline_entry, reversed(pull_request.timeline or ())),
    )


def format_requirements(pull_request: client.SubmittedPullRequest) -> dict[str, tuple[str, ...]]:
    """The reason, and on lines of their own what the rules of the Git host still require. If that is the reason, its
    message repeats the same sentences, so only the lines are shown."""
    reason = pull_request.reason
    is_waiting = not (pull_request.is_concluded or pull_request.force_enqueued)
    unmet = [each for each in pull_request.requirements if is_waiting and not each.met]
    missing = tuple(f"{each.message} ({each.code})" for each in unmet)
    if any(each.code == reason.code for each in unmet):
        return {"reason": missing}
    return {"reason": (f"{format_reason(reason)} ({reason.code})",), "missing": missing}


def format_position(pull_request: client.SubmittedPullRequest, now: datetime) -> str | None:
    """`8 · ~12 min`."""
    if pull_request.position is None:
        return None
    return f"{pull_request.position} · {format_estimate(pull_request, now)}"


def format_estimate(pull_request: client.EnqueuedPullRequest, now: datetime) -> str:
    """`~12 min`, or that there is no estimate; empty after the end, and from an older server."""
    if pull_request.estimated_merge_at is not None:
        return format_eta(pull_request.estimated_merge_at, now)
    return "no estimate" if pull_request.estimate_note else ""


def format_expected(pull_request: client.SubmittedPullRequest) -> str | None:
    """The time, or why it is not known."""
    if pull_request.estimated_merge_at is not None:
        return format_time(pull_request.estimated_merge_at)
    return f"no estimate: {pull_request.estimate_note}" if pull_request.estimate_note else None


def format_next_merge(queue: client.Queue, now: datetime) -> str | None:
    """`~12 min`, with what the server says about it."""
    if queue.next_merge is None:
        return None
    at = queue.next_merge.at
    parts = ("" if at is None else format_eta(at, now), queue.next_merge.note or "")
    return ", ".join(filter(None, parts))


def format_submission(pull_request: client.SubmittedPullRequest, context: PullRequestContext) -> str:
    at = format_time(pull_request.submitted_at)
    return f"{at} by {context.submitted_by}" if context.submitted_by else at


def format_priority(pull_request: client.SubmittedPullRequest, context: PullRequestContext) -> str:
    if pull_request.used_default_priority_name is not None:
        return f"{pull_request.priority_name} (default)"
    if context.priority_set_by:
        return f"{pull_request.priority_name}, set by {context.priority_set_by}"
    return pull_request.priority_name


def format_force(pull_request: client.SubmittedPullRequest, context: PullRequestContext) -> str | None:
    if not pull_request.force_enqueued:
        return None
    return f"by {context.forced_by}: {FORCED_NOTE}" if context.forced_by else FORCED_NOTE


def list_problems(queue: client.Queue, reason: client.Reason) -> tuple[str, ...]:
    """Why the queue does not work as usual, unless the reason of the pull request says it already."""
    stop = [] if queue.state == "RUNNING" or reason.code in QUEUE_REASONS else [format_queue_state(queue)]
    return (*stop, *(queue.problems or ()))


OVERDUE_AFTER_S = 60


def format_eta(expected: datetime, now: datetime) -> str:
    """`now`, `~55 s`, `~3 h 10 min`, `overdue`. An estimate of minutes is not exact to the second."""
    seconds = (expected - now).total_seconds()
    if seconds < -OVERDUE_AFTER_S:
        return "overdue"
    step = 60 if seconds >= 600 else 10 if seconds >= 60 else 1
    return "now" if seconds < 5 else f"~{format_duration(round(seconds / step) * step)}"


def list_failing_checks(run: client.Run) -> list[client.Check]:
    """The failed checks; of a failed run without one, which ran out of time, the required checks without a result."""
    checks = list_checks(run)
    failed = [check for check in checks if check.state in FAILED_CHECK_STATES]
    return failed or [check for check in checks if run.status == "failed" and check.state in UNFINISHED_CHECK_STATES]


def list_checks(run: client.Run) -> list[client.Check]:
    """The required checks first, also those that were not reported, then all others. A check without a result is not
    running any more when its run has ended."""
    missing, pending = ("missing", "pending") if run.status == "in_progress" else UNFINISHED_CHECK_STATES
    unreported = {
        name: client.Check(name=name, state=missing, url="", duration_seconds=None) for name in run.required_statuses
    }
    checks = (unreported | run.checks).values()
    return [replace(check, state=pending) if check.state == "pending" else check for check in checks]


def build_checks_table(checks: Iterable[client.Check]) -> Table:
    """`✗ ci/unit  failed  https://ci.example.com/7  41 s`."""
    table = Table.grid(padding=(0, 2))
    for check in checks:
        duration = "" if check.duration_seconds is None else format_duration(check.duration_seconds)
        name = plain_text(f"  {CHECK_MARKS.get(check.state, '·')} {check.name}", STATE_STYLES.get(check.state, ""))
        table.add_row(name, style_state(check.state, CHECK_LABELS), plain_text(check.url), duration)
    return table


def build_facts_table(facts: Mapping[str, str | int | tuple[str, ...] | None]) -> Table:
    """Each text of a tuple has a line of its own."""
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=len("  submitted"))
    for name, value in facts.items():
        lines = value if isinstance(value, tuple) else () if value is None else (value,)
        for at, line in enumerate(lines):
            table.add_row(Text("" if at else f"  {name}", "dim"), plain_text(line))
    return table


def format_reason(reason: client.Reason) -> str:
    prerequisites = ", ".join(f"#{number}" for number in reason.waiting_for)
    return f"{reason.message} Waits for {prerequisites}." if prerequisites else reason.message


def format_timeline_entry(entry: client.TimelineEntry) -> Text:
    label = STATE_LABELS.get(entry.to, entry.to)
    state = plain_text(label.ljust(STATE_COLUMN_WIDTH), STATE_STYLES.get(entry.to, ""))
    return format_line(entry.at, state, plain_text(entry.message))


def format_line(at: datetime, *parts: Text) -> Text:
    return Text("  ").join([plain_text(format_time(at), "dim"), *parts])


def format_queue_state(queue: client.Queue) -> str:
    """`Paused: Release freeze.`"""
    label = STATE_LABELS.get(queue.state, queue.state)
    return f"{label}: {queue.state_reason}" if queue.state_reason else label


def style_queue_state(queue: client.Queue) -> Text:
    return plain_text(format_queue_state(queue), STATE_STYLES.get(queue.state, ""))


def format_time(timestamp: datetime) -> str:
    """In the local time zone of the user, which it names."""
    return timestamp.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


DURATION_UNITS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))


def format_duration(seconds: float) -> str:
    """Rounded, in the two largest units: 1 d 4 h, 1 h 5 min, 1 min 59 s, 40 s, <1 s."""
    if 0 < seconds < 1:
        return "<1 s"
    rest = max(0, int(seconds + 0.5))
    for (name, unit), (next_name, next_unit) in pairwise(DURATION_UNITS):
        if rest >= unit:
            count, fraction = divmod(int(rest / next_unit + 0.5), unit // next_unit)
            if (name, count) == ("h", 24):
                return "1 d"
            return f"{count} {name} {fraction} {next_name}" if fraction else f"{count} {name}"
    return f"{rest} s"
