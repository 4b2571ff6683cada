"""Export, import, backup and restore of a whole database."""

import gzip
import io
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from gzip import BadGzipFile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, NoReturn, cast

import msgspec
from msgspec import Meta, Struct

from mergeyard import __version__
from mergeyard.cli.db import checks
from mergeyard.ports import archive as archive_port

if TYPE_CHECKING:
    from mergeyard.settings import Settings

EXPORT_FORMAT = 1
GZIP_SUFFIX = ".gz"
GZIP_MAGIC = b"\x1f\x8b"
GZIP_LEVEL = 6
"""Higher levels compress hardly better and take much longer."""


class ExportHeader(Struct, frozen=True, kw_only=True, tag="mergeyard export", tag_field="line"):
    format: int
    schema_version: int
    """Of the exported database."""
    created_at: str
    version: str
    """Of Mergeyard."""


class TableHeader(Struct, frozen=True, tag="table", tag_field="line"):
    table: str
    columns: tuple[str, ...]


class TableFooter(Struct, frozen=True, tag="end of table", tag_field="line"):
    table: str
    rows: int
    checksum: str


class ExportFooter(Struct, frozen=True, tag="end of export", tag_field="line"):
    tables: int
    rows: int


Marker = ExportHeader | TableHeader | TableFooter | ExportFooter


@contextmanager
def open_for_writing(path: Path, name: str) -> Generator[IO[bytes]]:
    """`name` determines whether the file is compressed."""
    with path.open("wb") as file:
        if not name.endswith(GZIP_SUFFIX):
            yield file
            return
        compressed = gzip.GzipFile(name, "wb", GZIP_LEVEL, file)
        with io.BufferedWriter(cast(io.RawIOBase, compressed)) as lines:
            yield lines


@contextmanager
def open_for_reading(path: Path) -> Generator[IO[bytes]]:
    """The first bytes determine whether the file is compressed."""
    with path.open("rb") as file:
        if not file.peek(2).startswith(GZIP_MAGIC):
            yield file
            return
        with gzip.GzipFile(fileobj=file) as compressed:
            yield cast(IO[bytes], compressed)


async def export_database(path: Path, archive: archive_port.Archive) -> Sequence[checks.TableCount]:
    checks.require_current_schema(await archive.schema_version(), archive.location)
    async with archive.open_reader() as reading:
        with checks.write_atomically(path) as temporary, open_for_writing(temporary, path.name) as file:
            return await _write_tables(reading, file)


async def _write_tables(reading: archive_port.ArchiveReader, file: IO[bytes]) -> Sequence[checks.TableCount]:
    created_at = datetime.now(UTC).isoformat(timespec="seconds")
    _write_marker(
        file,
        ExportHeader(
            format=EXPORT_FORMAT, schema_version=archive_port.SCHEMA_VERSION, created_at=created_at, version=__version__
        ),
    )
    counts = [await _write_table(reading, table, file) for table in archive_port.TABLES]
    _write_marker(file, ExportFooter(len(counts), sum(count.rows for count in counts)))
    return counts


async def _write_table(
    reading: archive_port.ArchiveReader, table: archive_port.Table, file: IO[bytes]
) -> checks.TableCount:
    _write_marker(file, TableHeader(table.name, tuple(table.columns)))
    counter = checks.TableCounter(table)
    async for row in reading.rows(table):
        line = checks.encode_row(row)
        file.write(line)
        counter.add(line)
    count = counter.count
    _write_marker(file, TableFooter(count.table, count.rows, count.checksum))
    return count


def _write_marker(file: IO[bytes], marker: Marker) -> None:
    file.write(msgspec.json.encode(marker) + b"\n")


MAX_LINE_BYTES = 512 * 1024 * 1024
"""A row contains at most one upload, 20 MiB, in base64."""
MAX_ROWS_PER_BATCH = 500
MAX_BYTES_PER_BATCH = 4 * 1024 * 1024

