"""`mergeyard top`: shows a queue live, full screen."""

import os
import select
import sys
import termios
import tty
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from heapq import nlargest
from itertools import groupby, islice
from threading import Event, Thread
from typing import Self

import typer
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mergeyard.cli import output
from mergeyard.cli.session import Session, with_session
from mergeyard.client import (
    Client,
    EnqueuedPullRequest,
    MergeyardError,
    Queue,
    QueueName,
    RetryPolicy,
    Run,
    SubmittedPullRequest,
    Unreachable,
)


@contextmanager
def unbuffered_keys() -> Generator[None]:
    """Ctrl-C still interrupts. The terminal mode is restored at the end."""
    if not sys.stdin.isatty():
        yield
        return
    previous_mode = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin, termios.TCSANOW)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, previous_mode)


def wait_for_key(seconds: float) -> str:
    """The pressed key, or an empty string after the timeout."""
    inputs = [sys.stdin.fileno()] if sys.stdin.isatty() else []
    ready, _, _ = select.select(inputs, [], [], seconds)
    return os.read(ready[0], 1).decode(errors="replace") if ready else ""


UNDER_TEST_STATES = {"testing", "tests_passed", "pending_failure"}

PullRequests = tuple[EnqueuedPullRequest, ...]


class BatchSnapshot(Struct, frozen=True):
    """Pull requests that are tested together, and their run if it was fetched."""

    pull_requests: PullRequests
    run: Run | None

    @property
    def is_bisection(self) -> bool:
        return self.run is not None and self.run.is_bisection


class QueueSnapshot(Struct, frozen=True, kw_only=True):
    queue: Queue
    runs: Mapping[str, Run]
    concluded: tuple[SubmittedPullRequest, ...]
    """Latest first."""
    error: str | None = None
    """Of a later poll, which failed."""

    @property
    def pull_requests(self) -> PullRequests:
        return self.queue.enqueued_pull_requests or ()

    @property
    def waiting(self) -> PullRequests:
        others = {*UNDER_TEST_STATES, "not_ready"}
        return tuple(pull_request for pull_request in self.pull_requests if pull_request.state not in others)

    @property
    def not_ready(self) -> PullRequests:
        return tuple(pull_request for pull_request in self.pull_requests if pull_request.state == "not_ready")

    @property
    def batches(self) -> list[BatchSnapshot]:
        groups = groupby(
            list_under_test(self.queue), key=lambda pull_request: pull_request.test_run_id or pull_request.id
        )
        return [BatchSnapshot(tuple(pull_requests), self.runs.get(run)) for run, pull_requests in groups]


def list_under_test(queue: Queue) -> PullRequests:
    pull_requests = queue.enqueued_pull_requests or ()
    return tuple(pull_request for pull_request in pull_requests if pull_request.state in UNDER_TEST_STATES)


POLL_INTERVAL_S = 1.0
MAX_RUNS = 20
"""More do not fit on a screen."""
MAX_CONCLUDED = 10
MAX_PULL_REQUESTS_PER_REQUEST = 50
NO_RETRY_POLICY = RetryPolicy(total_timeout_s=0, response_timeout_s=10)
"""The next poll follows anyway."""


def fetch_snapshot(client: Client, name: QueueName, previous: QueueSnapshot | None = None) -> QueueSnapshot:
    """`previous`: the snapshot fetched before this one."""
    queue = client.get_queue(name)
    candidates = [*client.list_pull_requests(name, take=MAX_PULL_REQUESTS_PER_REQUEST).pull_requests]
    if previous is not None:
        candidates += [*previous.concluded, *fetch_departed(client, name, previous, queue)]
    concluded_by_id = {pull_request.id: pull_request for pull_request in candidates if pull_request.is_concluded}
    concluded = nlargest(
        MAX_CONCLUDED, concluded_by_id.values(), key=lambda pull_request: pull_request.state_changed_at
    )
    return QueueSnapshot(queue=queue, runs=fetch_runs(client, name, queue), concluded=tuple(concluded))


