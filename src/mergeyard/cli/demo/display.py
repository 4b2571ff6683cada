"""What the demo prints: the introduction, a live diagram of the queue, the outcomes and the next steps."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from shutil import which
from time import monotonic

from rich.console import Console
from rich.console import Group as RenderGroup
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mergeyard.cli.demo.environment import DemoEnvironment, log_path
from mergeyard.cli.demo.sample_repository import REPO, SAMPLE_PULL_REQUESTS, TARGET_BRANCH, SamplePullRequest
from mergeyard.cli.demo.verification import Finding, Progress, RunGroup, has_expected_outcome
from mergeyard.cli.output import (
    STATE_COLUMN_WIDTH,
    STATE_LABELS,
    STATE_MARKS,
    STATE_STYLES,
    build_table,
    format_reason,
    style_state,
)
from mergeyard.client import SubmittedPullRequest
from mergeyard.domain.states import PullRequestState

QUEUE_NAME = f"{REPO}:{TARGET_BRANCH}"
BISECTION_JOINT = " ⋔ "
OPEN = Text("open", "dim")
"""Not submitted yet."""
LEGEND = "… under test   ✓ passed   ✗ failed   ⋔ bisecting a failed batch"


def render_progress(progress: Progress, seconds: float) -> RenderGroup:
    summary = f"{progress.concluded_count} of {len(SAMPLE_PULL_REQUESTS)} concluded   {seconds:.1f} s"
    return RenderGroup(
        render_diagram(progress), Text(LEGEND, style="dim"), build_progress_table(progress), Text(summary, style="bold")
    )


def render_diagram(progress: Progress) -> Text:
    rendered = Text(TARGET_BRANCH, style="bold", no_wrap=True, overflow="ellipsis")
    joint = " ← "
    for group in progress.list_groups():
        joint = BISECTION_JOINT if progress.is_bisection(group) else joint
        rendered.append(joint, style="not bold")
        numbers, state = "+".join(str(submission.pr_number) for submission in group), group[0].state
        rendered.append(f"{numbers}{STATE_MARKS[state]}", style=STATE_STYLES[state])
        joint = "  " if joint == BISECTION_JOINT else joint
    append_waiting(rendered, "waiting", progress.list_in_state(PullRequestState.PENDING))
    append_waiting(rendered, "not ready", progress.list_in_state(PullRequestState.NOT_READY))
    return rendered


def append_waiting(rendered: Text, label: str, group: RunGroup) -> None:
    if group:
        rendered.append(f"   {label}: ", style="not bold dim")
        rendered.append(" ".join(str(submission.pr_number) for submission in group), style=STATE_STYLES[group[0].state])


def build_progress_table(progress: Progress) -> Table:
    rows = Table(box=None, expand=True, header_style="dim")
    rows.add_column("PR")
    rows.add_column("TITLE", no_wrap=True, ratio=3)
    rows.add_column("STATE", min_width=STATE_COLUMN_WIDTH)
    rows.add_column("WAITS FOR", no_wrap=True, ratio=1)
    rows.add_column("REASON", no_wrap=True, ratio=4)
    for number, pull_request in enumerate(SAMPLE_PULL_REQUESTS, start=1):
        cells = (OPEN, "", "")
        if submission := progress.submissions.get(number):
            prerequisites = ", ".join(f"#{number}" for number in submission.reason.waiting_for)
            cells = (style_state(submission.state), prerequisites, submission.reason.message)
        rows.add_row(f"#{number}", pull_request.title, *cells)
    return rows


INTRODUCTION = """\
Twelve pull requests are submitted to a paused queue, which then tests batches of three, four batches at a time.
The server, its repository and the checks are real. They run in {folder}
"""
SIGN_IN = """\
Dashboard:          {page}
API token for it:   {token}
"""
NEXT_STEPS = """\

The server runs until you press Ctrl-C, and more pull requests arrive for ten minutes. Open the dashboard and sign in
with the API token to see the queue at work:

