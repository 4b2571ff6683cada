"""Output of commands: tables, JSON, exit codes, and text from other sources made safe for terminals."""

import json
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import IntEnum
from functools import cache
from typing import Any, NoReturn

import msgspec
import typer
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
    AUDIT_MISMATCH = 5
    """A landing differs from its record."""
    USAGE_ERROR = 64
    INTERNAL_ERROR = 70
    """A bug in Mergeyard, independent of the state of any pull request."""


def exit_with_message(message: str, code: ExitCode = ExitCode.FAILED) -> NoReturn:
    print_message(message)
    raise typer.Exit(code)


def exit_with_usage_error(message: str) -> NoReturn:
    exit_with_message(message, ExitCode.USAGE_ERROR)


def is_terminal() -> bool:
    return sys.stdout.isatty()


@cache
def get_console() -> Console:
    """A single console, so that printed lines and the spinner below them do not interfere."""
    return Console(highlight=False)


def print_output(*renderables: RenderableType, pipe_width: int = 10_000) -> None:
    """In a pipe nothing is cut, wrapped or padded."""
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


STATE_COLUMN_WIDTH = 15
STATE_MARKS = {"testing": "…", "tests_passed": "✓", "pending_failure": "✗"}
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
    "cancelled": "bright_black",
    "PAUSED": "yellow",
    "DRAINING": "yellow",
    "SWITCHING_MODES": "yellow",
}


def style_state(name: str) -> Text:
    return plain_text(name, STATE_STYLES.get(name, ""))


def show_pull_request(pull_request: client.SubmittedPullRequest) -> None:
    title = plain_text(f"#{pull_request.pr_number} {pull_request.pr_title}", "bold")
    facts = {
        "why": format_reason(pull_request.reason),
        "author": pull_request.pr_author,
        "head": pull_request.pr_sha[:12],
        "priority": pull_request.priority_name,
        "position": pull_request.position,
        "run": pull_request.test_run_id,
        "submitted": format_time(pull_request.submitted_at),
        "expected": None if pull_request.estimated_merge_at is None else format_time(pull_request.estimated_merge_at),
        "merged as": None if pull_request.merged_sha is None else pull_request.merged_sha[:12],
    }
    print_output(
        Text.assemble(title, "  ", style_state(pull_request.state)),
        build_facts_table(facts),
        *map(format_timeline_entry, reversed(pull_request.timeline or ())),
    )


def build_facts_table(facts: Mapping[str, object]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        if value is not None:
            table.add_row(Text(f"  {name}", "dim"), plain_text(value))
    return table


def format_reason(reason: client.ReasonDetails) -> str:
    prerequisites = ", ".join(f"#{number}" for number in reason.waiting_for)
    return f"{reason.message} Waits for {prerequisites}." if prerequisites else reason.message


def format_timeline_entry(entry: client.TimelineEntry) -> Text:
    return format_line(
        entry.at,
        plain_text(entry.to.ljust(STATE_COLUMN_WIDTH), STATE_STYLES.get(entry.to, "")),
        plain_text(entry.message),
    )


def format_line(at: datetime, *parts: Text) -> Text:
    return Text("  ").join([plain_text(format_time(at), "dim"), *parts])


def show_queue(queue: client.Queue) -> None:
    """With the most important settings; `--json` shows all of them."""
    title = Text.assemble(plain_text(queue.queue_name, "bold"), "  ", style_state(queue.state))
    pull_requests, statuses = queue.enqueued_pull_requests, queue.required_statuses
    settings = {
        "mode": queue.mode,
        "concurrency": queue.concurrency,
        "batches": f"of {queue.batching_min_size}" if queue.batch else "off",
        "merge method": queue.merge_method,
        "required": "as configured in the repository" if statuses is None else ", ".join(statuses),
    }
    tables = [build_facts_table(settings), *([build_pull_requests_table(pull_requests)] if pull_requests else [])]
    print_output(title, *tables)


def build_pull_requests_table(pull_requests: tuple[client.EnqueuedPullRequest, ...]) -> Table:
    table = Table("position", "PR", "state", "author", "title", "why", box=None, header_style="dim", pad_edge=False)
    for pull_request in pull_requests:
        position = "–" if pull_request.position is None else str(pull_request.position)
        cells = (
            plain_text(pull_request.pr_author),
            plain_text(pull_request.pr_title),
            plain_text(format_reason(pull_request.reason)),
        )
        table.add_row(position, f"#{pull_request.pr_number}", style_state(pull_request.state), *cells)
    return table


def show_queues(queues: list[client.Queue]) -> None:
    table = Table("repository", "branch", "state", "mode", box=None, header_style="dim", pad_edge=False)
    for queue in queues:
        table.add_row(
            plain_text(queue.repo), plain_text(queue.branch), style_state(queue.state), plain_text(queue.mode)
        )
    print_output(table)


def show_run(run: client.Run) -> None:
    tested = ", ".join(f"#{pull_request.pr_number} {pull_request.title}" for pull_request in run.tested_pull_requests)
    facts = {
        "tests": tested or "the target branch itself",
        "on top of": ", ".join(f"#{number}" for number in run.dependent_prs) or run.base_sha[:12],
        "branch": run.test_branch,
        "tip": run.test_branch_sha[:12],
        "started": format_time(run.created_at),
        "kind": "bisection" if run.is_bisection else None,
    }
    table = Table("check", "state", box=None, header_style="dim", pad_edge=False)
    for name, check_state in (dict.fromkeys(run.required_statuses, "not reported") | run.checks).items():
        table.add_row(plain_text(name), style_state(check_state))
    print_output(Text.assemble((run.id, "bold"), "  ", style_state(run.status)), build_facts_table(facts), table)


def show_results(results: tuple[client.TestingResult, ...]) -> None:
    table = Table("run", "PR", "status", "kind", "finished", "took", box=None, header_style="dim", pad_edge=False)
    for result in results:
        kind = "bisection" if result.is_bisection else "batch"
        cells = (
            style_state(result.status),
            kind,
            format_time(result.finished_at),
            format_duration(result.duration_seconds),
        )
        table.add_row(plain_text(result.test_run_id), f"#{result.pr_number}", *cells)
    print_output(table)


def format_time(timestamp: datetime) -> str:
    """In the local time zone of the user."""
    return timestamp.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def format_duration(seconds: float) -> str:
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
