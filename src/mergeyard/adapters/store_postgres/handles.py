"""What is used of asyncpg, with the types that it does not bring."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

Value = None | int | str | bytes | Sequence[Any]
Row = tuple[Any, ...]
Heard = Callable[["Connection", int, str, str], None]
"""Is told on which connection, from which process, on which channel, and what."""


class Connection(Protocol):
    async def fetch(self, query: str, *args: Value, timeout: float | None = None) -> list[Row]: ...

    async def execute(self, query: str, *args: Value, timeout: float | None = None) -> str: ...

    def transaction(
        self, *, isolation: str | None = None, readonly: bool = False
    ) -> AbstractAsyncContextManager[object]: ...

    async def add_listener(self, channel: str, callback: Heard) -> None: ...

    def add_termination_listener(self, callback: Callable[["Connection"], None]) -> None: ...

    async def close(self, *, timeout: float | None = None) -> None: ...

    def terminate(self) -> None: ...


class Pool(Protocol):
    def acquire(self, *, timeout: float | None = None) -> AbstractAsyncContextManager[Connection]: ...

    async def close(self) -> None: ...

    def terminate(self) -> None: ...


class Connect(Protocol):
    def __call__(
        self,
        dsn: str,
        *,
        timeout: float,
        command_timeout: float | None = None,
        server_settings: Mapping[str, str],
    ) -> Awaitable[Connection]: ...


class MakePool(Protocol):
    def __call__(
        self,
        dsn: str,
        *,
        min_size: int,
        max_size: int,
        timeout: float,
        command_timeout: float,
        server_settings: Mapping[str, str],
        reset: Callable[[Connection], Awaitable[None]],
    ) -> Awaitable[Pool]: ...


connect = cast(Connect, asyncpg.connect)
make_pool = cast(MakePool, asyncpg.create_pool)
