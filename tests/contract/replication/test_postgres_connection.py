"""A database that cannot be used is refused with advice, and never with the password of its URL."""

import asyncio
import ssl
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

import pytest
from asyncpg import exceptions  # pyright: ignore[reportMissingTypeStubs]
from hypothesis import given
from hypothesis import strategies as st

from mergeyard.adapters.store_postgres.connection import (
    ERROR_MESSAGES,
    decode_text,
    describe_location,
    encode_text,
    open_connection,
    refuse_unsupported_server,
    to_store_error,
)
from mergeyard.adapters.store_postgres.store import CHECK_TIMEOUT_S, PostgresStore
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey
from mergeyard.ports.store import StoreUnavailable
from mergeyard.ports.writes import AppendEntries
from tests.contract.store.builders import QUEUE, REPO, a_decision, a_queue, a_submission, an_entry, opened
from tests.support.asynchronous import asynchronous
from tests.support.polling import eventually, wait_until
from tests.support.postgres import PostgresServer, shared_server

PLACE = "The database 'yard' at db.local"


async def error_text(url: str) -> str:
    """The text of the whole exception chain, as a log would show it."""
    with pytest.raises(StoreUnavailable) as refusal:
        await PostgresStore(url).open()
    assert "secret" not in "".join(traceback.format_exception(refusal.value))
    return str(refusal.value)


@asynchronous
async def test_a_stopped_server_is_reported_as_unreachable():
    message = await error_text("postgresql://ada:secret@127.0.0.1:1/yard")
    assert message.startswith("The database 'yard' at 127.0.0.1:1 cannot be reached.")


@asynchronous
async def test_an_unknown_host_is_reported_as_unreachable():
    assert "nowhere.invalid cannot be reached" in await error_text("postgresql://a:secret@nowhere.invalid/yard")


@asynchronous
async def test_a_missing_socket_is_reported_as_unreachable():
    message = await error_text("postgresql://ada:secret@/yard?host=/nowhere")
    assert message.startswith("The database 'yard' at /nowhere cannot be reached.")


@asynchronous
async def test_a_missing_database_is_reported_with_advice_to_create_it():
    message = await error_text(shared_server().url("nowhere", user="tests:secret"))
    assert "does not exist. Create it" in message


@pytest.mark.long
def test_a_wrong_password_is_reported(server: PostgresServer):
    server.run("CREATE USER ada PASSWORD 'right'")
    server.run("CREATE DATABASE yard OWNER ada")
    server.require_password_of("ada")

    def refused() -> bool:
        return "refuses the login. Check user" in asyncio.run(error_text(server.url("yard", user="ada:secret")))

    eventually(refused)
    asyncio.run(open_and_close(server.url("yard", user="ada:right")))


async def open_and_close(url: str) -> None:
    async with opened(PostgresStore(url)) as store:
        await store.check()


@asynchronous
async def test_missing_permission_to_create_tables_is_reported_with_advice():
    server = shared_server()
    url = await asyncio.to_thread(server.fresh_database)
    database = url.rpartition("/")[2]
    await asyncio.to_thread(server.run, "REVOKE CREATE ON SCHEMA public FROM PUBLIC", database)
    await asyncio.to_thread(server.run, f"CREATE USER guest_of_{database}")
    guest = server.url(database, user=f"guest_of_{database}")
    assert "Make Mergeyard's user its owner" in await error_text(guest)


@asynchronous
async def test_a_read_only_replica_is_reported_as_such():
    server = shared_server()
    url = await asyncio.to_thread(server.fresh_database)
    await open_and_close(url)
    await asyncio.to_thread(
        server.run, f"ALTER DATABASE {url.rpartition('/')[2]} SET default_transaction_read_only = on"
    )
    assert "is a read-only replica" in await error_text(url)


@asynchronous
async def test_a_database_without_utf8_is_refused():
    latin = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    url = await asyncio.to_thread(shared_server().fresh_database, latin)
    assert "its encoding is LATIN1" in await error_text(url)


