"""`mergeyard runs`, `mergeyard events` and `mergeyard verify`: what happened in a queue."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.text import Text
from typer.core import TyperGroup

from mergeyard.cli import output
from mergeyard.cli.connection_options import HELP_OPTIONS, SinceOption, WebOption
from mergeyard.cli.session import Session, with_session
from mergeyard.client import Event, Queue, Run, TestingResult, VerifiedLandings


class ListByDefault(TyperGroup):
    """`mergeyard runs --since 2d` is `mergeyard runs list --since 2d`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        no_command = not args or (args[0].startswith("-") and args[0] not in HELP_OPTIONS)
        return super().parse_args(ctx, ["list", *args] if no_command and not ctx.resilient_parsing else args)


app = typer.Typer(name="runs", cls=ListByDefault, help="List and show test runs.")


MAX_RUNNING = 20
"""A request for each."""


@app.command("list")
@with_session
def list_results(
    session: Session,
    since: SinceOption = "1d",  # pyright: ignore[reportArgumentType]
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="How many finished runs at most.")] = 50,
) -> None:
    """List the test runs in progress, then the results of finished runs, the latest first.

    With --json the command prints only the results of finished runs.

    Examples:
        mergeyard runs
        mergeyard runs list --since 7d --limit 100
    """
    now = datetime.now(UTC)
    results = session.client.list_results(session.queue, since=now - since, take=limit)
    session.show(results, lambda: show_runs(fetch_running(session), results.testing_results, now))


SHORT_ID_LENGTH = 8
"""As on the pages. `runs show` accepts a unique beginning of an id."""


def show_runs(running: Iterable[Run], results: Iterable[TestingResult], now: datetime) -> None:
    table = output.build_table("run", "PR", "state", "kind", "started", "finished", "took")

    def add_row(run: str, number: int, status: str, is_bisection: bool, started: datetime, took_s: float) -> None:
        finished = "–" if status == "in_progress" else output.format_time(started + timedelta(seconds=took_s))
        cells = (
            "bisection" if is_bisection else "batch",
            output.format_time(started),
            finished,
            output.format_duration(took_s),
        )
        state = output.style_state(status, output.RUN_LABELS)
        table.add_row(output.plain_text(run[:SHORT_ID_LENGTH]), f"#{number}", state, *cells)

    for run in running:
        elapsed_s = (now - run.created_at).total_seconds()
        for pull_request in run.tested_pull_requests:
            add_row(run.id, pull_request.pr_number, run.status, run.is_bisection, run.created_at, elapsed_s)
    for each in results:
        arguments = (each.is_bisection, each.started_at, each.duration_seconds)
        add_row(each.test_run_id, each.pr_number, each.status, *arguments)
    output.print_table(table, "No test runs in this period: choose a longer one with --since.")


def fetch_running(session: Session) -> list[Run]:
    """A run that ended a moment ago is left out: it is among the results."""
    ids = list_running_ids(session.client.get_queue(session.queue))[:MAX_RUNNING]
    runs = [session.client.get_run(session.queue, run_id) for run_id in ids]
    return [run for run in runs if run.status == "in_progress"]


def list_running_ids(queue: Queue) -> list[str]:
    """The ids of the test runs in progress, in the order of the queue."""
    ids = (each.test_run_id for each in queue.enqueued_pull_requests or () if each.state == "testing")
    return list(dict.fromkeys(filter(None, ids)))


@app.command()
@with_session
def show(
    session: Session,
    run_id: Annotated[str, typer.Argument(metavar="ID", help="As `mergeyard runs` shows it, or its beginning.")],
    web: WebOption = False,
) -> None:
    """Show one test run: what it tests, its base, and the results of its checks.

    Examples:
        mergeyard runs show 6f1d2c3b
    """
    run = session.client.get_run(session.queue, complete_run_id(session, run_id))
    if web:
        session.open_page(f"/runs/{quote(run.id)}")
    else:
        session.show(run, lambda: show_run(run))


