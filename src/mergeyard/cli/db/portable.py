"""The portable file that holds a whole database: JSON lines, packed with gzip or not.

A header, then table after table, then a footer:

    {"line":"mergeyard export","format":1,"form":1,"made":"2026-03-01T08:00:00+00:00","version":"0.1.0"}
    {"line":"table","table":"queues","columns":["id","host", …]}
    ["q1","git.local", …]
    {"line":"end of table","table":"queues","rows":1,"checksum":"9f86d0…"}
    {"line":"end of export","tables":9,"rows":1}

The checksum is the SHA-256 of the table's rows, each as it stands here with its line feed.
"""

import gzip
import io
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from msgspec import Struct

FORMAT = 1
PACKED = ".gz"
MARK_OF_PACKED = b"\x1f\x8b"
EFFORT = 6
"""More packs hardly smaller, and takes much longer."""


class Header(Struct, frozen=True, kw_only=True, tag="mergeyard export", tag_field="line"):
    format: int
    form: int
    """Of the database that it was made from."""
    made: str
    version: str
    """Of Mergeyard."""


class TableBegins(Struct, frozen=True, tag="table", tag_field="line"):
    table: str
    columns: tuple[str, ...]


class TableEnds(Struct, frozen=True, tag="end of table", tag_field="line"):
    table: str
    rows: int
    checksum: str


class Footer(Struct, frozen=True, tag="end of export", tag_field="line"):
    tables: int
    rows: int


Mark = Header | TableBegins | TableEnds | Footer


@contextmanager
def open_to_write(path: Path, name: str) -> Generator[IO[bytes]]:
    """The name says whether it is packed."""
    with path.open("wb") as file:
        if not name.endswith(PACKED):
            yield file
            return
        packed = gzip.GzipFile(name, "wb", EFFORT, file)
        with io.BufferedWriter(cast(io.RawIOBase, packed)) as lines:
            yield lines


@contextmanager
def open_to_read(path: Path) -> Generator[IO[bytes]]:
    """What is in it says whether it is packed."""
    with path.open("rb") as file:
        if not file.peek(2).startswith(MARK_OF_PACKED):
            yield file
            return
        with gzip.GzipFile(fileobj=file) as packed:
            yield cast(IO[bytes], packed)
