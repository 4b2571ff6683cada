"""A transfer that cannot be complete is refused with a message that says what to do."""

import errno
import gzip
from pathlib import Path

import pytest

from mergeyard.cli.db.checks import OS_ERROR_ADVICE, DatabaseCommandError, TableCount, count_tables, explain_os_errors
from mergeyard.cli.db.transfer import export_database, import_database
from mergeyard.ports.archive import SCHEMA_VERSION
from tests.contract.archive.databases import Database, fill_database, sqlite
from tests.contract.store.builders import opened
from tests.support.asynchronous import asynchronous

pytestmark = pytest.mark.long

Lines = list[bytes]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "all.jsonl"


async def counts_of(database: Database) -> tuple[TableCount, ...]:
    async with database.archive.open_reader() as reading:
        return await count_tables(reading)


async def is_empty(database: Database) -> bool:
    return all(count.rows == 0 for count in await counts_of(database))


async def exported(tmp_path: Path, file: Path) -> Lines:
    source = sqlite(tmp_path / "source")
    await fill_database(source.store())
    await export_database(file, source.archive)
    return file.read_bytes().splitlines(keepends=True)


# Damaged files


@asynchronous
async def test_a_truncated_file_leaves_the_database_empty(database: Database, tmp_path: Path, file: Path):
    lines = await exported(tmp_path, file)
    for kept in range(1, len(lines), 5):
        file.write_bytes(b"".join(lines[:kept]))
        with pytest.raises(DatabaseCommandError, match="ends too early"):
            await import_database(file, database.archive)
    assert await is_empty(database)


