"""Makes connections: those that many share, and those that somebody needs alone."""

from mergeyard.adapters.store_postgres.handles import Connection, Pool, connect, make_pool

CONNECTIONS = 10
"""More would only wait for each other at the server: a transaction takes a millisecond or two."""
SECONDS_TO_CONNECT = 5.0
SECONDS_TO_ANSWER = 10.0

SETTINGS = {
    "application_name": "mergeyard",
    # Whatever is the custom of this server: what was answered is on its disk.
    "synchronous_commit": "on",
    # Whoever is stopped in the middle of a commit would keep its queue locked for all others. In milliseconds.
    "idle_in_transaction_session_timeout": "5000",
    # How long the lists are that a query gets decides nothing; by itself, PostgreSQL would plan every turn anew.
    "plan_cache_mode": "force_generic_plan",
}


async def connect_many(url: str) -> Pool:
    """None is made before it is needed, and those that were lost are made again when they are needed."""
    return await make_pool(
        url,
        min_size=0,
        max_size=CONNECTIONS,
        timeout=SECONDS_TO_CONNECT,
        command_timeout=SECONDS_TO_ANSWER,
        server_settings=SETTINGS,
        reset=_leave_as_it_is,
    )


async def connect_one(url: str) -> Connection:
    return await connect(url, timeout=SECONDS_TO_CONNECT, command_timeout=SECONDS_TO_ANSWER, server_settings=SETTINGS)


async def connect_patiently(url: str) -> Connection:
    """For what may take long."""
    return await connect(url, timeout=SECONDS_TO_CONNECT, server_settings=SETTINGS)


async def _leave_as_it_is(_: Connection) -> None:
    """Nobody changes a connection beyond its transaction; to reset it would be one more way to the server and back."""
