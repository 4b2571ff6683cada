"""The command that shows what happened in a queue, and what happens."""

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.text import Text

from mergeyard.cli.plainly import in_json, plain
from mergeyard.cli.session import Session, asking
from mergeyard.cli.showing import STYLES, line
from mergeyard.cli.terminal import busy, put
from mergeyard.client import Event

LONGEST_TYPE = len("pull_request.pending_failure")


@asking
def events(
    session: Session,
    after: Annotated[str | None, typer.Option("--after", metavar="CURSOR", help="Only what came behind it.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what happens, until interrupted.")] = False,
) -> None:
    """Show what happened in a queue, and follow it.

    Oldest first, with --json one object per line. The cursor of the last one leads on: --after CURSOR.
    """
    with busy("Waiting for something to happen" if follow else "Reading"):
        for event in all_to_come(session, after) if follow else all_until_now(session, after):
            if session.whom.as_json:
                typer.echo(in_json(event))
            else:
                put(told(event))


def all_to_come(session: Session, after: str | None) -> Iterator[Event]:
    session.be_patient()
    return session.client.events(session.queue, after=after)


def all_until_now(session: Session, after: str | None) -> Iterator[Event]:
    while True:
        page = session.client.list_events(session.queue, after=after, take=100)
        if not page.events:
            return
        yield from page.events
        after = page.next


def told(event: Event) -> Text:
    kind = plain(event.type.ljust(LONGEST_TYPE), STYLES.get(event.state or "", ""))
    who = "" if event.pr_number is None else f"#{event.pr_number} "
    return line(event.timestamp, kind, plain(f"{who}{event.message}"), plain(f"({event.cursor})", "dim"))
