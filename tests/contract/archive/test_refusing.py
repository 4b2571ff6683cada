"""What cannot be moved whole is not moved at all, and the words say what to do."""

import errno
import gzip
from pathlib import Path

import pytest

from mergeyard.cli.db.exporting import export_to
from mergeyard.cli.db.importing import import_from
from mergeyard.cli.db.refusing import ADVICE, Refused, told_of
from mergeyard.cli.db.tally import Count, count_all
from mergeyard.ports.archive import FORM
from tests.contract.archive.holding import hold_everything
from tests.contract.archive.places import Place, sqlite
from tests.contract.store.given import opened
from tests.support.asynchronous import asynchronous

Lines = list[bytes]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "all.jsonl"


async def counts_of(place: Place) -> tuple[Count, ...]:
    async with place.archive.reading() as reading:
        return await count_all(reading)


async def holds_nothing(place: Place) -> bool:
    return all(count.rows == 0 for count in await counts_of(place))


async def exported(tmp_path: Path, file: Path) -> Lines:
    source = sqlite(tmp_path / "source")
    await hold_everything(source.store())
    await export_to(file, source.archive)
    return file.read_bytes().splitlines(keepends=True)


# Damaged on the way


@asynchronous
async def test_a_file_that_was_cut_off_anywhere_leaves_the_database_empty(place: Place, tmp_path: Path, file: Path):
    lines = await exported(tmp_path, file)
    for kept in range(1, len(lines), 5):
        file.write_bytes(b"".join(lines[:kept]))
        with pytest.raises(Refused, match="ends too early"):
            await import_from(file, place.archive)
    assert await holds_nothing(place)


