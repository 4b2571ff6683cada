"""`mergeyard top`: shows a queue live, full screen."""

import os
import re
import select
import sys
import termios
import tty
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mergeyard.cli import output
from mergeyard.cli.connection_options import filter_queues
from mergeyard.cli.queue_snapshot import (
    BatchSnapshot,
    LoadingQueue,
    QueueSnapshot,
    SnapshotPoller,
    fetch_snapshot,
    format_numbers,
    lay_out_lanes,
)
from mergeyard.cli.session import Session, with_session
from mergeyard.client import EnqueuedPullRequest, QueueName, Run


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


KEY_PATTERN = re.compile(r"\x1b[\[O][A-Z]|.", re.DOTALL)
"""An arrow key sends several characters."""


def wait_for_keys(seconds: float) -> list[str]:
    """The pressed keys, or none after the timeout."""
    inputs = [sys.stdin.fileno()] if sys.stdin.isatty() else []
    ready, _, _ = select.select(inputs, [], [], seconds)
    return KEY_PATTERN.findall(os.read(ready[0], 64).decode(errors="replace")) if ready else []


PENDING_CHECK = "pending"
MAX_LANES = 6
SHORT_LABELS = {"testing": "testing", "tests_passed": "passed", "pending_failure": "failing"}

Row = tuple[Text, Text, Text, Text, Text]


def render_view(
    latest: QueueSnapshot | LoadingQueue, now: datetime, height: int, place: str = "", hint: str = ""
) -> RenderableType:
    """Everything if the screen is high enough, otherwise the first rows of every section and how many more there
    are. `place`: which of several queues this is."""
    header_lines = [render_title(latest, now, place, hint)]
    if latest.error is not None:
        header_lines.append(truncate(output.plain_text(f"Cannot refresh, retrying: {latest.error}", "bold red")))
    if isinstance(latest, LoadingQueue):
        return Group(*header_lines, Text("Reading the queue…", "dim"))
    header_lines += [truncate(output.plain_text(problem, "bold red")) for problem in latest.queue.problems or ()]
    header_lines += [render_counts(latest, now), *render_lanes(latest), Text()]
    visible = {title: rows for title, rows in build_sections(latest, now).items() if rows}
    available = height - len(header_lines) - 2 * len(visible)
    row_counts = distribute_rows([len(rows) for rows in visible.values()], available)
    rendered = [render_section(*section, count) for section, count in zip(visible.items(), row_counts, strict=True)]
    return Group(*header_lines, *(rendered or [Text("The queue is empty.", "dim")]))


def render_title(latest: QueueSnapshot | LoadingQueue, now: datetime, place: str, hint: str) -> Text:
    clock = now.astimezone().strftime("%H:%M:%S %Z")
    state = output.style_queue_state(latest.queue) if isinstance(latest, QueueSnapshot) else Text()
    name = output.plain_text(latest.name, "bold")
    title = Text.assemble(name, (place, "dim"), "   ", state, (f"   {clock}   {hint}", "dim"))
    return truncate(title)


def render_counts(snapshot: QueueSnapshot, now: datetime) -> Text:
    """The same numbers as on the page: a pull request that is not ready does not count as queued."""
    testing, bisecting = (sum(len(each.numbers) for each in group) for group in (snapshot.testing, snapshot.bisecting))
    waiting, not_ready = len(snapshot.waiting), len(snapshot.not_ready)
    parts = {"testing": testing, "bisecting": bisecting, "waiting": waiting}
    listed = ", ".join(f"{count} {name}" for name, count in parts.items())
    counts = f"{testing + bisecting + waiting} queued ({listed})   {not_ready} not ready"
    next_merge = output.format_next_merge(snapshot.queue, now)
    return truncate(Text(counts if next_merge is None else f"{counts}   next merge: {next_merge}"))


def render_lanes(snapshot: QueueSnapshot) -> list[Text]:
    """`main ← #12 (passed) ← #13 + #14 (testing)`, one line per lane."""
    lanes, branch = lay_out_lanes(snapshot), snapshot.queue.branch
    width = max((len(lane.start) for lane in lanes), default=0)
    lines = list[Text]()
    for at, lane in enumerate(lanes[:MAX_LANES]):
        start = "" if at and lane.start == branch else lane.start
        line = output.plain_text(start.rjust(width), "bold")
        for each in lane.batches:
            state = each.batch.pull_requests[0].state
            also_on = f", also on top of {', '.join(map(format_numbers, each.also_on))}" if each.also_on else ""
            text = f"{format_numbers(each.batch)} ({SHORT_LABELS[state]}{also_on})"
            line.append(" ← ", "not bold dim").append(text, f"not bold {output.STATE_STYLES[state]}")
        lines.append(truncate(line))
    if len(lanes) > MAX_LANES:
        lines.append(Text(f"and {len(lanes) - MAX_LANES} more lanes", "dim"))
    return lines


