"""Only the owner can read the SQLite file; commits are written in groups, and errors have a clear message."""

import asyncio
import stat
from pathlib import Path

import apsw
import pytest

from mergeyard.adapters.store_sqlite.connection import ERROR_MESSAGES, connect, open_for_writing, to_store_error
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.ports.store import StoreUnavailable
from mergeyard.ports.writes import AppendEntries, AssertLease
from tests.contract.store.builders import QUEUE, REPO, a_decision, a_queue, a_submission, an_entry, opened
from tests.support.asynchronous import asynchronous


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data" / "mergeyard.db"


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@asynchronous
async def test_only_the_owner_can_read_the_database_files(file: Path):
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
        await store.commit(a_decision(1, a_submission(1)))
    assert list(file.parent.iterdir()) == [file]


@asynchronous
async def test_commits_that_wait_together_share_one_write_to_the_disk(file: Path):
    async with opened(SqliteStore(file)) as store:
        await store.commit(a_queue())
        before = store.group_count
        await asyncio.gather(*(store.commit(AppendEntries((an_entry(f"{at}"),))) for at in range(500)))
        assert len(await store.entries(QUEUE, 0, 1000)) == 500
        assert store.group_count - before == 1


@asynchronous
async def test_a_lease_assertion_always_succeeds_on_sqlite(file: Path):
    async with opened(SqliteStore(file)) as store:
        await store.commit(a_queue(), AssertLease("any replica", REPO, 7))
        assert (await store.load(QUEUE)).version == 0


@asynchronous
async def test_no_reader_keeps_a_snapshot_so_the_log_can_always_be_truncated(file: Path):
    async with opened(SqliteStore(file)) as store:
        await store.commit(a_queue(), a_decision(1, a_submission(1)))
        assert await store.last_submission(QUEUE, PullRequestNumber(1))
        assert await store.entries(QUEUE, 0, 1) == ()
        with pytest.raises(LookupError):
            await store.load(type(QUEUE)("none"))
        connection = connect(file)
        assert connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE) == (0, 0)
        connection.close()


@asynchronous
async def test_a_deleted_file_is_not_written_to_any_more(file: Path):
    async with opened(SqliteStore(file)) as store:
        await store.commit(a_queue())
        hidden = file.rename(file.with_suffix(".hidden"))
        with pytest.raises(StoreUnavailable, match="removed or replaced"):
            await store.commit(a_decision(1))
        with pytest.raises(StoreUnavailable, match="removed or replaced"):
            await store.check()
        hidden.rename(file)
        await store.check()
        await store.commit(a_decision(1))


@asynchronous
async def test_a_file_that_cannot_be_accessed_is_not_written_to_until_it_can(file: Path):
    async with opened(SqliteStore(file)) as store:
        await store.commit(a_queue())
        hidden = file.rename(file.with_suffix(".hidden"))
        file.symlink_to(file)
        with pytest.raises(StoreUnavailable, match="cannot be read"):
            await store.commit(a_decision(1))
        hidden.rename(file)
        await store.commit(a_decision(1))


@asynchronous
async def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(file: Path):
    file.parent.mkdir()
    file.write_bytes(b"a text file and no database     \n" * 100)
    before = file.read_bytes()
    with pytest.raises(StoreUnavailable, match="is not a database"):
        await SqliteStore(file).open()
    assert file.read_bytes() == before


@asynchronous
async def test_a_folder_in_the_place_of_the_file_is_refused(file: Path):
    file.mkdir(parents=True)
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await SqliteStore(file).open()


@asynchronous
async def test_a_file_in_the_place_of_the_folder_is_refused(file: Path):
    file.parent.write_text("a file")
    with pytest.raises(StoreUnavailable, match=r"cannot be (created|opened)"):
        await SqliteStore(file).open()


@pytest.mark.parametrize("error_type", ERROR_MESSAGES)
def test_every_error_names_the_file_and_what_to_do(error_type: type[apsw.Error], file: Path):
    message = str(to_store_error(error_type("what SQLite says"), file))
    assert str(file) in message
    assert message.endswith("(what SQLite says).")
    assert message.count(". ") == 1
