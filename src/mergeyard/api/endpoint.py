"""What an endpoint is: its address, what it asks for, who may use it, and who answers."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from msgspec import Struct

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
    refusals: tuple[Code, ...] = ()
    """Beyond those that every endpoint has."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Doorkeeper(Protocol):
    async def token(self, secret: bytes) -> Token | None:
        """None when nobody has it, or it was revoked or has expired."""
        ...

    def once(self, repeat: Repeat) -> AbstractAsyncContextManager[bytes | None]:
        """Gives the answer of the first time, if there was one; waits for a twin; refuses a key used for another."""
        ...
