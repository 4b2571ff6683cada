"""Writes a file aside, for us alone, and puts it in its place only when it is whole and on the disk."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from mergeyard.cli.db.refusing import Refused, told_of


def refuse_existing(path: Path) -> None:
    if path.exists():
        raise Refused(f"{path} is there already: name another file, or write over it with --force.")


@contextmanager
def written_aside(path: Path) -> Generator[Path]:
    """An empty file in the same folder, to be written to. It is gone again when something goes wrong."""
    with told_of(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        aside = Path(name)
        try:
            yield aside
            _flush(aside)
            aside.replace(path)
            _flush(path.parent)
        finally:
            aside.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
