"""Counts the rows of a table and takes their checksum, the same for the same rows in every kind of database."""

from hashlib import sha256

import msgspec
from msgspec import Struct

from mergeyard.ports.archive import TABLES, Reading, Row, Table

_encode = msgspec.json.Encoder().encode


class Count(Struct, frozen=True):
    """What a table holds."""

    table: str
    rows: int
    checksum: str


class Tally:
    def __init__(self, table: Table) -> None:
        self._table = table
        self._rows = 0
        self._digest = sha256()

    def add(self, line: bytes) -> None:
        self._rows += 1
        self._digest.update(line)

    @property
    def count(self) -> Count:
        return Count(self._table.name, self._rows, self._digest.hexdigest())


def line_of(row: Row) -> bytes:
    """A row in its one spelling: compact JSON, bytes in base64, on a line of its own."""
    return _encode(row) + b"\n"


async def count_all(reading: Reading) -> tuple[Count, ...]:
    return tuple([await count(reading, table) for table in TABLES])


async def count(reading: Reading, table: Table) -> Count:
    tally = Tally(table)
    async for row in reading.rows(table):
        tally.add(line_of(row))
    return tally.count
