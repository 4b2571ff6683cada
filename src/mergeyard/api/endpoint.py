"""What an endpoint is: its address, what it asks for, who may use it, and who answers."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from msgspec import Struct

from mergeyard.api.head import Head
from mergeyard.domain.tokens import Scope, Token
from mergeyard.service.errors import Code
from mergeyard.service.repeating import Repeat

JSON = "application/json"


class Call(Struct, frozen=True):
    """One request that may be answered: checked, and by somebody who has the scope for it."""

    token: Token
    request: Any
    request_id: str
    repeat: Repeat | None = None


Handler = Callable[[Call], Awaitable[bytes]]
"""Gives the encoded body of the 200."""
Settle = Callable[[Call], Awaitable[None]]
"""Waits until an answer that was kept may be given again."""


async def at_once(_: Call) -> None:
    """Most answers are true as soon as they are kept."""


class Endpoint(Struct, frozen=True, kw_only=True):
    path: str
    request: type[Struct]
    answer: type[Struct] | None
    """None: the answer is text of its media type."""
    handler: Handler
    summary: str
    scope: Scope = Scope.READ
    method: str = "POST"
    writes: bool = False
    media_type: str = JSON
    settle: Settle = at_once
    refusals: tuple[Code, ...] = ()
    """Beyond those that every endpoint has."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Doorkeeper(Protocol):
    async def token(self, secret: bytes, head: Head) -> Token | None:
        """The valid token with this secret, whose use is recorded; else None, and that is logged."""
        ...

    def scope_is_missing(self, token: Token, head: Head) -> None:
        """Logs a request that was refused because its token lacks a scope."""
        ...

    async def kept(self, repeat: Repeat) -> bytes | None:
        """The answer of the first time, if there was one."""
        ...

    def once(self, repeat: Repeat) -> AbstractAsyncContextManager[bytes | None]:
        """Gives the answer of the first time, if there was one; waits for a twin; refuses a key used for another."""
        ...
