"""Writes a whole database, as of one moment, into a portable file."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import msgspec

from mergeyard import __version__
from mergeyard.cli.db.aside import written_aside
from mergeyard.cli.db.portable import FORMAT, Footer, Header, Mark, TableBegins, TableEnds, open_to_write
from mergeyard.cli.db.refusing import refuse_another_form
from mergeyard.cli.db.tally import Count, Tally, line_of
from mergeyard.ports.archive import FORM, TABLES, Archive, Reading, Table


async def export_to(path: Path, archive: Archive) -> Sequence[Count]:
    refuse_another_form(await archive.form(), archive.place)
    async with archive.reading() as reading:
        with written_aside(path) as aside, open_to_write(aside, path.name) as file:
            return await _write(reading, file)


async def _write(reading: Reading, file: IO[bytes]) -> Sequence[Count]:
    made = datetime.now(UTC).isoformat(timespec="seconds")
    _mark(file, Header(format=FORMAT, form=FORM, made=made, version=__version__))
    counts = [await _write_table(reading, table, file) for table in TABLES]
    _mark(file, Footer(len(counts), sum(count.rows for count in counts)))
    return counts


async def _write_table(reading: Reading, table: Table, file: IO[bytes]) -> Count:
    _mark(file, TableBegins(table.name, tuple(table.columns)))
    tally = Tally(table)
    async for row in reading.rows(table):
        line = line_of(row)
        file.write(line)
        tally.add(line)
    count = tally.count
    _mark(file, TableEnds(count.table, count.rows, count.checksum))
    return count


def _mark(file: IO[bytes], mark: Mark) -> None:
    file.write(msgspec.json.encode(mark) + b"\n")
