"""What the demo prints: the introduction, a live diagram of the queue, the outcomes and the next steps."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Protocol

from rich.console import Console
from rich.console import Group as RenderGroup
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mergeyard.cli.demo.environment import DemoEnvironment, log_path
from mergeyard.cli.demo.progress import QUEUE_NAME, Progress, RunGroup, Submission
from mergeyard.cli.demo.sample_repository import SAMPLE_PULL_REQUESTS, TARGET_BRANCH, SamplePullRequest
from mergeyard.cli.demo.verification import Finding, has_expected_outcome
from mergeyard.domain.states import PullRequestState

STATE_STYLES = {
    PullRequestState.NOT_READY: "dim",
    PullRequestState.PENDING: "blue",
    PullRequestState.TESTING: "yellow",
    PullRequestState.PENDING_FAILURE: "magenta",
    PullRequestState.TESTS_PASSED: "cyan",
    PullRequestState.MERGED: "green",
    PullRequestState.FAILED: "red",
    PullRequestState.CANCELLED: "bright_black",
}
STATE_MARKS = {PullRequestState.TESTING: "…", PullRequestState.TESTS_PASSED: "✓", PullRequestState.PENDING_FAILURE: "✗"}
BISECTION_JOINT = " ⋔ "
STATE_COLUMN_WIDTH = max(map(len, PullRequestState))
LEGEND = "… under test   ✓ passed   ✗ failed   ⋔ bisecting a failed batch"


def render_progress(progress: Progress, seconds: float) -> RenderGroup:
    summary = f"{progress.concluded_count} of {len(SAMPLE_PULL_REQUESTS)} concluded   {seconds:.1f} s"
    return RenderGroup(
        render_diagram(progress), Text(LEGEND, style="dim"), build_table(progress), Text(summary, style="bold")
    )


def render_diagram(progress: Progress) -> Text:
    rendered = Text(TARGET_BRANCH, style="bold", no_wrap=True, overflow="ellipsis")
    joint = " ← "
    for group in progress.list_groups():
        joint = BISECTION_JOINT if progress.is_bisection(group) else joint
        rendered.append(joint, style="not bold")
        rendered.append_text(render_batch(group))
        joint = "  " if joint == BISECTION_JOINT else joint
    append_waiting(rendered, "waiting", progress.list_in_state(PullRequestState.PENDING))
    append_waiting(rendered, "not ready", progress.list_in_state(PullRequestState.NOT_READY))
    return rendered


def render_batch(group: RunGroup) -> Text:
    shared_state = group[0].state
    return Text(
        "+".join(str(submission.pr_number) for submission in group) + STATE_MARKS[shared_state],
        style=STATE_STYLES[shared_state],
    )


def append_waiting(rendered: Text, label: str, group: RunGroup) -> None:
    if group:
        rendered.append(f"   {label}: ", style="not bold dim")
        rendered.append(" ".join(str(submission.pr_number) for submission in group), style=STATE_STYLES[group[0].state])


def build_table(progress: Progress) -> Table:
    rows = Table(box=None, expand=True, header_style="dim")
    rows.add_column("PR")
    rows.add_column("title", no_wrap=True, ratio=3)
    rows.add_column("state", min_width=STATE_COLUMN_WIDTH)
    rows.add_column("waits for", no_wrap=True, ratio=1)
    rows.add_column("why", no_wrap=True, ratio=4)
    for number, pull_request in enumerate(SAMPLE_PULL_REQUESTS, start=1):
        rows.add_row(f"#{number}", pull_request.title, *build_cells(progress.submissions.get(number)))
    return rows


def build_cells(submission: Submission | None) -> tuple[Text, str, str]:
    return (
        (style_state(submission), format_prerequisites(submission), submission.reason.message)
        if submission
        else (style_state(submission), "", "")
    )


def style_state(submission: Submission | None) -> Text:
    return Text(submission.state, style=STATE_STYLES[submission.state]) if submission else Text("open", style="dim")


def format_prerequisites(submission: Submission) -> str:
    return ", ".join(f"#{number}" for number in submission.reason.waiting_for)


INTRODUCTION = """\
Twelve pull requests are submitted to a queue that tests batches of three, four batches at a time.
The server, its repository and the checks are real and run in {folder}
"""


def show_introduction(console: Console, folder: Path) -> None:
    console.print(INTRODUCTION.format(folder=folder), highlight=False, markup=False, soft_wrap=True)


def show_outcomes(console: Console, progress: Progress) -> None:
    rows = Table("PR", "title", "expected", "state", "reason")
    for number, pull_request in enumerate(SAMPLE_PULL_REQUESTS, start=1):
        submission = progress.submissions.get(number)
        mark = "" if has_expected_outcome(progress, number, pull_request) else "✗ "
        reason = submission.reason.message if submission else ""
        rows.add_row(
            f"{mark}#{number}",
            describe_pull_request(pull_request),
            format_expected(pull_request),
            style_state(submission),
            reason,
        )
    console.print()
    console.print(rows)


def describe_pull_request(pull_request: SamplePullRequest) -> str:
    return f"{pull_request.title} ({pull_request.about})" if pull_request.about else pull_request.title


def format_expected(pull_request: SamplePullRequest) -> str:
    return str(pull_request.expected) + (
        f" (or #{pull_request.alternative} instead)" if pull_request.alternative else ""
    )


def show_finding(console: Console, finding: Finding) -> None:
    holds = not finding.differences
    line = Text.assemble(("✓ ", "green") if holds else ("✗ Not true: ", "red"), finding.sentence)
    console.print(line, soft_wrap=True)
    for difference in finding.differences:
        console.print(Text(f"    {difference}"), soft_wrap=True)


def show_next_steps(console: Console, environment: DemoEnvironment) -> None:
    curl_options = f"-H \"x-api-token: $(cat {environment.token_file})\" -H 'content-type: application/json' -d"
    timeline = json.dumps(QUEUE_NAME | {"pr": {"number": 6}, "includeTimeline": True})
    lines = (
        f"\nThe server is still running: {environment.url}/docs describes its API.",
        f"Its log is {log_path(environment.folder)}.",
        "Explore it with the token of the demo:\n",
        f"  curl {environment.url}/v1/getQueue {curl_options} '{json.dumps(QUEUE_NAME)}'",
        f"  curl {environment.url}/v1/getSubmittedPullRequest {curl_options} '{timeline}'",
        f'  curl {environment.url}/v1/getMergeQueueMetrics -H "x-api-token: $(cat {environment.token_file})"',
        f"  git --git-dir {environment.repository} log --graph --oneline main",
        "\nCtrl-C stops it.",
    )
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


class Display(Protocol):
    def show(self, progress: Progress) -> None: ...
    def report(self, message: str) -> None:
        """Reports an action of an author or administrator."""
        ...


class LiveDisplay:
    """Redraws in place."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._started = monotonic()

    def show(self, progress: Progress) -> None:
        self._live.update(render_progress(progress, monotonic() - self._started), refresh=True)

    def report(self, message: str) -> None:
        self._live.console.print(f"[dim]{monotonic() - self._started:5.1f} s[/]  {message}", highlight=False)


class LineDisplay:
    """Writes only changes, without control codes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = monotonic()
        self._last_shown = Progress({})

    def show(self, progress: Progress) -> None:
        for number, submission in progress.submissions.items():
            if change_key(submission) != change_key(self._last_shown.submissions.get(number)):
                self.report(format_change(submission))
        if render_diagram(progress).plain != render_diagram(self._last_shown).plain:
            self.report(render_diagram(progress).plain)
        self._last_shown = progress

    def report(self, message: str) -> None:
        line = f"{monotonic() - self._started:5.1f} s  {message}"
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)


def format_change(submission: Submission) -> str:
    prerequisites = format_prerequisites(submission)
    return f"#{submission.pr_number} {submission.state}: {submission.reason.message}" + (
        f" Waits for {prerequisites}." if prerequisites else ""
    )


def change_key(submission: Submission | None) -> tuple[object, ...]:
    return () if submission is None else (submission.id, submission.state, submission.reason)


@contextmanager
def open_display(console: Console) -> Generator[Display]:
    if not console.is_terminal:
        yield LineDisplay(console)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield LiveDisplay(live)