{sign_in}
Or use the command line, in another terminal:

  export MERGEYARD_URL={url} MERGEYARD_TOKEN_FILE={token_file} MERGEYARD_QUEUE={queue}
  {command} list
  {command} status 5
  {command} queue show
  git --git-dir {repository} log --graph --oneline {branch}

The log of the server is {log}
"""


def show_introduction(console: Console, environment: DemoEnvironment) -> None:
    show_text(console, INTRODUCTION.format(folder=environment.folder) + "\n" + format_sign_in(environment))


def show_outcomes(console: Console, progress: Progress) -> None:
    rows = build_table("PR", "pull request", "expected", "state", "reason")
    for number, pull_request in enumerate(SAMPLE_PULL_REQUESTS, start=1):
        submission = progress.submissions.get(number)
        mark = "" if has_expected_outcome(progress, number, pull_request) else "✗ "
        cells = (style_state(submission.state), submission.reason.message) if submission else (OPEN, "")
        rows.add_row(f"{mark}#{number}", describe_pull_request(pull_request), format_expected(pull_request), *cells)
    console.print()
    console.print(rows)


def describe_pull_request(pull_request: SamplePullRequest) -> str:
    return f"{pull_request.title} ({pull_request.about})" if pull_request.about else pull_request.title


def format_expected(pull_request: SamplePullRequest) -> str:
    alternative = f" (or #{pull_request.alternative} instead)" if pull_request.alternative else ""
    return STATE_LABELS[pull_request.expected.state] + alternative


def show_finding(console: Console, finding: Finding) -> None:
    holds = not finding.differences
    line = Text.assemble(("✓ ", "green") if holds else ("✗ Not true: ", "red"), finding.sentence)
    console.print(line, soft_wrap=True)
    for difference in finding.differences:
        console.print(Text(f"    {difference}"), soft_wrap=True)


def show_next_steps(console: Console, environment: DemoEnvironment) -> None:
    text = NEXT_STEPS.format(
        sign_in=format_sign_in(environment),
        url=environment.url,
        token_file=quote(str(environment.token_file)),
        queue=QUEUE_NAME,
        command=find_own_command(),
        repository=quote(str(environment.repository)),
        branch=TARGET_BRANCH,
        log=log_path(environment.folder),
    )
    show_text(console, text)


def format_sign_in(environment: DemoEnvironment) -> str:
    return SIGN_IN.format(page=f"{environment.url}/queues/{QUEUE_NAME}", token=environment.admin_token)


def show_text(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def find_own_command() -> str:
    """How a user starts this program in another terminal, in any folder."""
    script = Path(sys.argv[0]).absolute()
    if script.name == "__main__.py":
        return f"{quote(sys.executable)} -m mergeyard"
    found = which(script.name)
    return script.name if found and Path(found).samefile(script) else quote(str(script))


class Display:
    """Writes only changes, without control codes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = monotonic()
        self._last_shown = Progress({})

    @property
    def seconds(self) -> float:
        return monotonic() - self._started

    def show(self, progress: Progress) -> None:
        for number, submission in progress.submissions.items():
            if change_key(submission) != change_key(self._last_shown.submissions.get(number)):
                self.report(
                    f"#{submission.pr_number} {STATE_LABELS[submission.state]}: {format_reason(submission.reason)}"
                )
        if render_diagram(progress).plain != render_diagram(self._last_shown).plain:
            self.report(render_diagram(progress).plain)
        self._last_shown = progress

    def report(self, message: str) -> None:
        """Reports an action of an author or administrator, or a change."""
        self._console.print(Text.assemble((f"{self.seconds:5.1f} s", "dim"), f"  {message}"), soft_wrap=True)


class LiveDisplay(Display):
    """Redraws in place."""

    def __init__(self, live: Live) -> None:
        super().__init__(live.console)
        self._live = live

    def show(self, progress: Progress) -> None:
        self._live.update(render_progress(progress, self.seconds), refresh=True)


def change_key(submission: SubmittedPullRequest | None) -> tuple[object, ...]:
    return () if submission is None else (submission.id, submission.state, submission.reason)


@contextmanager
def open_display(console: Console) -> Generator[Display]:
    if not console.is_terminal:
        yield Display(console)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield LiveDisplay(live)