def build_sections(snapshot: QueueSnapshot, now: datetime) -> dict[str, list[Row]]:
    return {
        "Testing": [row for batch in snapshot.testing for row in build_batch_rows(batch, now)],
        "Bisecting": [row for batch in snapshot.bisecting for row in build_batch_rows(batch, now)],
        "Waiting": [build_row(pull_request, format_reason(pull_request)) for pull_request in snapshot.waiting],
        "Not ready": [build_row(pull_request, format_reason(pull_request)) for pull_request in snapshot.not_ready],
        "Finished": [build_row(pull_request, format_age(pull_request, now)) for pull_request in snapshot.finished],
    }


def build_batch_rows(batch: BatchSnapshot, now: datetime) -> Iterable[Row]:
    """The first row of a batch shows the run."""
    first, *others = batch.pull_requests
    has_progress = batch.run is not None and batch.run.status == "in_progress"
    yield build_row(first, format_run_progress(batch.run, now) if batch.run and has_progress else format_reason(first))
    for pull_request in others:
        yield build_row(pull_request, Text(f"in the test run of #{first.pr_number}", "dim"))


def format_reason(pull_request: EnqueuedPullRequest, style: str = "") -> Text:
    return output.plain_text(output.format_reason(pull_request.reason), style)


def build_row(pull_request: EnqueuedPullRequest, text: Text) -> Row:
    return (
        Text("" if pull_request.position is None else str(pull_request.position), "dim"),
        Text(f"#{pull_request.pr_number}", "bold"),
        output.plain_text(pull_request.pr_title),
        output.style_state(pull_request.state, output.STATE_LABELS | {"pending_failure": "Failing"}),
        text,
    )


def format_run_progress(run: Run, now: datetime) -> Text:
    reported = {name for name, check in run.checks.items() if check.state != PENDING_CHECK}
    done = sum(name in reported for name in run.required_statuses)
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


def truncate(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


KEY_TIMEOUT_S = 0.2
QUIT_KEYS = {"q", "Q"}
NEXT_KEYS = {"\t", "\x1b[C", "\x1b[B", "\x1bOC", "\x1bOB"}
"""Tab, and the arrow keys to the right and down, in both forms that terminals send."""
PREVIOUS_KEYS = {"\x1b[Z", "\x1b[D", "\x1b[A", "\x1bOD", "\x1bOA"}
UNLIMITED_HEIGHT = 10_000
PIPE_WIDTH = 150
KEY_HINT = "q quits, ? shows the keys"
HELP = """\
q          quit
?          show or hide this help
Tab, →, ↓  next queue
⇧Tab, ←, ↑ previous queue

main ← #12 (passed) ← #13 + #14 (testing)
One line for each lane: #13 and #14 are tested together, on top of #12.
The number before a pull request is its position in the queue.
"""


@with_session
def top(session: Session) -> None:
    """Show a queue live, on the full screen.

    q quits, ? shows the keys, Tab and the arrow keys choose another queue. In a pipe, and with --json, the command
    prints the current state of the queue once.

    Examples:
        mergeyard top
        mergeyard top --queue github.com/acme/app:main
    """
    if session.as_json:
        typer.echo(output.encode_json(session.client.get_queue(session.queue)))
    elif output.is_terminal():
        with SnapshotPoller(session.client, *list_choices(session)) as poller:
            run_screen(poller, output.get_console())
    else:
        snapshot = fetch_snapshot(session.client, session.queue)
        output.print_output(render_view(snapshot, datetime.now(UTC), UNLIMITED_HEIGHT), pipe_width=PIPE_WIDTH)


def list_choices(session: Session) -> tuple[list[QueueName], int]:
    """All queues that the token can read, and the index of the first one of the repository and the branch."""
    queues = session.client.list_queues().queues
    allowed = filter_queues(queues, session.named_repo, session.branch)
    return ([queue.queue_name for queue in queues], queues.index(allowed[0])) if allowed else ([session.queue], 0)


def run_screen(poller: SnapshotPoller, console: Console) -> None:
    """Redraws only when the snapshot, the current second, the size of the screen or the help has changed."""
    last_drawn, shows_help = None, False
    with unbuffered_keys(), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            now, latest, size = datetime.now(UTC), poller.latest, console.size
            if (latest, now.second, size, shows_help) != last_drawn:
                view = render_view(latest, now, size.height, describe_place(poller), KEY_HINT)
                live.update(Text(HELP) if shows_help else view, refresh=True)
                last_drawn = latest, now.second, size, shows_help
            for key in wait_for_keys(KEY_TIMEOUT_S):
                if key in QUIT_KEYS:
                    return
                shows_help = not shows_help if key == "?" else shows_help
                poller.choose((key in NEXT_KEYS) - (key in PREVIOUS_KEYS))


def describe_place(poller: SnapshotPoller) -> str:
    count = len(poller.names)
    return "" if count == 1 else f" ({poller.chosen + 1} of {count})"
