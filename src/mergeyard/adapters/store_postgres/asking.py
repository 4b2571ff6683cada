"""Asks a connection, by the name of a query and of its values."""

from typing import Any

from mergeyard.adapters.store_postgres.handles import Connection, Row, Value
from mergeyard.adapters.store_postgres.sql import SQL


async def rows(connection: Connection, query: str, /, **values: Value) -> list[Row]:
    named = SQL[query]
    return await connection.fetch(named.text, *named.arguments(values))


async def row(connection: Connection, query: str, /, **values: Value) -> Row | None:
    found = await rows(connection, query, **values)
    return found[0] if found else None


async def value(connection: Connection, query: str, /, **values: Value) -> Any:
    """The first of the first row; None when there is no row."""
    found = await rows(connection, query, **values)
    return found[0][0] if found else None


async def bodies(connection: Connection, query: str, /, **values: Value) -> tuple[bytes, ...]:
    return tuple(body for (body,) in await rows(connection, query, **values))
