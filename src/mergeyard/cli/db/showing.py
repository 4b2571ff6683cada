"""Shows people what was found in a database, or what was moved."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from mergeyard.cli.db.checking import Findings
from mergeyard.cli.db.tally import Count
from mergeyard.cli.plainly import clean

DIGITS = 16
"""Of a checksum: enough to compare by eye."""


def show_counts(counts: Sequence[Count]) -> None:
    table = Table("table", "rows", "checksum")
    table.columns[1].justify = "right"
    for count in counts:
        table.add_row(count.table, f"{count.rows:,}", count.checksum[:DIGITS])
    Console().print(table)


def show_findings(found: Findings) -> None:
    console = Console(soft_wrap=True, markup=False, highlight=False)
    console.print(f"{found.database}: form {found.form}")
    show_counts(found.tables)
    for fault in found.faults:
        console.print(clean(fault))
    if found.faults:
        console.print("Not sound: keep a copy of the database, then restore a backup.")
    else:
        console.print("Sound: references hold, and every queue can be loaded.")