@asynchronous
async def test_a_socket_can_be_used_instead_of_a_host():
    server = shared_server()
    url = await asyncio.to_thread(server.fresh_database)
    async with opened(PostgresStore(server.socket_url(url.rpartition("/")[2]))) as store:
        await store.commit(a_queue())
        assert (await store.load(QUEUE)).version == 0


def test_an_outdated_server_is_refused():
    refuse_unsupported_server(14, "UTF8", PLACE)
    with pytest.raises(StoreUnavailable, match=r"runs on PostgreSQL 13\. Use PostgreSQL 14 or newer\."):
        refuse_unsupported_server(13, "UTF8", PLACE)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://ada:secret@db.local/yard",
        "ada:secret@db.local/yard",
        "postgresql://ada:se@secret@db.local/yard",
        "postgresql://ada:secret/se@db.local/yard",
        "postgresql://ada:secret?se@db.local/yard",
        "postgresql://ada:secret#se@db.local/yard",
        "postgresql://ada:secret",
        "postgresql://[ada:secret@db.local/yard",
        "postgresql://ada:secret@db.local:port/yard",
        "postgresql://ada@db.local/yard?password",
        "postgresql://ada@db.local/yard?port=secret",
        "",
    ],
)
def test_a_url_that_cannot_be_understood_is_not_repeated(url: str):
    with pytest.raises(StoreUnavailable, match="is malformed") as refusal:
        PostgresStore(url)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://ada:secret@db.local/yard", "The database 'yard' at db.local"),
        ("postgres://ada:secret@[::1]:5433/yard?sslmode=require", "The database 'yard' at [::1]:5433"),
        ("postgresql://ada:se%40cret@a:1,b:2/yard?target_session_attrs=primary", "The database 'yard' at a:1,b:2"),
        ("postgresql:///yard?host=/run/postgresql&password=secret", "The database 'yard' at /run/postgresql"),
        ("postgresql://ada@/yard", "The database 'yard' at the default address"),
    ],
)
def test_a_database_is_named_without_secrets(url: str, place: str):
    assert describe_location(url) == place


@asynchronous
async def test_a_url_that_only_the_driver_rejects_is_not_repeated():
    message = await error_text("postgresql://ada@127.0.0.1:1/yard?sslmode=secret")
    assert message.endswith("Check the URL of the database.")


@asynchronous
async def test_an_unknown_setting_is_reported_with_advice_to_remove_it(url: str):
    assert "Remove it from the URL (unrecognized" in await error_text(f"{url}?connect_timeout=10")


@pytest.mark.parametrize("error", ERROR_MESSAGES)
def test_every_error_names_the_database_and_what_to_do(error: Callable[[str], Exception]):
    message = str(to_store_error(error("what PostgreSQL\nsays"), PLACE))
    assert PLACE in message
    assert message.endswith(("(what PostgreSQL says).", "Check the URL of the database."))
    assert message.count(". ") == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (exceptions.InvalidPasswordError("no"), "Check user and password"),
        (exceptions.AdminShutdownError("no"), "was stopped"),
        (exceptions.CannotConnectNowError("no"), "is starting or stopping"),
        (exceptions.ConnectionDoesNotExistError("no"), "The connection was lost"),
        (exceptions.PostgresIOError("no"), "Check disk"),
        (ConnectionRefusedError("no"), "cannot be reached"),
        (ssl.SSLCertVerificationError("no"), "cannot be reached"),
        (TimeoutError(), "does not respond"),
    ],
)
def test_each_error_gets_the_most_specific_message(error: Exception, message: str):
    assert message in str(to_store_error(error, PLACE))


@pytest.mark.parametrize("mistake", [exceptions.PostgresSyntaxError("no"), ValueError("no"), LookupError("no")])
def test_a_programming_error_is_not_reported_as_a_database_error(mistake: Exception):
    assert to_store_error(mistake, PLACE) is None


texts = st.text(st.sampled_from("\0\1\2\3aZ試")) | st.text()


@given(texts)
def test_text_comes_back_exactly(text: str):
    assert decode_text(encode_text(text)) == text


