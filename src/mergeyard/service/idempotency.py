"""Idempotency keys: the response to a request is stored with its changes, and sent again if the request is repeated."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from msgspec import Struct

from mergeyard.domain.timestamps import DAY, Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.store import Store
from mergeyard.ports.writes import DeleteExpiredResponses, SaveResponse, StoredResponse
from mergeyard.service.errors import Code, RequestRefused

RESPONSE_RETENTION_MS = DAY


class IdempotentRequest(Struct, frozen=True):
    """A request with an idempotency key. Keys are separate for each token; the digest covers the content."""

    token_id: str
    key: str
    digest: bytes

    def to_save_response(self, body: bytes, now: Instant) -> SaveResponse:
        """Fails the commit if a response is stored under this key that has not expired."""
        response = StoredResponse(self.token_id, self.key, self.digest, body, now)
        return SaveResponse(response, unless_saved_since=Instant(now - RESPONSE_RETENTION_MS + 1))


def to_response_writes(request: IdempotentRequest | None, body: bytes, now: Instant) -> tuple[SaveResponse, ...]:
    """The writes to commit with the changes of a request; none for a request without a key."""
    return () if request is None else (request.to_save_response(body, now),)


class Idempotency:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._locks = WeakValueDictionary[tuple[str, str], asyncio.Lock]()
        """One for each key with requests in flight."""

    @asynccontextmanager
    async def execute_once(self, request: IdempotentRequest) -> AsyncGenerator[bytes | None]:
        """Yields the stored response, or None if the caller has to process the request. Waits for a request with the
        same key that is in flight in this process; the store detects one in another replica."""
        lock = self._locks.setdefault((request.token_id, request.key), asyncio.Lock())
        async with lock:
            yield await self.find_response(request)

    async def delete_expired_responses(self) -> None:
        await self._store.commit(DeleteExpiredResponses(Instant(self._clock.now() - RESPONSE_RETENTION_MS)))

    async def find_response(self, request: IdempotentRequest) -> bytes | None:
        """The stored response. Raises `RequestRefused` if the key was used for a request with another content."""
        response = await self._store.response(request.token_id, request.key)
        if response is None or response.at <= self._clock.now() - RESPONSE_RETENTION_MS:
            return None
        if response.digest != request.digest:
            raise RequestRefused(
                Code.IDEMPOTENCY_KEY_REUSED,
                "This Idempotency-Key was used for another request: send a new key, or repeat that request exactly.",
            )
        return response.body
