"""`mergeyard runs`, `mergeyard events` and `mergeyard audit`: what happened in a queue."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from mergeyard.cli import output
from mergeyard.cli.connection_options import SinceOption
from mergeyard.cli.session import Session, with_session
from mergeyard.client import Event, VerifiedLandings


class ListByDefault(TyperGroup):
    """`mergeyard runs --since 2d` is `mergeyard runs list --since 2d`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        no_command = not args or (args[0].startswith("-") and args[0] != "--help")
        return super().parse_args(ctx, ["list", *args] if no_command and not ctx.resilient_parsing else args)


app = typer.Typer(name="runs", cls=ListByDefault, help="Test runs and their results.")


@app.command("list")
@with_session
def list_results(
    session: Session,
    since: SinceOption = "1d",  # pyright: ignore[reportArgumentType]
    take: Annotated[int, typer.Option("--take", min=1, max=100, help="How many at most.")] = 50,
) -> None:
    """List the results of finished runs, the latest first."""
    results = session.client.list_results(session.queue, since=datetime.now(UTC) - since, take=take)
    session.show(results, lambda: output.show_results(results.testing_results))


@app.command()
@with_session
def show(
    session: Session, run_id: Annotated[str, typer.Argument(metavar="ID", help="As `mergeyard runs` shows it.")]
) -> None:
    """Show one run: what it tests, its base, and the results of its checks."""
    run = session.client.get_run(session.queue, run_id)
    session.show(run, lambda: output.show_run(run))


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
def audit(
    session: Session,
    last: Annotated[int, typer.Option("--last", min=1, max=200, help="How many of the latest landings.")] = 20,
) -> None:
    """Compare merged commits with the tested ones.

    The server reads its records and the target branch again. It pauses the queue when something differs, and repairs
    nothing.
    """
    with output.show_spinner("Comparing"):
        verified = session.client.verify_landings(session.queue, last=last)
    session.show(verified, lambda: show_audit(verified))
    if verified.mismatches:
        raise typer.Exit(output.ExitCode.AUDIT_MISMATCH)


def show_audit(verified: VerifiedLandings) -> None:
    table = Table("PR", "landed", "as", "form", "verdict", box=None, header_style="dim", pad_edge=False)
    for landing in verified.landings:
        commit_cells = (output.plain_text((landing.merged_sha or "–")[:12]), output.plain_text(landing.form))
        verdict = output.plain_text(landing.verdict, VERDICT_STYLES.get(landing.verdict, ""))
        table.add_row(f"#{landing.pr_number}", output.format_time(landing.landed_at), *commit_cells, verdict)
    mismatches = [output.plain_text(f"{mismatch.kind}: {mismatch.message}", "red") for mismatch in verified.mismatches]
    output.print_output(
        *([table] if verified.landings else []),
        *mismatches,
        *map(output.plain_text, verified.notes),
        output.plain_text(summarize(verified), "bold"),
    )


def summarize(verified: VerifiedLandings) -> str:
    landing_count = len(verified.landings)
    if not landing_count:
        return "No landing is recorded yet."
    landings = "1 landing" if landing_count == 1 else f"{landing_count} landings"
    if not verified.mismatches:
        return f"{landings} compared with the target branch: nothing differs."
    return f"{landings} compared with the target branch. The queue pauses once per difference: check it, then resume."