def fetch_departed(
    client: Client, name: QueueName, previous: QueueSnapshot, queue: Queue
) -> Sequence[SubmittedPullRequest]:
    """Pull requests that left the queue since `previous`; the list of latest submissions does not contain old ones."""
    enqueued = {pull_request.pr_number for pull_request in queue.enqueued_pull_requests or ()}
    departed = [
        pull_request.pr_number for pull_request in previous.pull_requests if pull_request.pr_number not in enqueued
    ]
    return client.get_pull_requests(name, departed[:MAX_PULL_REQUESTS_PER_REQUEST]).pull_requests if departed else ()


def fetch_runs(client: Client, name: QueueName, queue: Queue) -> dict[str, Run]:
    """The server still returns a run that ended a moment ago."""
    ids = dict.fromkeys(pull_request.test_run_id for pull_request in list_under_test(queue))
    return {run: client.get_run(name, run) for run in islice(filter(None, ids), MAX_RUNS)}


class SnapshotPoller:
    """`with SnapshotPoller(client, name, first) as poller: poller.latest`."""

    def __init__(self, client: Client, name: QueueName, first: QueueSnapshot) -> None:
        self.latest = first
        self._client = client
        self._name = name
        self._stopping = Event()
        self._thread = Thread(target=self._poll, daemon=True)

    def __enter__(self) -> Self:
        self._client.retry_policy = NO_RETRY_POLICY
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Does not wait for a poll in progress."""
        self._stopping.set()

    def _poll(self) -> None:
        while not self._stopping.wait(POLL_INTERVAL_S):
            try:
                self.latest = fetch_snapshot(self._client, self._name, self.latest)
            except (Unreachable, MergeyardError) as error:
                self.latest = replace(self.latest, error=str(error))
            except RuntimeError:
                return  # the client was closed because the user quit


PENDING_CHECK = "pending"

Row = tuple[Text, Text, Text, Text, Text]


def render_view(snapshot: QueueSnapshot, now: datetime, height: int, hint: str = "") -> RenderableType:
    """Everything if the screen is high enough, otherwise the first rows of every section and how many more there
    are."""
    header_lines = [render_header(snapshot, now, hint), render_diagram(snapshot), Text()]
    if snapshot.error is not None:
        error = output.plain_text(f"Cannot refresh, retrying: {snapshot.error}", "bold red")
        header_lines.insert(1, truncate_to_line(error))
    visible = {title: rows for title, rows in build_sections(snapshot, now).items() if rows}
    available = height - len(header_lines) - 2 * len(visible)
    row_counts = distribute_rows([len(rows) for rows in visible.values()], available)
    rendered = [render_section(*section, count) for section, count in zip(visible.items(), row_counts, strict=True)]
    return Group(*header_lines, *(rendered or [Text("The queue is empty.", "dim")]))


def render_header(snapshot: QueueSnapshot, now: datetime, hint: str) -> Text:
    under_test = len(list_under_test(snapshot.queue))
    counts = f"{under_test} under test   {len(snapshot.waiting)} waiting   {len(snapshot.not_ready)} not ready"
    clock = now.astimezone().strftime("%H:%M:%S")
    name, queue_state = output.plain_text(snapshot.queue.queue_name, "bold"), output.style_state(snapshot.queue.state)
    return truncate_to_line(Text.assemble(name, "   ", queue_state, f"   {counts}   ", (f"{clock}   {hint}", "dim")))


def render_diagram(snapshot: QueueSnapshot) -> Text:
    """`main ← 12✓ ← 13+14…`."""
    rendered = output.plain_text(snapshot.queue.branch, "bold")
    for batch in snapshot.batches:
        if not batch.is_bisection:
            numbers = "+".join(str(pull_request.pr_number) for pull_request in batch.pull_requests)
            state = batch.pull_requests[0].state
            rendered.append(" ← ", "not bold dim")
            rendered.append(f"{numbers}{output.STATE_MARKS[state]}", f"not bold {output.STATE_STYLES[state]}")
    return truncate_to_line(rendered)


def build_sections(snapshot: QueueSnapshot, now: datetime) -> dict[str, list[Row]]:
    batches = [batch for batch in snapshot.batches if not batch.is_bisection]
    bisections = [batch for batch in snapshot.batches if batch.is_bisection]
    return {
        "Under test": [row for batch in batches for row in build_batch_rows("←", batch, now)],
        "Bisecting failed batches": [row for batch in bisections for row in build_batch_rows("⋔", batch, now)],
        "Waiting": [
            build_row(str(pull_request.position or ""), pull_request, format_reason(pull_request))
            for pull_request in snapshot.waiting
        ],
        "Not ready": [build_row("–", pull_request, format_reason(pull_request)) for pull_request in snapshot.not_ready],
        "Concluded": [
            build_row("", pull_request, format_age(pull_request, now)) for pull_request in snapshot.concluded
        ],
    }


def build_batch_rows(mark: str, batch: BatchSnapshot, now: datetime) -> Iterable[Row]:
    """The first row of a batch shows the run."""
    first, *others = batch.pull_requests
    yield build_row(mark, first, format_reason(first) if batch.run is None else format_run_progress(batch.run, now))
    for pull_request in others:
        yield build_row("+", pull_request, Text())


def format_reason(pull_request: EnqueuedPullRequest, style: str = "") -> Text:
    return output.plain_text(output.format_reason(pull_request.reason), style)


def build_row(mark: str, pull_request: EnqueuedPullRequest, text: Text) -> Row:
    return (
        Text(mark, "dim"),
        Text(f"#{pull_request.pr_number}", "bold"),
        output.plain_text(pull_request.pr_title),
        output.style_state(pull_request.state),
        text,
    )


def format_run_progress(run: Run, now: datetime) -> Text:
    checks = run.checks
    done = sum(checks.get(name, PENDING_CHECK) != PENDING_CHECK for name in run.required_statuses)
    stacked_on = "  on top of " + ", ".join(f"#{number}" for number in run.dependent_prs) if run.dependent_prs else ""
    elapsed = output.format_duration((now - run.created_at).total_seconds())
    return Text(f"{done}/{len(run.required_statuses)} checks  {elapsed}{stacked_on}")


def format_age(pull_request: EnqueuedPullRequest, now: datetime) -> Text:
    return Text.assemble(
        f"{output.format_duration((now - pull_request.state_changed_at).total_seconds())} ago  ",
        format_reason(pull_request, "dim"),
    )


def render_section(title: str, rows: Sequence[Row], row_count: int) -> RenderableType:
    hidden = len(rows) - row_count
    more = f"  and {hidden} more" if hidden else ""
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(width=4, justify="right")
    table.add_column(width=7)
    for ratio in (3, None, 4):
        table.add_column(ratio=ratio, width=None if ratio else 15, no_wrap=True, overflow="ellipsis")
    for row in rows[:row_count]:
        table.add_row(*row)
    return Group(Text.assemble((title, "bold"), (more, "dim")), table, Text())


def distribute_rows(needs: Sequence[int], available: int) -> list[int]:
    """Gives one row at a time to each section that needs more, until no space is left."""
    row_counts = [0] * len(needs)
    while available > 0 and row_counts != list(needs):
        for index, need in enumerate(needs):
            if available > 0 and row_counts[index] < need:
                row_counts[index] += 1
                available -= 1
    return row_counts


def truncate_to_line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


KEY_TIMEOUT_S = 0.2
QUIT_KEYS = {"q", "Q"}
UNLIMITED_HEIGHT = 10_000
PIPE_WIDTH = 150
QUIT_HINT = "q quits"


@with_session
def top(session: Session) -> None:
    """Show a queue live, full screen.

    q quits. In a pipe, and with --json, the current state of the queue is printed once.
    """
    if session.as_json:
        typer.echo(output.encode_json(session.client.get_queue(session.queue)))
        return
    first = fetch_snapshot(session.client, session.queue)
    if not output.is_terminal():
        output.print_output(render_view(first, datetime.now(UTC), UNLIMITED_HEIGHT), pipe_width=PIPE_WIDTH)
        return
    with SnapshotPoller(session.client, session.queue, first) as poller:
        run_screen(poller, output.get_console())


def run_screen(poller: SnapshotPoller, console: Console) -> None:
    """Redraws only when the snapshot, the current second or the size of the screen has changed."""
    last_drawn = None
    with unbuffered_keys(), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            now, latest, size = datetime.now(UTC), poller.latest, console.size
            if (latest, now.second, size) != last_drawn:
                live.update(render_view(latest, now, size.height, QUIT_HINT), refresh=True)
                last_drawn = latest, now.second, size
            if wait_for_key(KEY_TIMEOUT_S) in QUIT_KEYS:
                return