def show_run(run: Run) -> None:
    tested = ", ".join(f"#{pull_request.pr_number} {pull_request.title}" for pull_request in run.tested_pull_requests)
    facts = {
        "tests": tested or "the target branch itself",
        "on top of": ", ".join(f"#{number}" for number in run.dependent_prs) or run.base_sha[:12],
        "branch": run.test_branch,
        "tip": run.test_branch_sha[:12],
        "started": output.format_time(run.created_at),
        "kind": "bisection" if run.is_bisection else None,
    }
    title = Text.assemble(output.plain_text(run.id, "bold"), "  ", output.style_state(run.status, output.RUN_LABELS))
    output.print_output(title, output.build_facts_table(facts), output.build_checks_table(output.list_checks(run)))


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
        output.exit_with_usage_error(f"Several test runs begin with {beginning}.", hint=f"Choose one:\n{listed}")
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
    """List the events of a queue, the oldest first, and follow new ones.

    With --json the command prints one object per line. To continue later, pass the cursor of the last event with
    --after.

    Examples:
        mergeyard events
        mergeyard events --follow --after 4711 --json
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
    commit: Annotated[
        str | None, typer.Argument(metavar="COMMIT", help="A merged commit, to verify its provenance without a server.")
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key", metavar="FILE", help="With COMMIT: public keys of the queue, or an allowed-signers file."
        ),
    ] = None,
    signer: Annotated[
        str | None,
        typer.Option("--signer", metavar="NAME", help="With COMMIT: the queue's name in the allowed-signers file."),
    ] = None,
    repo_path: Annotated[
        Path, typer.Option("--repo-path", metavar="DIR", help="With COMMIT: a clone that has the commit.")
    ] = Path(),
    allow_missing: Annotated[
        bool,
        typer.Option(
            "--allow-missing", help="With COMMIT: accept an unsigned commit, and a statement without a test run."
        ),
    ] = False,
    last: Annotated[int, typer.Option("--last", min=1, max=200, help="How many of the latest merges to verify.")] = 20,
) -> None:
    """Verify that the merged commits are those that were tested.

    Without COMMIT, the server compares its records with the target branch. If something differs, it pauses the queue
    and repairs nothing.

    With COMMIT, the command needs only git and the public key of the queue. It verifies the signed statement in the git
    note of the commit, and prints how the commit was tested and merged. In a script, also pass --repo and --branch: the
    statement must then be about this repository and target branch.

    Examples:
        mergeyard verify
        mergeyard verify --last 100 --json
        mergeyard verify HEAD --key queue.pub
        mergeyard verify HEAD --key queue.pub --repo github.com/acme/app --branch main
    """
    if commit is not None:
        verify_provenance(session, commit, key, repo_path, signer=signer, allow_missing=allow_missing)
        return
    if key is not None or signer is not None:
        advice = "For example: mergeyard verify HEAD --key FILE."
        output.exit_with_usage_error("--key and --signer need a commit.", hint=advice)
    with output.show_spinner("Comparing"):
        verified = session.client.verify_landings(session.queue, last=last)
    session.show(verified, lambda: show_verified(verified))
    if verified.mismatches:
        raise typer.Exit(output.ExitCode.MERGE_MISMATCH)


def verify_provenance(
    session: Session, commit: str, key: Path | None, folder: Path, *, signer: str | None, allow_missing: bool
) -> None:
    from mergeyard.cli import provenance, public_keys  # import the cryptography and a part of the server

    if key is None:
        advice = "On the machine of the server, `mergeyard host check HOST --public-key` prints it: store it in a file."
        output.exit_with_usage_error("--key is missing: the file with the public key of the queue.", hint=advice)
    try:
        expected = provenance.Expected(
            signer=signer, repository=session.repo, branch=session.branch, allow_missing=allow_missing
        )
        verified = provenance.verify_commit(folder, commit, key, expected)
    except public_keys.KeyFileError as error:
        output.exit_with_usage_error(str(error))
    except provenance.NoProvenanceError as error:
        output.exit_with_message(str(error))
    except provenance.ProvenanceMismatch as error:
        output.exit_with_message(str(error), output.ExitCode.MERGE_MISMATCH, hint=error.advice)
    session.show(verified, lambda: provenance.show_verified(verified))


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