@asynchronous
async def test_a_truncated_compressed_file_leaves_the_database_empty(database: Database, tmp_path: Path, file: Path):
    packed = gzip.compress(b"".join(await exported(tmp_path, file)))
    for kept in (len(packed) // 2, len(packed) - 8, len(packed) - 1):
        file.write_bytes(packed[:kept])
        with pytest.raises(DatabaseCommandError, match=r"is damaged: .* Copy it again"):
            await import_database(file, database.archive)
    assert await is_empty(database)


@asynchronous
async def test_a_changed_row_in_the_file_is_detected(database: Database, tmp_path: Path, file: Path):
    lines = await exported(tmp_path, file)
    file.write_bytes(b"".join(lines).replace(b'"the token of ada"', b'"the token of eve"'))
    with pytest.raises(DatabaseCommandError, match="the rows of tokens differ from the exported ones"):
        await import_database(file, database.archive)
    assert await is_empty(database)


@asynchronous
async def test_a_missing_or_duplicate_row_in_the_file_is_detected(database: Database, tmp_path: Path, file: Path):
    lines = await exported(tmp_path, file)
    status = next(line for line in lines if b'"https://ci"' in line)
    for planted in (b"", status * 2):
        file.write_bytes(b"".join(lines).replace(status, planted))
        with pytest.raises(DatabaseCommandError, match=r"is damaged|contradicts itself"):
            await import_database(file, database.archive)
    assert await is_empty(database)


@asynchronous
async def test_content_after_the_end_of_the_export_is_detected(database: Database, tmp_path: Path, file: Path):
    lines = await exported(tmp_path, file)
    file.write_bytes(b"".join([*lines, b"\n"]))
    with pytest.raises(DatabaseCommandError, match="data follows its footer"):
        await import_database(file, database.archive)
    assert await is_empty(database)


# Well-formed but inconsistent files


CONTRADICTIONS = {
    "rows without their queue": "DELETE FROM queues WHERE id = 'q2'",
    "two queues of one branch": "DROP INDEX queues_live; UPDATE queues SET target_branch = 'main' WHERE id = 'q2'",
}


@pytest.mark.parametrize("statements", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
@asynchronous
async def test_a_file_that_contradicts_itself_is_refused(
    statements: str, database: Database, tmp_path: Path, file: Path
):
    source = sqlite(tmp_path / "source")
    await fill_database(source.store())
    await source.execute(statements)
    await export_database(file, source.archive)
    with pytest.raises(DatabaseCommandError, match="contradicts itself, so nothing was imported"):
        await import_database(file, database.archive)
    assert await is_empty(database)


@pytest.mark.parametrize(
    "planted",
    [b"[1,2]", b'["q9",1,"a","b","c",1,1,null]', b'["q9","h","o","n","b",9223372036854775808,1,null]', b'["\\ud800"'],
    ids=["too short", "another type", "too large", "no text"],
)
@asynchronous
async def test_a_row_that_no_table_can_hold_is_refused(planted: bytes, database: Database, tmp_path: Path, file: Path):
    lines = await exported(tmp_path, file)
    file.write_bytes(b"".join([*lines[:2], planted + b"\n", *lines[2:]]))
    with pytest.raises(DatabaseCommandError, match="a row of queues cannot be read"):
        await import_database(file, database.archive)
    assert await is_empty(database)


@pytest.mark.parametrize("content", [b"", b"{}\n", b"[]\n", b"\x1f\x8b and so on", b"SQLite format 3\0", b"\xff" * 99])
@asynchronous
async def test_a_file_that_is_no_export_is_refused(content: bytes, embedded: Database, file: Path):
    file.write_bytes(content)
    with pytest.raises(DatabaseCommandError, match="is not a Mergeyard export"):
        await import_database(file, embedded.archive)
    assert await embedded.archive.schema_version() == 0


@asynchronous
async def test_a_file_in_another_format_is_refused_with_the_version_that_wrote_it(embedded: Database, file: Path):
    for fields in (b'"format":1,"schema_version":2', b'"format":2,"schema_version":1'):
        file.write_bytes(b'{"line":"mergeyard export",%s,"created_at":"","version":"7.0"}\n' % fields)
        with pytest.raises(DatabaseCommandError, match=r"exported by Mergeyard 7\.0 in another format"):
            await import_database(file, embedded.archive)
    assert await embedded.archive.schema_version() == 0


# Rows that the database changes

LOSSY = {
    "sqlite": [
        "CREATE TRIGGER lossy AFTER INSERT ON tokens BEGIN UPDATE tokens SET name = 'eve' WHERE id = NEW.id; END",
    ],
    "postgres": [
        "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.name = ''eve''; RETURN NEW; END'",
        "CREATE TRIGGER lossy BEFORE INSERT ON tokens FOR EACH ROW EXECUTE FUNCTION lose()",
    ],
}


@asynchronous
async def test_an_import_is_rolled_back_if_the_stored_rows_differ(database: Database, tmp_path: Path, file: Path):
    await exported(tmp_path, file)
    await database.archive.migrate()
    for statement in LOSSY[database.kind]:
        await database.execute(statement)
    with pytest.raises(DatabaseCommandError, match=r"The imported rows differ .* nothing was imported \(tokens\)"):
        await import_database(file, database.archive)
    assert await is_empty(database)


# Unsuitable databases


@asynchronous
async def test_only_an_empty_database_is_filled(database: Database, tmp_path: Path, file: Path):
    await exported(tmp_path, file)
    await fill_database(database.store())
    before = await counts_of(database)
    with pytest.raises(
        DatabaseCommandError, match=r"is not empty and idle \(queues: 4, .*tokens: 2, .*deliveries: 2\)"
    ):
        await import_database(file, database.archive)
    assert await counts_of(database) == before


@asynchronous
async def test_a_database_with_active_replicas_is_not_filled(shared: Database, tmp_path: Path, file: Path):
    await exported(tmp_path, file)
    async with opened(shared.store()):
        await shared.execute(
            "INSERT INTO replicas VALUES ('here', now() + '1 minute'), ('gone', now() - '1 minute'::interval)"
        )
    with pytest.raises(DatabaseCommandError, match=r"is not empty and idle \(running replicas: 1\)"):
        await import_database(file, shared.archive)


@asynchronous
async def test_a_database_of_a_newer_version_is_neither_exported_nor_filled(
    database: Database, tmp_path: Path, file: Path
):
    await exported(tmp_path, file)
    await database.archive.migrate()
    await database.execute(f"INSERT INTO migrations VALUES ({SCHEMA_VERSION + 1}, 'from_the_future')")
    with pytest.raises(DatabaseCommandError, match="written by a newer version of Mergeyard"):
        await import_database(file, database.archive)
    with pytest.raises(DatabaseCommandError, match="written by a newer version of Mergeyard"):
        await export_database(tmp_path / "more.jsonl", database.archive)
    assert not (tmp_path / "more.jsonl").exists()


@asynchronous
async def test_an_export_without_a_database_is_refused(database: Database, file: Path):
    with pytest.raises(DatabaseCommandError, match="contains no Mergeyard database"):
        await export_database(file, database.archive)
    assert not file.exists()
    assert await database.archive.schema_version() == 0


# Messages


@pytest.mark.parametrize("number", OS_ERROR_ADVICE)
def test_every_file_error_names_the_file_and_what_to_do(number: int):
    with pytest.raises(DatabaseCommandError) as refused, explain_os_errors(Path("there.jsonl")):
        raise OSError(number, "what the system says")
    assert "there.jsonl" in str(refused.value)
    assert str(refused.value).endswith("(what the system says).")


def test_a_lost_connection_is_not_reported_as_a_file_error():
    with pytest.raises(ConnectionResetError), explain_os_errors(Path("there.jsonl")):
        raise ConnectionResetError(errno.ECONNRESET, "gone")