INT64: Any = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
TYPE_BY_COLUMN: dict[archive_port.ColumnType, Any] = {
    archive_port.ColumnType.TEXT: str,
    archive_port.ColumnType.NULLABLE_TEXT: str | None,
    archive_port.ColumnType.NUMBER: INT64,
    archive_port.ColumnType.NULLABLE_NUMBER: INT64 | None,
    archive_port.ColumnType.FLAG: bool,
    archive_port.ColumnType.BYTES: bytes,
}

_decode_marker = msgspec.json.Decoder(Marker).decode


class ExportReader:
    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._line = b""
        self.counts: list[checks.TableCount] = []
        """Of the tables that were read completely."""

    def read_header(self) -> None:
        """An unreadable first line means that the file is not an export; later it means that the export is damaged."""
        try:
            self._advance()
            header = _decode_marker(self._line)
        except (checks.DatabaseCommandError, msgspec.MsgspecError):
            header = None
        if not isinstance(header, ExportHeader):
            raise checks.DatabaseCommandError(
                f"{self._path} is not a Mergeyard export: choose a file that `mergeyard db export` wrote."
            )
        if header.format != EXPORT_FORMAT or header.schema_version != archive_port.SCHEMA_VERSION:
            raise checks.DatabaseCommandError(
                f"{self._path} was exported by Mergeyard {header.version} in another format "
                f"({header.format}.{header.schema_version}, this version reads "
                f"{EXPORT_FORMAT}.{archive_port.SCHEMA_VERSION}). Use that version to import it, then update."
            )

    def read_table(self, table: archive_port.Table) -> Iterator[Sequence[archive_port.Row]]:
        """Yields batches of rows, limited in rows and bytes."""
        if self._read_marker() != TableHeader(table.name, tuple(table.columns)):
            self._refuse_damage(f"the table {table.name} is missing or out of order")
        counter, batch, size = checks.TableCounter(table), list[archive_port.Row](), 0
        for line, row in self._rows(table):
            counter.add(line)
            batch.append(row)
            size += len(line)
            if len(batch) == MAX_ROWS_PER_BATCH or size >= MAX_BYTES_PER_BATCH:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch
        self._verify(counter.count)

    def read_footer(self) -> None:
        if self._read_marker() != ExportFooter(len(archive_port.TABLES), sum(count.rows for count in self.counts)):
            self._refuse_damage("its footer does not match its tables")
        if self._read_line():
            self._refuse_damage("data follows its footer")

    def _rows(self, table: archive_port.Table) -> Generator[tuple[bytes, archive_port.Row]]:
        decode = msgspec.json.Decoder(tuple[*(TYPE_BY_COLUMN[kind] for kind in table.columns.values())]).decode
        self._advance()
        while self._line.startswith(b"["):
            try:
                yield self._line, decode(self._line)
            except msgspec.MsgspecError as error:
                self._refuse_damage(f"a row of {table.name} cannot be read, {error}")
            self._advance()

    def _verify(self, count: checks.TableCount) -> None:
        if self._parse_marker() != TableFooter(count.table, count.rows, count.checksum):
            self._refuse_damage(f"the rows of {count.table} differ from the exported ones")
        self.counts.append(count)

    def _read_marker(self) -> Marker:
        self._advance()
        return self._parse_marker()

    def _parse_marker(self) -> Marker:
        try:
            return _decode_marker(self._line)
        except msgspec.MsgspecError as error:
            self._refuse_damage(str(error))

    def _advance(self) -> None:
        self._line = self._read_line()
        if not self._line.endswith(b"\n"):
            self._refuse_damage("it ends too early")

    def _read_line(self) -> bytes:
        with checks.explain_os_errors(self._path):
            try:
                return self._file.readline(MAX_LINE_BYTES)
            except EOFError:
                self._refuse_damage("it ends too early")
            except (BadGzipFile, zlib.error) as error:
                self._refuse_damage(str(error))

    def _refuse_damage(self, detail: str) -> NoReturn:
        raise checks.DatabaseCommandError(
            f"{self._path} is damaged: {detail}. Copy it again from its source, or export again."
        )