@given(texts)
def test_stored_text_holds_no_nul(text: str):
    assert "\0" not in encode_text(text)


@given(texts, texts)
def test_the_order_of_texts_stays_what_it_was(one: str, other: str):
    assert (encode_text(one) < encode_text(other)) == (one < other)


TAKEOVER_IN_SECONDS = 15


@asynchronous
async def test_every_call_fails_during_an_outage_and_works_again_afterwards(server: PostgresServer):
    store = PostgresStore(await asyncio.to_thread(server.fresh_database))
    async with opened(store):
        await store.commit(a_queue())
        await asyncio.to_thread(server.stop)
        for attempt in (
            lambda: store.commit(a_decision(1)),
            lambda: store.load(QUEUE),
            lambda: store.last_submission(QUEUE, PullRequestNumber(1)),
            lambda: store.renew_leases("one", 1),
            lambda: store.notify("word"),
        ):
            with pytest.raises(StoreUnavailable, match=r"reached|lost|stopped"):
                await attempt()
        begun = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await store.check()
        assert time.monotonic() - begun < CHECK_TIMEOUT_S + 1
        await asyncio.to_thread(server.start)
        await store.check()
        await store.commit(a_decision(1, a_submission(1)))
        assert (await store.load(QUEUE)).version == 1


@asynchronous
async def test_no_committed_data_is_lost_when_the_database_crashes_under_load(server: PostgresServer):
    store = PostgresStore(await asyncio.to_thread(server.fresh_database))
    promised = dict[QueueId, int]()
    queues = [QueueId(f"q{count}") for count in range(8)]

    async def commit_decisions(queue: QueueId) -> None:
        """Commits until the server is killed."""
        while True:
            version = promised.get(queue, 0) + 1
            told = AppendEntries((an_entry("turn", queue=queue),))
            await store.commit(a_decision(version, a_submission(version), queue=queue), told)
            promised[queue] = version

    async with opened(store):
        await store.commit(*(a_queue(queue, key=QueueKey(REPO, queue)) for queue in queues))
        for _ in range(2):
            promised.update({queue: (await store.load(queue)).version for queue in queues})
            goal = {queue: version + 20 for queue, version in promised.items()}
            turning = [asyncio.create_task(commit_decisions(queue)) for queue in queues]
            await wait_until(lambda goal=goal: all(promised[queue] >= goal[queue] for queue in queues))
            await asyncio.to_thread(server.crash)
            outcomes = await asyncio.gather(*turning, return_exceptions=True)
            assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
            await asyncio.to_thread(server.start)
            for queue in queues:
                loaded = await store.load(queue)
                assert loaded.version in {promised[queue], promised[queue] + 1}
                assert len(loaded.submissions) == len(await store.entries(queue, 0, 10_000)) == loaded.version


@pytest.mark.long
@asynchronous
async def test_a_database_that_does_not_answer_fails_the_check_quickly(server: PostgresServer):
    """Another transaction locks the row that the check writes, as a server that hangs would."""
    url = await asyncio.to_thread(server.fresh_database)
    async with opened(PostgresStore(url)) as store:
        holder = await open_connection(url)
        async with holder.transaction():
            await holder.execute("SELECT FROM write_probe FOR UPDATE")
            begun = time.monotonic()
            with pytest.raises(StoreUnavailable, match="does not respond"):
                await store.check()
            assert time.monotonic() - begun < CHECK_TIMEOUT_S + 1
        await holder.close()
        await store.check()


@pytest.mark.long
@asynchronous
async def test_a_replica_that_stops_in_the_middle_of_a_commit_locks_others_out_only_for_seconds(url: str):
    async with opened(PostgresStore(url)) as store:
        await store.commit(a_queue())
        stopped = await open_connection(url)
        begun = time.monotonic()
        with suppress(StoreUnavailable, ConnectionError):
            await stopped.execute("BEGIN")
            await stopped.execute("UPDATE queues SET version = 1")
        await store.commit(a_decision(1, a_submission(1)))
        assert time.monotonic() - begun < TAKEOVER_IN_SECONDS
        stopped.terminate()
