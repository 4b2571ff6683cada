"""A SQLite file survives a killed process, a full disk, and a second process that writes to it."""

import asyncio
import random
import subprocess
import sys
from asyncio.subprocess import Process
from pathlib import Path
from subprocess import PIPE

import pytest

from mergeyard.adapters.store_sqlite.connection import connect
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.ids import QueueId, QueueKey, SubmissionId
from mergeyard.ports.writes import AppendEntries
from tests.contract.store.builders import REPO, a_decision, a_queue, a_submission, an_entry, digest_of, opened
from tests.support.asynchronous import asynchronous

ROOT = Path(__file__).parents[3]
CHILD = [sys.executable, "-m", "tests.contract.store.sqlite_child"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mergeyard.db"


async def a_child(*arguments: object) -> Process:
    return await asyncio.create_subprocess_exec(*CHILD, *map(str, arguments), cwd=ROOT, stdout=PIPE)


async def lines_of(child: Process) -> list[str]:
    assert child.stdout is not None
    return (await child.stdout.read()).decode().splitlines()


def assert_sound(file: Path) -> None:
    connection = connect(file)
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


@pytest.mark.long
@asynchronous
async def test_commits_confirmed_before_a_kill_are_stored(file: Path):
    chance, promised = random.Random(), list[str]()
    for _ in range(5):
        child = await a_child("commit-numbers", file)
        assert child.stdout is not None
        promised += [(await child.stdout.readline()).decode().strip() for _ in range(chance.randint(1, 300))]
        child.kill()
        promised += await lines_of(child)
        await child.wait()
        async with opened(SqliteStore(file)) as store:
            for promise in promised:
                queue, submission_id = promise.split()
                assert await store.submission(
                    QueueId(queue), SubmissionId(int(submission_id))
                ) == b"submission %d" % int(submission_id)
            queues = {QueueId(promise.split()[0]) for promise in promised}
            stored = {entry.body.decode() for queue in queues for entry in await store.entries(queue, 0, 100_000)}
            assert stored >= set(promised)
    assert_sound(file)


@asynchronous
async def test_a_second_process_creates_tokens_while_the_first_commits_decisions(file: Path):
    async with opened(SqliteStore(file)) as store:
        done = asyncio.Event()
        queues = [QueueId(f"q{count}") for count in range(8)]
        await store.commit(*(a_queue(queue, key=QueueKey(REPO, queue)) for queue in queues))

        async def commit_decisions(queue: QueueId) -> int:
            version = 0
            while not done.is_set():
                version += 1
                entry = AppendEntries((an_entry("decision", queue=queue),))
                await store.commit(a_decision(version, a_submission(version), queue=queue), entry)
            return version

        tasks = [asyncio.create_task(commit_decisions(queue)) for queue in queues]
        child = await a_child("make-tokens", file, 50)
        assert child.stdout is not None
        made = 0
        while line := (await child.stdout.readline()).decode().strip():
            assert await store.token(digest_of(line)) is not None
            made += 1
        done.set()
        versions = [await task for task in tasks]
        assert (made, await child.wait()) == (50, 0)
        assert [(await store.load(queue)).version for queue in queues] == versions
        assert [len(await store.entries(queue, 0, 1_000_000)) for queue in queues] == versions
    assert_sound(file)


@asynchronous
async def test_processes_that_open_a_new_file_at_once_agree_on_it(file: Path):
    children = [await a_child("make-tokens", file, 5) for _ in range(4)]
    made = [line for child in children for line in await lines_of(child)]
    assert [await child.wait() for child in children] == [0] * 4
    async with opened(SqliteStore(file)) as store:
        assert {token.id for token in await store.tokens()} == set(made)
    assert len(made) == 20
    assert_sound(file)


def test_a_full_disk_fails_the_whole_group_and_nothing_is_written(file: Path):
    child = subprocess.run([*CHILD, "fill-the-disk", file], cwd=ROOT, stdout=PIPE, text=True, check=True)
    assert child.stdout.splitlines() == [*["StoreUnavailable"] * 4, "[]", "[0, 1, 2, 3]"]
    assert_sound(file)
