"""Every form that a database ever had can be brought to the present one, with all that is in it."""

from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from mergeyard.adapters.store_sqlite.connecting import connect, open_for_writing
from mergeyard.adapters.store_sqlite.migrating import MIGRATIONS, Migration, apply, form
from mergeyard.adapters.store_sqlite.sql import SQL
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.ids import PrNumber, QueueId, RunId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.sessions import Session
from mergeyard.domain.states import PrState
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.domain.tokens import Scope, Token
from mergeyard.ports.store import AuditPage, Figure, Page, StoredQueue, StoreTrouble
from mergeyard.ports.writes import Answer, AppendEntries, BeginTelling, Fact, WebhookRow
from tests.contract.store.given import an_entry, opened
from tests.support.asynchronous import asynchronous

FOLDER = Path(__file__).parent
POPULATED = sorted(FOLDER.glob("populated_*.sql"))
REPO = Repo("git.local", "acme", "app")
QUEUE = QueueId("q1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mergeyard.db"


def number_of(populated: Path) -> int:
    return int(populated.stem.removeprefix("populated_"))


def suite_of(populated: Path) -> str:
    """Form 1 did not know of suites."""
    return "nightly" if number_of(populated) > 1 else ""


def use_of(populated: Path) -> dict[str, Any]:
    """The last use of the token; forms before 5 did not record it."""
    return {"last_used_at": Instant(319), "last_used_from": "192.0.2.7"} if number_of(populated) > 4 else {}


def a_database_of(populated: Path, file: Path) -> None:
    """As a version of Mergeyard that knew only so many forms would have left it."""
    file.touch()
    connection = connect(file)
    connection.execute(SQL["make_list_of_migrations"])
    for migration in MIGRATIONS[: number_of(populated)]:
        apply(connection, migration)
    connection.execute(populated.read_text())
    connection.close()


def test_migrations_are_numbered_from_one_without_a_gap():
    assert [migration.number for migration in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


def test_every_form_has_a_populated_database_to_try():
    assert [number_of(populated) for populated in POPULATED] == [migration.number for migration in MIGRATIONS]


def test_an_empty_database_is_brought_to_the_present_form(file: Path):
    connection = open_for_writing(file)
    assert form(connection) == MIGRATIONS[-1].number
    connection.close()


@pytest.mark.parametrize("populated", POPULATED, ids=lambda path: path.stem)
def test_a_populated_database_keeps_its_references(populated: Path, file: Path):
    a_database_of(populated, file)
    connection = open_for_writing(file)
    assert form(connection) == MIGRATIONS[-1].number
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


@pytest.mark.parametrize("populated", POPULATED, ids=lambda path: path.stem)
@asynchronous
async def test_a_populated_database_keeps_its_queue(populated: Path, file: Path):
    a_database_of(populated, file)
    async with opened(SqliteStore(file)) as store:
        assert await store.queues() == (StoredQueue(QUEUE, QueueKey(REPO, "main"), 7),)
        loaded = await store.load(QUEUE)
        assert loaded.facts == (Fact("batch", "1", b"{}"), Fact("queue", "", b"{}"))
        assert (loaded.version, loaded.stays, loaded.runs) == (7, (b"stay 2",), (b"run 2",))
        assert await store.stays(QUEUE, Page(take=9, state=PrState.FAILED)) == (b"stay 1",)
        assert await store.last_stay(QueueId("q0"), PrNumber(5)) == b"old stay"
        (run,) = await store.decided_runs(QUEUE, Instant(300), Instant(400), 9)
        assert run.body == b"run 1"
        assert await store.run(QUEUE, RunId("r1")) == b"run 1"


@pytest.mark.parametrize("populated", POPULATED, ids=lambda path: path.stem)
@asynchronous
async def test_a_populated_database_keeps_what_was_told_and_reported(populated: Path, file: Path):
    a_database_of(populated, file)
    async with opened(SqliteStore(file)) as store:
        assert [entry.body for entry in await store.entries(QUEUE, 0, 9)] == [b"one", b"two", b"three"]
        assert [entry.body for entry in await store.timeline(QUEUE, Ticket(1), 9)] == [b"two", b"one"]
        assert await store.figures([QUEUE], Instant(311), Instant(999)) == (
            Figure(QUEUE, Instant(311), "pending", "testing", "started", False, 1, None, True),
        )
        assert await store.targets(QUEUE, PrNumber(5), Sha("aaaa")) == b"targets"
        green = Status(
            context="unit", state=StatusState.SUCCESS, at=Instant(314), description="green", suite=suite_of(populated)
        )
        assert await store.statuses(REPO, Sha("bbbb")) == (green,)
        assert await store.answer("t1", "k1") == Answer("t1", "k1", b"\0", b"answer", Instant(310))
        scopes, repos = frozenset({Scope.READ, Scope.SUBMIT}), frozenset({REPO})
        token = Token(id="t1", name="ci", digest=b"\1", scopes=scopes, repos=repos, created_at=Instant(90))
        assert await store.token(b"\1") == replace(token, **use_of(populated))


@pytest.mark.parametrize("populated", POPULATED[1:], ids=lambda path: path.stem)
@asynchronous
async def test_a_populated_database_goes_on_telling_where_it_stopped(populated: Path, file: Path):
    a_database_of(populated, file)
    async with opened(SqliteStore(file)) as store:
        assert await store.cursor("comments", QUEUE) == 2
        assert await store.stuck_since("comments", QUEUE) == 316
        assert [queue.id for queue in await store.behind("comments")] == [QUEUE]
        assert await store.conversation(QUEUE, PrNumber(5)) == b"said"
        assert await store.webhooks() == (WebhookRow("w1", 3, b"webhook"),)
        assert await store.deliveries("w1", 9) == (b"second", b"first")


@pytest.mark.parametrize("populated", POPULATED[2:], ids=lambda path: path.stem)
@asynchronous
async def test_whoever_was_signed_in_to_a_populated_database_still_is(populated: Path, file: Path):
    a_database_of(populated, file)
    async with opened(SqliteStore(file)) as store:
        by_token = Session(digest=b"\2", token="t1", created_at=Instant(317), expires_at=Instant(999))
        assert await store.session(b"\2") == by_token
        groups = frozenset({"devs", "ops"})
        subject = "https://id 7" if number_of(populated) > 4 else ""
        vouched_for = Session(
            digest=b"\3",
            token=None,
            name="ada",
            subject=subject,
            groups=groups,
            created_at=Instant(318),
            expires_at=Instant(999),
        )
        assert await store.session(b"\3") == vouched_for


@pytest.mark.parametrize("populated", POPULATED, ids=lambda path: path.stem)
@asynchronous
async def test_a_populated_database_is_audited_from_its_beginning(populated: Path, file: Path):
    a_database_of(populated, file)
    async with opened(SqliteStore(file)) as store:
        found = await store.audit(AuditPage(take=9, repos=(REPO,)))
        assert [entry.body for entry in found if entry.key == QueueKey(REPO, "main")] == [b"three", b"two", b"one"]


@asynchronous
async def test_what_was_never_told_of_a_database_of_form_one_is_its_past(file: Path):
    a_database_of(POPULATED[0], file)
    async with opened(SqliteStore(file)) as store:
        await store.commit(BeginTelling("comments"))
        assert await store.behind("comments") == ()
        await store.commit(AppendEntries((an_entry("four"),)))
        assert [queue.id for queue in await store.behind("comments")] == [QUEUE]


@asynchronous
async def test_a_database_of_a_newer_version_is_refused_with_advice(file: Path):
    connection = open_for_writing(file)
    connection.execute(SQL["note_migration"], {"number": 999, "name": "from_the_future"})
    connection.close()
    with pytest.raises(StoreTrouble, match="newer version of Mergeyard"):
        await SqliteStore(file).open()


def test_a_migration_that_fails_leaves_nothing_of_itself(file: Path):
    connection = open_for_writing(file)
    with pytest.raises(apsw.SQLError):
        apply(connection, Migration(999, "broken", "CREATE TABLE half (done INTEGER); NONSENSE;"))
    assert form(connection) == MIGRATIONS[-1].number
    assert connection.execute("SELECT name FROM sqlite_schema WHERE name = 'half'").fetchall() == []
    connection.close()
