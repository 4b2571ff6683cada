"""A database that cannot be used is refused with advice, and never with the password of its URL."""

import asyncio
import ssl
import traceback
from collections.abc import Callable

import pytest
from asyncpg import exceptions  # pyright: ignore[reportMissingTypeStubs]

from mergeyard.adapters.store_postgres.migrating import refuse_an_unfit_server
from mergeyard.adapters.store_postgres.place import place_of
from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.adapters.store_postgres.trouble import ADVICE, in_words
from mergeyard.ports.store import StoreTrouble
from tests.contract.store.given import QUEUE, a_queue, opened
from tests.support.asynchronous import asynchronous
from tests.support.patience import eventually
from tests.support.postgres import PostgresServer, shared_server

PLACE = "The database 'yard' at db.local"


async def words_of_refusal(url: str) -> str:
    """Of the whole chain of what went wrong, as a log would show it."""
    with pytest.raises(StoreTrouble) as refusal:
        await PostgresStore(url).open()
    assert "secret" not in "".join(traceback.format_exception(refusal.value))
    return str(refusal.value)


@asynchronous
async def test_a_server_that_is_not_up_cannot_be_reached():
    words = await words_of_refusal("postgresql://ada:secret@127.0.0.1:1/yard")
    assert words.startswith("The database 'yard' at 127.0.0.1:1 cannot be reached.")


@asynchronous
async def test_a_host_that_nobody_knows_cannot_be_reached():
    assert "nowhere.invalid cannot be reached" in await words_of_refusal("postgresql://a:secret@nowhere.invalid/yard")


@asynchronous
async def test_a_socket_that_is_not_there_cannot_be_reached():
    words = await words_of_refusal("postgresql://ada:secret@/yard?host=/nowhere")
    assert words.startswith("The database 'yard' at /nowhere cannot be reached.")


@asynchronous
async def test_a_database_that_is_not_there_is_to_be_created():
    words = await words_of_refusal(shared_server().url("nowhere", user="tests:secret"))
    assert "is not there. Create it" in words


def test_who_gives_a_wrong_password_is_not_let_in(server: PostgresServer):
    server.run("CREATE USER ada PASSWORD 'right'")
    server.run("CREATE DATABASE yard OWNER ada")
    server.demand_password_of("ada")

    def refused() -> bool:
        return "does not let us in. Check user" in asyncio.run(words_of_refusal(server.url("yard", user="ada:secret")))

    eventually(refused)
    asyncio.run(open_and_close(server.url("yard", user="ada:right")))


async def open_and_close(url: str) -> None:
    async with opened(PostgresStore(url)) as store:
        await store.check()


@asynchronous
async def test_who_may_not_make_tables_is_told_to_become_the_owner():
    server = shared_server()
    url = await asyncio.to_thread(server.fresh_database)
    database = url.rpartition("/")[2]
    await asyncio.to_thread(server.run, "REVOKE CREATE ON SCHEMA public FROM PUBLIC", database)
    await asyncio.to_thread(server.run, f"CREATE USER guest_of_{database}")
    assert "Make our user the owner" in await words_of_refusal(server.url(database, user=f"guest_of_{database}"))


@asynchronous
async def test_a_copy_that_may_only_be_read_is_told_from_the_server_itself():
    server = shared_server()
    url = await asyncio.to_thread(server.fresh_database)
    await open_and_close(url)
    await asyncio.to_thread(
        server.run, f"ALTER DATABASE {url.rpartition('/')[2]} SET default_transaction_read_only = on"
    )
    assert "may only be read" in await words_of_refusal(url)


@asynchronous
async def test_a_database_that_cannot_hold_all_words_is_refused():
    latin = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    url = await asyncio.to_thread(shared_server().fresh_database, latin)
    assert "its encoding is LATIN1" in await words_of_refusal(url)


@asynchronous
async def test_a_socket_is_as_good_as_a_host():
    server = shared_server()
    url = await asyncio.to_thread(server.fresh_database)
    async with opened(PostgresStore(server.socket_url(url.rpartition("/")[2]))) as store:
        await store.commit(a_queue())
        assert (await store.load(QUEUE)).version == 0


def test_a_server_of_yesterday_is_refused():
    refuse_an_unfit_server(14, "UTF8", PLACE)
    with pytest.raises(StoreTrouble, match=r"runs on PostgreSQL 13\. Use PostgreSQL 14 or newer\."):
        refuse_an_unfit_server(13, "UTF8", PLACE)


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
    with pytest.raises(StoreTrouble, match="cannot be understood") as refusal:
        PostgresStore(url)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://ada:secret@db.local/yard", "The database 'yard' at db.local"),
        ("postgres://ada:secret@[::1]:5433/yard?sslmode=require", "The database 'yard' at [::1]:5433"),
        ("postgresql://ada:se%40cret@a:1,b:2/yard?target_session_attrs=primary", "The database 'yard' at a:1,b:2"),
        ("postgresql:///yard?host=/run/postgresql&password=secret", "The database 'yard' at /run/postgresql"),
        ("postgresql://ada@/yard", "The database 'yard' at the usual place"),
    ],
)
def test_a_place_is_named_without_secrets(url: str, place: str):
    assert place_of(url) == place


@asynchronous
async def test_what_only_the_driver_finds_wrong_with_a_url_is_not_repeated_either():
    words = await words_of_refusal("postgresql://ada@127.0.0.1:1/yard?sslmode=secret")
    assert words.endswith("Check the URL of the database.")


@asynchronous
async def test_a_setting_that_the_server_does_not_know_is_to_be_removed(url: str):
    assert "Remove it from the URL (unrecognized" in await words_of_refusal(f"{url}?connect_timeout=10")


@pytest.mark.parametrize("trouble", ADVICE)
def test_every_trouble_names_the_place_and_says_what_to_do(trouble: Callable[[str], Exception]):
    words = str(in_words(trouble("what PostgreSQL\nsays"), PLACE))
    assert PLACE in words
    assert words.endswith(("(what PostgreSQL says).", "Check the URL of the database."))
    assert words.count(". ") == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (exceptions.InvalidPasswordError("no"), "Check user and password"),
        (exceptions.AdminShutdownError("no"), "was stopped"),
        (exceptions.CannotConnectNowError("no"), "is starting or stopping"),
        (exceptions.ConnectionDoesNotExistError("no"), "The connection was lost"),
        (exceptions.PostgresIOError("no"), "Check disk"),
        (ConnectionRefusedError("no"), "cannot be reached"),
        (ssl.SSLCertVerificationError("no"), "cannot be reached"),
        (TimeoutError(), "does not answer"),
    ],
)
def test_each_trouble_gets_the_words_that_fit_it_best(error: Exception, words: str):
    assert words in str(in_words(error, PLACE))


@pytest.mark.parametrize("mistake", [exceptions.PostgresSyntaxError("no"), ValueError("no"), LookupError("no")])
def test_a_mistake_of_ours_is_no_trouble_of_the_database(mistake: Exception):
    assert in_words(mistake, PLACE) is None
