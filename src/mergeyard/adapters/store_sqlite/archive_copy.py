"""Copies a whole SQLite file while others write to it, and makes sure that the copy is sound."""

from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Protocol, cast

import apsw

from mergeyard.adapters.store_sqlite.archive import form_of, told_in_words
from mergeyard.adapters.store_sqlite.connecting import connect, open_for_reading
from mergeyard.adapters.store_sqlite.handles import Connection
from mergeyard.adapters.store_sqlite.migrating import MIGRATIONS
from mergeyard.ports.store import StoreTrouble

ALL_PAGES = -1


class Copying(Protocol):
    def step(self, pages: int, /) -> bool: ...


class Copyable(Protocol):
    def backup(self, database: str, source: Connection, source_name: str, /) -> AbstractContextManager[Copying]: ...


def copy(source: Path, target: Path) -> None:
    """Onto an empty file. All pages in one step are of one moment, and writers need not wait for it."""
    with told_in_words(source), closing(open_for_reading(source)) as original:
        refuse_what_is_not_ours(form_of(original), source)
        with told_in_words(target), closing(connect(target)) as copied:
            with cast(Copyable, copied).backup("main", original, "main") as copying:
                copying.step(ALL_PAGES)
            # One file alone, with nothing beside it that could get lost.
            copied.pragma("journal_mode", "delete")
            refuse_a_damaged_copy(copied, source)


def refuse_what_is_not_ours(form: int, path: Path) -> None:
    known = MIGRATIONS[-1].number
    if form == 0:
        raise StoreTrouble(f"{path} is no database of Mergeyard. Name another file.")
    if form > known:
        raise StoreTrouble(
            f"{path} was written by a newer version of Mergeyard (its form is {form}, this version knows {known}). "
            "Use that version."
        )


def refuse_a_damaged_copy(copied: Connection, source: Path) -> None:
    damages = [words for (words,) in copied.execute("PRAGMA integrity_check").fetchall() if words != "ok"]
    strays = copied.execute("PRAGMA foreign_key_check").fetchall()
    if damages or strays:
        words = damages[0] if damages else f"{len(strays)} rows belong to a queue that is not there"
        raise StoreTrouble(f"{source} is damaged ({words}). Keep it, and use an older backup.")


def make_whole(path: Path) -> None:
    """Into one file with nothing beside it. Refused while somebody else has it open.

    What is damaged may not answer, but is left whole all the same when it is closed.
    """
    with told_in_words(path), suppress(apsw.CorruptError, apsw.NotADBError), closing(connect(path)) as connection:
        connection.pragma("journal_mode", "delete")