@asynchronous
async def test_a_packed_file_that_was_cut_off_leaves_the_database_empty(place: Place, tmp_path: Path, file: Path):
    packed = gzip.compress(b"".join(await exported(tmp_path, file)))
    for kept in (len(packed) // 2, len(packed) - 8, len(packed) - 1):
        file.write_bytes(packed[:kept])
        with pytest.raises(Refused, match=r"is damaged: .* Copy it once more"):
            await import_from(file, place.archive)
    assert await holds_nothing(place)


@asynchronous
async def test_a_row_that_was_changed_on_the_way_is_noticed(place: Place, tmp_path: Path, file: Path):
    lines = await exported(tmp_path, file)
    file.write_bytes(b"".join(lines).replace(b'"the token of ada"', b'"the token of eve"'))
    with pytest.raises(Refused, match="the rows of tokens are not those that were exported"):
        await import_from(file, place.archive)
    assert await holds_nothing(place)


@asynchronous
async def test_a_row_that_is_missing_or_comes_twice_is_noticed(place: Place, tmp_path: Path, file: Path):
    lines = await exported(tmp_path, file)
    status = next(line for line in lines if b'"https://ci"' in line)
    for planted in (b"", status * 2):
        file.write_bytes(b"".join(lines).replace(status, planted))
        with pytest.raises(Refused, match=r"is damaged|contradicts itself"):
            await import_from(file, place.archive)
    assert await holds_nothing(place)


@asynchronous
async def test_what_follows_the_end_is_noticed(place: Place, tmp_path: Path, file: Path):
    lines = await exported(tmp_path, file)
    file.write_bytes(b"".join([*lines, b"\n"]))
    with pytest.raises(Refused, match="something follows its end"):
        await import_from(file, place.archive)
    assert await holds_nothing(place)


# Well-formed, but wrong


CONTRADICTIONS = {
    "rows without their queue": "DELETE FROM queues WHERE id = 'q2'",
    "two queues of one branch": "DROP INDEX queues_live; UPDATE queues SET branch = 'main' WHERE id = 'q2'",
}


@pytest.mark.parametrize("statements", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
@asynchronous
async def test_a_file_that_contradicts_itself_is_refused(statements: str, place: Place, tmp_path: Path, file: Path):
    source = sqlite(tmp_path / "source")
    await hold_everything(source.store())
    await source.ask(statements)
    await export_to(file, source.archive)
    with pytest.raises(Refused, match="contradicts itself, so nothing was imported"):
        await import_from(file, place.archive)
    assert await holds_nothing(place)


@pytest.mark.parametrize(
    "planted",
    [b"[1,2]", b'["q9",1,"a","b","c",1,1,null]', b'["q9","h","o","n","b",9223372036854775808,1,null]', b'["\\ud800"'],
    ids=["too short", "another type", "too large", "no text"],
)
@asynchronous
async def test_a_row_that_no_table_can_hold_is_refused(planted: bytes, place: Place, tmp_path: Path, file: Path):
    lines = await exported(tmp_path, file)
    file.write_bytes(b"".join([*lines[:2], planted + b"\n", *lines[2:]]))
    with pytest.raises(Refused, match="a row of queues cannot be read"):
        await import_from(file, place.archive)
    assert await holds_nothing(place)


@pytest.mark.parametrize("content", [b"", b"{}\n", b"[]\n", b"\x1f\x8b and so on", b"SQLite format 3\0", b"\xff" * 99])
@asynchronous
async def test_a_file_that_is_no_export_is_named_so(content: bytes, embedded: Place, file: Path):
    file.write_bytes(content)
    with pytest.raises(Refused, match="is no export of Mergeyard"):
        await import_from(file, embedded.archive)
    assert await embedded.archive.form() == 0


@asynchronous
async def test_a_file_of_another_form_is_refused_with_the_version_that_made_it(embedded: Place, file: Path):
    for said in (b'"format":1,"form":1', b'"format":2,"form":2'):
        file.write_bytes(b'{"line":"mergeyard export",%s,"made":"","version":"7.0"}\n' % said)
        with pytest.raises(Refused, match=r"made by Mergeyard 7\.0 in another form"):
            await import_from(file, embedded.archive)
    assert await embedded.archive.form() == 0


# Changed by the database itself

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
async def test_what_does_not_arrive_as_it_was_sent_is_taken_back(place: Place, tmp_path: Path, file: Path):
    await exported(tmp_path, file)
    await place.archive.migrate()
    for statement in LOSSY[place.kind]:
        await place.ask(statement)
    with pytest.raises(Refused, match=r"Not everything arrived .* nothing was imported \(tokens\)"):
        await import_from(file, place.archive)
    assert await holds_nothing(place)


# Places that are not fit


@asynchronous
async def test_only_an_empty_database_is_filled(place: Place, tmp_path: Path, file: Path):
    await exported(tmp_path, file)
    await hold_everything(place.store())
    before = await counts_of(place)
    with pytest.raises(Refused, match=r"is not empty and idle \(queues: 4, .*tokens: 2, .*deliveries: 2\)"):
        await import_from(file, place.archive)
    assert await counts_of(place) == before


@asynchronous
async def test_a_database_that_replicas_work_on_is_not_filled(shared: Place, tmp_path: Path, file: Path):
    await exported(tmp_path, file)
    async with opened(shared.store()):
        await shared.ask(
            "INSERT INTO replicas VALUES ('here', now() + '1 minute'), ('gone', now() - '1 minute'::interval)"
        )
    with pytest.raises(Refused, match=r"is not empty and idle \(replicas at work: 1\)"):
        await import_from(file, shared.archive)


@asynchronous
async def test_a_database_of_a_newer_version_is_neither_exported_nor_filled(place: Place, tmp_path: Path, file: Path):
    await exported(tmp_path, file)
    await place.archive.migrate()
    await place.ask(f"INSERT INTO migrations VALUES ({FORM + 1}, 'from_the_future')")
    with pytest.raises(Refused, match="written by a newer version of Mergeyard"):
        await import_from(file, place.archive)
    with pytest.raises(Refused, match="written by a newer version of Mergeyard"):
        await export_to(tmp_path / "more.jsonl", place.archive)
    assert not (tmp_path / "more.jsonl").exists()


@asynchronous
async def test_where_nothing_is_nothing_is_exported(place: Place, file: Path):
    with pytest.raises(Refused, match="holds nothing of Mergeyard yet"):
        await export_to(file, place.archive)
    assert not file.exists()
    assert await place.archive.form() == 0


# Words


@pytest.mark.parametrize("number", ADVICE)
def test_every_trouble_with_a_file_names_it_and_says_what_to_do(number: int):
    with pytest.raises(Refused) as refused, told_of(Path("there.jsonl")):
        raise OSError(number, "what the system says")
    assert "there.jsonl" in str(refused.value)
    assert str(refused.value).endswith("(what the system says).")


def test_a_lost_connection_is_no_trouble_of_the_file():
    with pytest.raises(ConnectionResetError), told_of(Path("there.jsonl")):
        raise ConnectionResetError(errno.ECONNRESET, "gone")
