"""The SQLite file is ours alone, is written in groups, and says in words what is wrong with it."""

import asyncio
import stat
from pathlib import Path

import apsw
import pytest

from mergeyard.adapters.store_sqlite.connecting import connect, open_for_writing
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.adapters.store_sqlite.trouble import ADVICE, in_words
from mergeyard.domain.ids import PrNumber
from mergeyard.ports.store import StoreTrouble
from mergeyard.ports.writes import AppendEntries, ProveDuty
from tests.contract.store.given import QUEUE, REPO, a_queue, a_stay, a_turn, an_entry, opened
from tests.support.asynchronous import asynchronous


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data" / "mergeyard.db"


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@asynchronous
async def test_nobody_else_may_read_what_we_keep(file: Path):
    async with opened(SqliteStore(file)) as store:
        await store.commit(a_queue())
        assert permissions(file.parent) == 0o700
        assert {permissions(kept) for kept in file.parent.iterdir()} == {0o600}
        assert len(list(file.parent.iterdir())) == 3


def test_every_commit_waits_for_the_disk(file: Path):
    connection = open_for_writing(file)
    assert (connection.pragma("journal_mode"), connection.pragma("synchronous")) == ("wal", 2)
    connection.close()


@asynchronous
async def test_closing_leaves_one_whole_file(file: Path):
    async with opened(SqliteStore(file)) as store:
        await store.commit(a_queue())
        await store.commit(a_turn(1, a_stay(1)))
    assert list(file.parent.iterdir()) == [file]


@asynchronous
async def test_commits_that_wait_for_each_other_share_one_write_to_the_disk(file: Path):
    async with opened(SqliteStore(file)) as store:
        await store.commit(a_queue())
        before = store.groups
        await asyncio.gather(*(store.commit(AppendEntries((an_entry(f"{at}"),))) for at in range(500)))
        assert len(await store.entries(QUEUE, 0, 1000)) == 500
        assert store.groups - before == 1


@asynchronous
async def test_whoever_writes_to_the_file_is_always_on_duty(file: Path):
    async with opened(SqliteStore(file)) as store:
        await store.commit(a_queue(), ProveDuty("anybody", REPO, 7))
        assert (await store.load(QUEUE)).version == 0


@asynchronous
async def test_no_reader_holds_on_to_a_moment_so_the_log_can_always_be_emptied(file: Path):
    async with opened(SqliteStore(file)) as store:
        await store.commit(a_queue(), a_turn(1, a_stay(1)))
        assert await store.last_stay(QUEUE, PrNumber(1))
        assert await store.entries(QUEUE, 0, 1) == ()
        with pytest.raises(LookupError):
            await store.load(type(QUEUE)("none"))
        connection = connect(file)
        assert connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE) == (0, 0)
        connection.close()


@asynchronous
async def test_a_file_that_vanished_is_not_written_to_any_more(file: Path):
    async with opened(SqliteStore(file)) as store:
        await store.commit(a_queue())
        hidden = file.rename(file.with_suffix(".hidden"))
        with pytest.raises(StoreTrouble, match="removed or replaced"):
            await store.commit(a_turn(1))
        with pytest.raises(StoreTrouble, match="removed or replaced"):
            await store.check()
        hidden.rename(file)
        await store.check()
        await store.commit(a_turn(1))


@asynchronous
async def test_a_file_that_cannot_be_looked_at_is_not_written_to_until_it_can(file: Path):
    async with opened(SqliteStore(file)) as store:
        await store.commit(a_queue())
        hidden = file.rename(file.with_suffix(".hidden"))
        file.symlink_to(file)
        with pytest.raises(StoreTrouble, match="cannot be looked at"):
            await store.commit(a_turn(1))
        hidden.rename(file)
        await store.commit(a_turn(1))


@asynchronous
async def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(file: Path):
    file.parent.mkdir()
    file.write_bytes(b"somebody's diary, and nothing else\n" * 100)
    before = file.read_bytes()
    with pytest.raises(StoreTrouble, match="is no database"):
        await SqliteStore(file).open()
    assert file.read_bytes() == before


@asynchronous
async def test_a_folder_in_the_place_of_the_file_is_refused(file: Path):
    file.mkdir(parents=True)
    with pytest.raises(StoreTrouble, match="cannot be opened"):
        await SqliteStore(file).open()


@asynchronous
async def test_a_file_in_the_place_of_the_folder_is_refused(file: Path):
    file.parent.write_text("a file")
    with pytest.raises(StoreTrouble, match=r"cannot be (made|opened)"):
        await SqliteStore(file).open()


@pytest.mark.parametrize("trouble", ADVICE)
def test_every_trouble_names_the_file_and_says_what_to_do(trouble: type[apsw.Error], file: Path):
    words = str(in_words(trouble("what SQLite says"), file))
    assert str(file) in words
    assert words.endswith("(what SQLite says).")
    assert words.count(". ") == 1
