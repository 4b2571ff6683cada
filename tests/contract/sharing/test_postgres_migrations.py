"""Every form that a database ever had can be brought to the present one, with all that is in it, by many at once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from asyncpg import PostgresSyntaxError  # pyright: ignore[reportMissingTypeStubs]
from msgspec.structs import replace

from mergeyard.adapters.store_postgres.asking import rows
from mergeyard.adapters.store_postgres.connecting import connect_one
from mergeyard.adapters.store_postgres.migrating import MIGRATIONS, Migration, apply, form
from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.domain.ids import PrNumber, QueueId, RunId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.sessions import Session
from mergeyard.domain.states import PrState
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.domain.tokens import Scope, Token
from mergeyard.ports.sharing import Duty
from mergeyard.ports.store import AuditPage, Changed, Changes, Figure, Page, StoredQueue, StoreTrouble
from mergeyard.ports.writes import Answer, AppendEntries, BeginTelling, Fact, WebhookRow
from tests.contract.sharing.given import AT_ONCE, LONG, all_opened
from tests.contract.store.given import a_queue, a_run, a_turn, an_entry, opened
from tests.support.asynchronous import asynchronous
from tests.support.postgres import ask

FOLDER = Path(__file__).parent
POPULATED = sorted(FOLDER.glob("populated_*.sql"))
REPO = Repo("git.local", "acme", "app")
QUEUE = QueueId("q1")

every_form = pytest.mark.parametrize("populated", POPULATED, ids=lambda path: path.stem)


def number_of(populated: Path) -> int:
    return int(populated.stem.removeprefix("populated_"))


def suite_of(populated: Path) -> str:
    """Form 1 did not know of suites."""
    return "nightly" if number_of(populated) > 1 else ""


def use_of(populated: Path) -> dict[str, Any]:
    """The last use of the token; forms before 5 did not record it."""
    return {"last_used_at": Instant(319), "last_used_from": "192.0.2.7"} if number_of(populated) > 4 else {}


async def populate(url: str, populated: Path) -> None:
    """As a version of Mergeyard that knew only so many forms would have left it."""
    connection = await connect_one(url)
    await rows(connection, "make_list_of_migrations")
    for migration in MIGRATIONS[: number_of(populated)]:
        await apply(connection, migration)
    await connection.execute(populated.read_text())
    await connection.close()


def test_migrations_are_numbered_from_one_without_a_gap():
    assert [migration.number for migration in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


def test_every_form_has_a_populated_database_to_try():
    assert [number_of(populated) for populated in POPULATED] == [migration.number for migration in MIGRATIONS]


@every_form
@asynchronous
async def test_a_populated_database_keeps_its_queue(populated: Path, url: str):
    await populate(url, populated)
    async with opened(PostgresStore(url)) as store:
        assert await store.queues() == (StoredQueue(QUEUE, QueueKey(REPO, "main"), 7),)
        loaded = await store.load(QUEUE)
        assert loaded.facts == (Fact("batch", "1", b"{}"), Fact("queue", "", b"{}"))
        assert (loaded.version, loaded.stays, loaded.runs) == (7, (b"stay 2",), (b"run 2",))
        assert await store.stays(QUEUE, Page(take=9, state=PrState.FAILED)) == (b"stay 1",)
        assert await store.last_stay(QueueId("q0"), PrNumber(5)) == b"old stay"
        (run,) = await store.decided_runs(QUEUE, Instant(300), Instant(400), 9)
        assert run.body == b"run 1"
        assert await store.run(QUEUE, RunId("r1")) == b"run 1"
        assert await store.changes(QUEUE, 4) == Changes(
            version=7,
            facts=(Fact("batch", "0", None), Fact("batch", "1", b"{}"), Fact("queue", "", b"{}")),
            stays=(Changed(True, b"stay 2"),),
            runs=(Changed(True, b"run 2"),),
        )


@every_form
@asynchronous
async def test_a_populated_database_keeps_what_was_told_and_reported(populated: Path, url: str):
    await populate(url, populated)
    async with opened(PostgresStore(url)) as store:
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
async def test_a_populated_database_goes_on_telling_where_it_stopped(populated: Path, url: str):
    await populate(url, populated)
    async with opened(PostgresStore(url)) as store:
        assert await store.cursor("comments", QUEUE) == 2
        assert await store.stuck_since("comments", QUEUE) == 316
        assert [queue.id for queue in await store.behind("comments")] == [QUEUE]
        assert await store.conversation(QUEUE, PrNumber(5)) == b"said"
        assert await store.webhooks() == (WebhookRow("w1", 3, b"webhook"),)
        assert await store.deliveries("w1", 9) == (b"second", b"first")


@pytest.mark.parametrize("populated", POPULATED[2:], ids=lambda path: path.stem)
@asynchronous
async def test_whoever_was_signed_in_to_a_populated_database_still_is(populated: Path, url: str):
    await populate(url, populated)
    async with opened(PostgresStore(url)) as store:
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


@every_form
@asynchronous
async def test_a_populated_database_is_audited_from_its_beginning(populated: Path, url: str):
    await populate(url, populated)
    async with opened(PostgresStore(url)) as store:
        found = await store.audit(AuditPage(take=9, repos=(REPO,)))
        assert [entry.body for entry in found if entry.key == QueueKey(REPO, "main")] == [b"three", b"two", b"one"]


@asynchronous
async def test_what_was_never_told_of_a_database_of_form_one_is_its_past(url: str):
    await populate(url, POPULATED[0])
    async with opened(PostgresStore(url)) as store:
        await store.commit(BeginTelling("comments"))
        assert await store.behind("comments") == ()
        await store.commit(AppendEntries((an_entry("four"),)))
        assert [queue.id for queue in await store.behind("comments")] == [QUEUE]


@every_form
@asynchronous
async def test_work_goes_on_in_a_populated_database(populated: Path, url: str):
    await populate(url, populated)
    async with opened(PostgresStore(url)) as store:
        await store.enlist("one", LONG)
        assert await store.claim("one", 9, (), AT_ONCE) == (Duty(REPO, 5),)
        await store.commit(a_turn(8, a_run("r3", body=b"run 3")), AppendEntries((an_entry("four"),)))
        assert (await store.load(QUEUE)).runs == (b"run 2", b"run 3")
        assert [entry.body for entry in await store.entries(QUEUE, 0, 9)][-1] == b"four"


@asynchronous
async def test_replicas_that_open_a_new_database_at_once_agree_on_it(url: str):
    stores = [PostgresStore(url) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))
    await stores[0].commit(a_queue())
    assert {await store.queues() for store in stores} == {(StoredQueue(QUEUE, QueueKey(REPO, "main"), 0),)}
    for store in stores:
        await store.close()
    assert await ask(url, "SELECT number FROM migrations") == [(migration.number,) for migration in MIGRATIONS]


@asynchronous
async def test_a_database_of_a_newer_version_is_refused_with_advice_and_left_as_it_is(url: str):
    async with all_opened(PostgresStore(url)):
        await ask(url, "INSERT INTO migrations VALUES (999, 'from_the_future')")
    with pytest.raises(StoreTrouble, match="newer version of Mergeyard"):
        await PostgresStore(url).open()
    assert await ask(url, "SELECT max(number) FROM migrations") == [(999,)]


@asynchronous
async def test_a_migration_that_fails_leaves_nothing_of_itself(url: str):
    async with opened(PostgresStore(url)):
        connection = await connect_one(url)
        with pytest.raises(PostgresSyntaxError):
            async with connection.transaction():
                await apply(connection, Migration(999, "broken", "CREATE TABLE half (done INTEGER); NONSENSE;"))
        assert await form(connection) == MIGRATIONS[-1].number
        assert await connection.fetch("SELECT to_regclass('half')") == [(None,)]
        await connection.close()
