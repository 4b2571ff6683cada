"""Says in words what is wrong with the database, and what a person can do about it."""

from pathlib import Path

import apsw

from mergeyard.ports.store import StoreTrouble

ADVICE: dict[type[apsw.Error], str] = {
    apsw.FullError: "The disk that holds {path} is full. Make room; nothing needs to be restarted",
    apsw.IOError: "The disk that holds {path} cannot be read or written. Check the disk and the system's log",
    apsw.BusyError: "Another process keeps {path} locked. End it, or wait until it is done",
    apsw.LockedError: "Another process keeps {path} locked. End it, or wait until it is done",
    apsw.ProtocolError: "Another process keeps {path} locked. End it, or wait until it is done",
    apsw.CorruptError: "{path} is damaged. Stop Mergeyard, keep a copy of the file and restore a backup",
    apsw.NotADBError: "{path} is no database. Name another file, or restore a backup",
    apsw.ReadOnlyError: "{path} may not be written to. Check who owns the file and its folder",
    apsw.PermissionsError: "{path} may not be written to. Check who owns the file and its folder",
    apsw.CantOpenError: "{path} cannot be opened. Check that its folder is there and who owns it",
    apsw.NoMemError: "There is not enough memory to use {path}. Give the process more",
    apsw.ConnectionClosedError: "{path} is closed. Open the store first",
    apsw.CursorClosedError: "{path} is closed. Open the store first",
}
"""Whatever else SQLite raises is a mistake of ours and stays what it is."""

TROUBLES = tuple(ADVICE)


DAMAGE = (apsw.CorruptError, apsw.NotADBError)


class Condition:
    """Remembers damage that anybody came across: it does not pass, and writing on would only make it worse."""

    def __init__(self, path: Path) -> None:
        self.damage: StoreTrouble | None = None
        self._path = path

    def told(self, error: apsw.Error) -> StoreTrouble:
        trouble = in_words(error, self._path)
        if isinstance(error, DAMAGE):
            self.damage = trouble
        return trouble


def in_words(error: apsw.Error, path: Path) -> StoreTrouble:
    advice = next(words for kind, words in ADVICE.items() if isinstance(error, kind))
    return StoreTrouble(f"{advice.format(path=path)} ({error}).")


def not_open(path: Path) -> StoreTrouble:
    return StoreTrouble(f"{path} is not open. Open the store before it is used, and close it last.")


def slow(path: Path, seconds: float) -> StoreTrouble:
    words = f"Writing to {path} takes longer than {seconds:g} seconds"
    return StoreTrouble(f"{words}. Look for a process that keeps it locked, and whether the disk is overloaded.")


def unreachable(path: Path, trouble: OSError) -> StoreTrouble:
    return StoreTrouble(f"{path} cannot be looked at ({trouble.strerror}). Check its disk, and who may see its folder.")


def moved(path: Path) -> StoreTrouble:
    return StoreTrouble(f"{path} was removed or replaced while it was open. Put it back and restart Mergeyard.")
