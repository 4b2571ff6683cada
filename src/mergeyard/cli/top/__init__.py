"""The command that shows a queue at work on the whole screen."""

from datetime import UTC, datetime

import typer
from rich.console import Console
from rich.live import Live

from mergeyard.cli.plainly import in_json
from mergeyard.cli.session import Session, asking
from mergeyard.cli.terminal import on_a_terminal, put, screen
from mergeyard.cli.top.drawing import view
from mergeyard.cli.top.keys import hearing_keys, key_within
from mergeyard.cli.top.looking import Lookout, Seen, look

BETWEEN_KEYS = 0.2
LEAVING = {"q", "Q"}
NO_END = 10_000
WIDTH_IN_A_PIPE = 150
HINT = "q leaves"


@asking
def top(session: Session) -> None:
    """Watch a queue at work, on the whole screen.

    q leaves. In a pipe, and with --json, the queue is shown once, as it is now.
    """
    if session.whom.as_json:
        typer.echo(in_json(session.client.get_queue(session.queue)))
        return
    first = look(session.client, session.queue)
    if not on_a_terminal():
        put(view(Seen(first), datetime.now(UTC), NO_END), width_in_a_pipe=WIDTH_IN_A_PIPE)
        return
    with Lookout(session.client, session.queue, first) as lookout:
        keep_drawing(lookout, screen())


def keep_drawing(lookout: Lookout, out: Console) -> None:
    """Draws anew whenever somebody moved, a second passed or the screen has another size, and not otherwise."""
    drawn = None
    with hearing_keys(), Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            now, seen, size = datetime.now(UTC), lookout.seen, out.size
            if (seen, now.second, size) != drawn:
                live.update(view(seen, now, size.height, HINT), refresh=True)
                drawn = seen, now.second, size
            if key_within(BETWEEN_KEYS) in LEAVING:
                return
