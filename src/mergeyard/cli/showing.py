"""Shows pull requests, queues and runs to people, with a colour for every state."""

from collections.abc import Mapping
from datetime import datetime

from rich.table import Table
from rich.text import Text

from mergeyard.cli.plainly import plain
from mergeyard.cli.terminal import put
from mergeyard.client import EnqueuedPullRequest, Moment, Queue, Run, SubmittedPullRequest, TestingResult, Why

LONGEST_STATE = 15
STYLES = {
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


def state(name: str) -> Text:
    return plain(name, STYLES.get(name, ""))


def pull_title(pull: EnqueuedPullRequest) -> Text:
    return Text.assemble((f"#{pull.pr_number} ", "bold"), plain(pull.pr_title, "bold"), "  ", state(pull.state))


def show_pull(pull: SubmittedPullRequest) -> None:
    facts = {
        "why": why(pull.reason),
        "author": pull.pr_author,
        "head": pull.pr_sha[:12],
        "priority": pull.priority_name,
        "place": pull.position,
        "run": pull.test_run_id,
        "submitted": when(pull.submitted_at),
        "expected": None if pull.estimated_merge_at is None else when(pull.estimated_merge_at),
        "merged as": None if pull.merged_sha is None else pull.merged_sha[:12],
    }
    put(pull_title(pull), listed(facts), *map(moment_line, reversed(pull.timeline or ())))


def listed(facts: Mapping[str, object]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        if value is not None:
            table.add_row(Text(f"  {name}", "dim"), plain(value))
    return table


def why(reason: Why) -> str:
    awaited = ", ".join(f"#{number}" for number in reason.waiting_for)
    return f"{reason.message} Waits for {awaited}." if awaited else reason.message


def moment_line(moment: Moment) -> Text:
    return line(moment.at, plain(moment.to.ljust(LONGEST_STATE), STYLES.get(moment.to, "")), plain(moment.message))


def line(at: datetime, *parts: Text) -> Text:
    return Text("  ").join([plain(when(at), "dim"), *parts])


def show_queue(queue: Queue) -> None:
    title = Text.assemble(plain(queue.named, "bold"), "  ", state(queue.state))
    pulls = queue.enqueued_pull_requests
    put(title, listed(settings(queue)), *([enqueued(pulls)] if pulls else []))


def settings(queue: Queue) -> Mapping[str, object]:
    """Those that say how it works; `--json` shows all of them."""
    statuses = queue.required_statuses
    return {
        "mode": queue.mode,
        "runs at once": queue.concurrency,
        "batches": f"of {queue.batching_min_size}" if queue.batch else "off",
        "merge method": queue.merge_method,
        "required": "as the repository says" if statuses is None else ", ".join(statuses),
    }


def enqueued(pulls: tuple[EnqueuedPullRequest, ...]) -> Table:
    table = Table("place", "PR", "state", "author", "title", "why", box=None, header_style="dim", pad_edge=False)
    for pull in pulls:
        place = "–" if pull.position is None else str(pull.position)
        told = (plain(pull.pr_author), plain(pull.pr_title), plain(why(pull.reason)))
        table.add_row(place, f"#{pull.pr_number}", state(pull.state), *told)
    return table


def show_queues(queues: list[Queue]) -> None:
    table = Table("repository", "branch", "state", "mode", box=None, header_style="dim", pad_edge=False)
    for queue in queues:
        table.add_row(plain(queue.repo), plain(queue.branch), state(queue.state), plain(queue.mode))
    put(table)


def show_run(run: Run) -> None:
    tested = ", ".join(f"#{pull.pr_number} {pull.title}" for pull in run.tested_pull_requests)
    facts = {
        "tests": tested or "the target branch itself",
        "upon": ", ".join(f"#{number}" for number in run.dependent_prs) or run.base_sha[:12],
        "branch": run.test_branch,
        "tip": run.test_branch_sha[:12],
        "started": when(run.created_at),
        "kind": "bisection" if run.is_bisection else None,
    }
    table = Table("check", "says", box=None, header_style="dim", pad_edge=False)
    for name, said in (dict.fromkeys(run.required_statuses, "nothing yet") | run.checks).items():
        table.add_row(plain(name), state(said))
    put(Text.assemble((run.id, "bold"), "  ", state(run.status)), listed(facts), table)


def show_results(results: tuple[TestingResult, ...]) -> None:
    table = Table("run", "PR", "status", "kind", "finished", "took", box=None, header_style="dim", pad_edge=False)
    for result in results:
        kind = "bisection" if result.is_bisection else "line"
        told = (state(result.status), kind, when(result.finished_at), span(result.duration_seconds))
        table.add_row(plain(result.test_run_id), f"#{result.pr_number}", *told)
    put(table)


def when(time: datetime) -> str:
    """In the time of whoever reads it."""
    return time.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def span(seconds: float) -> str:
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
