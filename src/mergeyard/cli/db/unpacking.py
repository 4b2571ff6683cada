"""Reads a portable file from its header to its footer, and trusts nothing in it."""

import zlib
from collections.abc import Generator, Iterator, Sequence
from gzip import BadGzipFile
from pathlib import Path
from typing import IO, Annotated, Any, NoReturn

import msgspec
from msgspec import Meta

from mergeyard.cli.db.portable import FORMAT, Footer, Header, Mark, TableBegins, TableEnds
from mergeyard.cli.db.refusing import Refused, told_of
from mergeyard.cli.db.tally import Count, Tally
from mergeyard.ports.archive import FORM, TABLES, Kind, Row, Table

LONGEST_LINE = 512 * 1024 * 1024
"""A row holds at most what was uploaded once, 20 MiB, in base64."""
ROWS_AT_A_TIME = 500
BYTES_AT_A_TIME = 4 * 1024 * 1024

NUMBER: Any = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
TYPES: dict[Kind, Any] = {
    Kind.TEXT: str,
    Kind.MAYBE_TEXT: str | None,
    Kind.NUMBER: NUMBER,
    Kind.MAYBE_NUMBER: NUMBER | None,
    Kind.FLAG: bool,
    Kind.BYTES: bytes,
}

_mark_of = msgspec.json.Decoder(Mark).decode


class Unpacking:
    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._line = b""
        self.counts: list[Count] = []
        """Of the tables that were read to their end."""

    def read_header(self) -> None:
        """Whatever cannot be understood here is no export; later it is a damaged one."""
        try:
            self._go_on()
            header = _mark_of(self._line)
        except (Refused, msgspec.MsgspecError):
            header = None
        if not isinstance(header, Header):
            raise Refused(f"{self._path} is no export of Mergeyard: name a file that `mergeyard db export` made.")
        if header.format != FORMAT or header.form != FORM:
            raise Refused(
                f"{self._path} was made by Mergeyard {header.version} in another form ({header.format}.{header.form}, "
                f"this version reads {FORMAT}.{FORM}). Use that version to import it, then update."
            )

    def read(self, table: Table) -> Iterator[Sequence[Row]]:
        """Some rows at a time, few of the large ones."""
        if self._next_mark() != TableBegins(table.name, tuple(table.columns)):
            self._refuse_damage(f"the table {table.name} is not where it belongs")
        tally, batch, size = Tally(table), list[Row](), 0
        for line, row in self._rows(table):
            tally.add(line)
            batch.append(row)
            size += len(line)
            if len(batch) == ROWS_AT_A_TIME or size >= BYTES_AT_A_TIME:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch
        self._compare(tally.count)

    def read_footer(self) -> None:
        if self._next_mark() != Footer(len(TABLES), sum(count.rows for count in self.counts)):
            self._refuse_damage("its end does not fit the rest")
        if self._read_line():
            self._refuse_damage("something follows its end")

    def _rows(self, table: Table) -> Generator[tuple[bytes, Row]]:
        decode = msgspec.json.Decoder(tuple[*(TYPES[kind] for kind in table.columns.values())]).decode
        self._go_on()
        while self._line.startswith(b"["):
            try:
                yield self._line, decode(self._line)
            except msgspec.MsgspecError as error:
                self._refuse_damage(f"a row of {table.name} cannot be read, {error}")
            self._go_on()

    def _compare(self, count: Count) -> None:
        if self._mark() != TableEnds(count.table, count.rows, count.checksum):
            self._refuse_damage(f"the rows of {count.table} are not those that were exported")
        self.counts.append(count)

    def _next_mark(self) -> Mark:
        self._go_on()
        return self._mark()

    def _mark(self) -> Mark:
        try:
            return _mark_of(self._line)
        except msgspec.MsgspecError as error:
            self._refuse_damage(str(error))

    def _go_on(self) -> None:
        self._line = self._read_line()
        if not self._line.endswith(b"\n"):
            self._refuse_damage("it ends too early")

    def _read_line(self) -> bytes:
        with told_of(self._path):
            try:
                return self._file.readline(LONGEST_LINE)
            except EOFError:
                self._refuse_damage("it ends too early")
            except (BadGzipFile, zlib.error) as error:
                self._refuse_damage(str(error))

    def _refuse_damage(self, words: str) -> NoReturn:
        raise Refused(f"{self._path} is damaged: {words}. Copy it once more from where it was made, or export again.")