async def import_database(path: Path, archive: archive_port.Archive) -> Sequence[checks.TableCount]:
    with checks.explain_os_errors(path), open_for_reading(path) as file:
        reader = ExportReader(path, file)
        reader.read_header()
        if await archive.schema_version() == 0:
            await archive.migrate()
        checks.require_current_schema(await archive.schema_version(), archive.location)
        async with archive.open_writer() as writer:
            await _require_empty(writer, archive.location)
            await _import_tables(writer, reader, path)
            return await _verify_import(writer, reader.counts)


async def _require_empty(writer: archive_port.ArchiveWriter, location: str) -> None:
    if blockers := await writer.find_blockers():
        raise checks.DatabaseCommandError(
            f"{location} is not empty and idle ({', '.join(blockers)}), and was not changed. "
            "Import into an empty database that no server uses."
        )


async def _import_tables(writer: archive_port.ArchiveWriter, reader: ExportReader, path: Path) -> None:
    try:
        for table in archive_port.TABLES:
            for rows in reader.read_table(table):
                await writer.put(table, rows)
    except archive_port.ArchiveError as error:
        raise checks.DatabaseCommandError(
            f"{path} contradicts itself, so nothing was imported ({error}). Export again."
        ) from error
    reader.read_footer()
    await writer.finish()


async def _verify_import(
    writer: archive_port.ArchiveWriter, exported: Sequence[checks.TableCount]
) -> Sequence[checks.TableCount]:
    """Counts as read back from the database."""
    imported = await checks.count_tables(writer)
    different = [count.table for count, expected in zip(imported, exported, strict=True) if count != expected]
    if different:
        raise checks.DatabaseCommandError(
            f"The imported rows differ from the exported ones, so nothing was imported ({', '.join(different)}). "
            "Keep the file and report this as a bug."
        )
    return imported


def back_up_database(settings: "Settings", path: Path) -> None:
    """Works whether or not a server is running."""
    from mergeyard.adapters.store_sqlite.archive import copy_database

    database = _require_embedded(settings, "pg_dump")
    if not database.exists():
        raise checks.DatabaseCommandError(
            f"There is no database at {database}: choose another one with --data-dir or --database-url."
        )
    with checks.write_atomically(path) as temporary:
        copy_database(database, temporary)


def restore_backup(settings: "Settings", path: Path) -> Path | None:
    """Returns the path under which the previous database is kept, if there was one."""
    from mergeyard.adapters.store_sqlite.archive import copy_database

    database = _require_embedded(settings, "pg_restore")
    with checks.explain_os_errors(path):
        path.open("rb").close()
    with checks.exclude_server(settings.data_dir), checks.explain_os_errors(database):
        database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with checks.write_atomically(database) as temporary:
            copy_database(path, temporary)
            return _keep_previous(database) if database.exists() else None


def refuse_existing_database(settings: "Settings") -> None:
    if settings.database_path.exists():
        raise checks.DatabaseCommandError(
            f"The database {settings.database_path} already exists: use --force to keep it under another name and "
            "restore the backup in its place."
        )


def _require_embedded(settings: "Settings", tool: str) -> Path:
    if settings.database_server_url is not None:
        raise checks.DatabaseCommandError(
            f"This command works only with a SQLite database. Use {tool} for PostgreSQL, "
            "or `mergeyard db export` and `mergeyard db import`."
        )
    return settings.database_path


def _keep_previous(database: Path) -> Path:
    """Hard link: the database has two names until the backup replaces the first, so that a crash never leaves none."""
    from mergeyard.adapters.store_sqlite.archive import merge_wal_into_file

    merge_wal_into_file(database)
    previous = database.with_name(f"{database.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    previous.hardlink_to(database)
    return previous
