"""The command that has the last landings of a queue compared with its target."""

from typing import Annotated

import typer
from rich.table import Table

from mergeyard.cli.exits import Ends
from mergeyard.cli.plainly import plain
from mergeyard.cli.session import Session, asking
from mergeyard.cli.showing import when
from mergeyard.cli.terminal import busy, put
from mergeyard.client import VerifiedLandings

STYLES = {"as_tested": "green", "differs": "red", "taken_off": "yellow", "not_comparable": "yellow"}


@asking
def audit(
    session: Session,
    last: Annotated[int, typer.Option("--last", min=1, max=200, help="How many landings, the latest.")] = 20,
) -> None:
    """Compare what landed with what was tested.

    The server reads its records and the target afresh. It pauses the queue for what differs, and repairs nothing.
    """
    with busy("Comparing"):
        verified = session.client.verify_landings(session.queue, last=last)
    session.show(verified, lambda: show(verified))
    if verified.mismatches:
        raise typer.Exit(Ends.DIFFERS)


def show(verified: VerifiedLandings) -> None:
    table = Table("PR", "landed", "as", "form", "verdict", box=None, header_style="dim", pad_edge=False)
    for landing in verified.landings:
        told = (plain((landing.merged_sha or "–")[:12]), plain(landing.form))
        verdict = plain(landing.verdict, STYLES.get(landing.verdict, ""))
        table.add_row(f"#{landing.pr_number}", when(landing.landed_at), *told, verdict)
    wrong = [plain(f"{found.doubt}: {found.message}", "red") for found in verified.mismatches]
    put(*([table] if verified.landings else []), *wrong, *map(plain, verified.notes), plain(summary(verified), "bold"))


def summary(verified: VerifiedLandings) -> str:
    count = len(verified.landings)
    if not count:
        return "Nothing has landed yet."
    told = "1 landing" if count == 1 else f"{count} landings"
    if not verified.mismatches:
        return f"{told} compared with the target, and nothing differs."
    return f"{told} compared with the target. The queue pauses once for what differs: compare it, then resume."
