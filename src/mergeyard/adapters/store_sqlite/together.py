"""Writes the turns of many queues in a handful of statements.

Their rows travel as one JSON text, which SQLite takes apart by itself. A statement for each row would need the
interpreter hundreds of times in a group, and wait for it each time while the loop is busy.
"""

from collections.abc import Iterable

from msgspec import json
from msgspec.structs import astuple

from mergeyard.adapters.store_sqlite.handles import Cursor
from mergeyard.adapters.store_sqlite.sql import SQL
from mergeyard.adapters.store_sqlite.writes import Beat, perform
from mergeyard.ports.store import Outrun
from mergeyard.ports.writes import AppendEntries, EntryRow, RunRow, SaveTurn, StayRow, Write

LONG = 64 * 1024
"""Bytes of a fact that is better not copied into a text."""

Row = tuple[object, ...]
encode = json.Encoder().encode


def perform_together(cursor: Cursor, writes: Iterable[Write | Beat]) -> None:
    """All of it, or it raises and whoever called takes all of it back. What is no turn goes first, one by one."""
    turns, entries = list[SaveTurn](), list[EntryRow]()
    for write in writes:
        if isinstance(write, SaveTurn) and not _is_long(write):
            turns.append(write)
        elif isinstance(write, AppendEntries):
            entries += write.entries
        else:
            perform(cursor, write)
    _save_turns(cursor, turns)
    _execute(cursor, SQL["append_entries"], map(_spelled, entries))


def _is_long(turn: SaveTurn) -> bool:
    return any(len(fact.body or b"") > LONG for fact in turn.facts)


def _save_turns(cursor: Cursor, turns: list[SaveTurn]) -> None:
    if _execute(cursor, SQL["take_turns"], [(turn.queue, turn.version) for turn in turns]) != len(turns):
        raise Outrun("One of these versions does not follow the one that is stored.")
    facts = [(turn.queue, fact) for turn in turns for fact in turn.facts]
    kept = [(queue, fact.shelf, fact.key, fact.body.decode()) for queue, fact in facts if fact.body is not None]
    _execute(cursor, SQL["keep_facts"], kept)
    _execute(
        cursor,
        SQL["drop_facts_of_turns"],
        [(queue, each.shelf, each.key) for queue, each in facts if each.body is None],
    )
    stays = [(turn.queue, *_spelled(stay)) for turn in turns for stay in turn.stays]
    if _execute(cursor, SQL["save_stays"], stays) != len(stays):
        _execute(cursor, SQL["move_stays"], stays)
    _execute(cursor, SQL["save_runs"], [(turn.queue, *_spelled(run)) for turn in turns for run in turn.runs])


def _spelled(row: StayRow | RunRow | EntryRow) -> Row:
    *columns, _ = astuple(row)
    return (*columns, row.body.decode())


def _execute(cursor: Cursor, statement: str, rows: Iterable[Row]) -> int:
    """How many rows it changed."""
    found = list(rows)
    if not found:
        return 0
    cursor.execute(statement, {"rows": encode(found).decode()})
    return cursor.connection.changes()
