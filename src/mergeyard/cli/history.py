"""`mergeyard runs`, `mergeyard events` and `mergeyard verify`: what happened in a queue."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from mergeyard.cli import output
from mergeyard.cli.connection_options import HELP_OPTIONS, SinceOption
from mergeyard.cli.session import Session, with_session
from mergeyard.client import Event, Run, VerifiedLandings


class ListByDefault(TyperGroup):
    """`mergeyard runs --since 2d` is `mergeyard runs list --since 2d`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        no_command = not args or (args[0].startswith("-") and args[0] not in HELP_OPTIONS)
        return super().parse_args(ctx, ["list", *args] if no_command and not ctx.resilient_parsing else args)


app = typer.Typer(name="runs", cls=ListByDefault, help="Test runs and their results.")


MAX_RUNNING = 20
"""A request for each."""


@app.command("list")
@with_session
def list_results(
    session: Session,
    since: SinceOption = "1d",  # pyright: ignore[reportArgumentType]
    take: Annotated[int, typer.Option("--take", min=1, max=100, help="How many finished runs at most.")] = 50,
) -> None:
    """List the runs in progress, and the results of finished runs, the latest first.

    With --json only the results of finished runs.
    """
    now = datetime.now(UTC)
    results = session.client.list_results(session.queue, since=now - since, take=take)
    session.show(results, lambda: output.show_runs(fetch_running(session), results.testing_results, now))


def fetch_running(session: Session) -> list[Run]:
    """A run that ended a moment ago is left out: it is among the results."""
    ids = output.list_running_ids(session.client.get_queue(session.queue))[:MAX_RUNNING]
    runs = [session.client.get_run(session.queue, run_id) for run_id in ids]
    return [run for run in runs if run.status == "in_progress"]


@app.command()
@with_session
def show(
    session: Session,
    run_id: Annotated[str, typer.Argument(metavar="ID", help="As `mergeyard runs` shows it, or its beginning.")],
) -> None:
    """Show one run: what it tests, its base, and the results of its checks."""
    run = session.client.get_run(session.queue, complete_run_id(session, run_id))
    session.show(run, lambda: output.show_run(run))


FULL_ID_LENGTH = 32
SEARCHED_PERIOD = timedelta(days=30)
RESULTS_PER_PAGE, MAX_SEARCHED_RESULTS = 100, 1000


def complete_run_id(session: Session, beginning: str) -> str:
    """The id that begins so. If there is none, the text itself: the server's refusal names it."""
    if len(beginning) >= FULL_ID_LENGTH:
        return beginning
    with output.show_spinner("Searching"):
        matching = sorted({run_id for run_id in list_known_ids(session) if run_id.startswith(beginning.lower())})
    if len(matching) > 1:
        listed = "\n".join(f"  {run_id}" for run_id in matching)
        output.exit_with_usage_error(f"Several test runs begin with {beginning}. Choose one:\n{listed}")
    return matching[0] if matching else beginning


def list_known_ids(session: Session) -> Iterator[str]:
    """Of runs of queued pull requests, of the latest submissions, and of finished runs of the last days."""
    client, name = session.client, session.queue
    submissions = client.list_pull_requests(name).pull_requests
    for pull_request in (*(client.get_queue(name).enqueued_pull_requests or ()), *submissions):
        if pull_request.test_run_id is not None:
            yield pull_request.test_run_id
    since = datetime.now(UTC) - SEARCHED_PERIOD
    for offset in range(0, MAX_SEARCHED_RESULTS, RESULTS_PER_PAGE):
        page = client.list_results(name, since=since, offset=offset, take=RESULTS_PER_PAGE)
        yield from (result.test_run_id for result in page.testing_results)
        if offset + RESULTS_PER_PAGE >= page.total_items:
            return


TYPE_COLUMN_WIDTH = len("pull_request.pending_failure")


@with_session
def events(
    session: Session,
    after: Annotated[
        str | None, typer.Option("--after", metavar="CURSOR", help="Only events after this cursor.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for new events until interrupted.")] = False,
) -> None:
    """Show the events of a queue, and follow them.

    Oldest first; with --json one object per line. To continue later, pass the cursor of the last event: --after CURSOR.
    """
    if follow:
        session.retry_longer()
    with output.show_spinner("Waiting for events" if follow else "Reading"):
        for event in session.client.events(session.queue, after=after) if follow else read_events(session, after):
            session.show(event, partial(output.print_output, format_event(event)))


def read_events(session: Session, after: str | None) -> Iterator[Event]:
    while True:
        page = session.client.list_events(session.queue, after=after, take=100)
        if not page.events:
            return
        yield from page.events
        after = page.next


def format_event(event: Event) -> Text:
    event_type = output.plain_text(event.type.ljust(TYPE_COLUMN_WIDTH), output.STATE_STYLES.get(event.state or "", ""))
    pull_request = "" if event.pr_number is None else f"#{event.pr_number} "
    return output.format_line(
        event.timestamp,
        event_type,
        output.plain_text(f"{pull_request}{event.message}"),
        output.plain_text(f"({event.cursor})", "dim"),
    )


VERDICT_STYLES = {"as_tested": "green", "differs": "red", "removed": "yellow", "not_comparable": "yellow"}


@with_session
def verify(
    session: Session,
    last: Annotated[int, typer.Option("--last", min=1, max=200, help="How many of the latest merges.")] = 20,
) -> None:
    """Verify that merged commits are those that were tested.

    The server reads its records and the target branch again. It pauses the queue when something differs, and repairs
    nothing.
    """
    with output.show_spinner("Comparing"):
        verified = session.client.verify_landings(session.queue, last=last)
    session.show(verified, lambda: show_verified(verified))
    if verified.mismatches:
        raise typer.Exit(output.ExitCode.MERGE_MISMATCH)


def show_verified(verified: VerifiedLandings) -> None:
    table = output.build_table("PR", "merged", "commit", "method", "result")
    for landing in verified.landings:
        commit = output.plain_text((landing.merged_sha or "–")[:12])
        method, verdict = (output.plain_text(name.replace("_", " ")) for name in (landing.form, landing.verdict))
        verdict.stylize(VERDICT_STYLES.get(landing.verdict, ""))
        table.add_row(f"#{landing.pr_number}", output.format_time(landing.landed_at), commit, method, verdict)
    mismatches = [output.plain_text(f"{mismatch.kind}: {mismatch.message}", "red") for mismatch in verified.mismatches]
    output.print_output(
        *([table] if verified.landings else []),
        *mismatches,
        *map(output.plain_text, verified.notes),
        output.plain_text(summarize(verified), "bold"),
    )


def summarize(verified: VerifiedLandings) -> str:
    count = len(verified.landings)
    if verified.mismatches:
        advice = "Check each difference, then resume the queue with `mergeyard queue resume`."
        return f"{format_merges(count)} compared with the target branch. The queue pauses once per difference. {advice}"
    if not count:
        return "No merge is recorded yet."
    return f"{format_merges(count)} compared with the target branch: nothing differs."


def format_merges(count: int) -> str:
    return "1 merge" if count == 1 else f"{count} merges"
