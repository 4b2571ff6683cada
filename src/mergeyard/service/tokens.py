"""Makes tokens, finds whom a secret belongs to, and takes tokens back."""

import hmac
import uuid
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import Repo
from mergeyard.domain.tokens import DEFAULT_SCOPES, Scope, Token
from mergeyard.ports.clock import Clock
from mergeyard.ports.store import Store
from mergeyard.ports.writes import SaveToken
from mergeyard.service import secrets


class Tokens:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def create(
        self,
        name: str,
        scopes: Collection[Scope] = DEFAULT_SCOPES,
        repos: Collection[Repo] = (),
        lifetime: int | None = None,
    ) -> tuple[Token, str]:
        """The secret is shown once and stored nowhere."""
        secret, now = secrets.new_secret(), self._clock.now()
        token = Token(
            id=uuid.uuid4().hex[:12],
            name=name,
            digest=secrets.digest(secret.encode()),
            scopes=frozenset(scopes),
            repos=frozenset(repos),
            created_at=now,
            expires_at=None if lifetime is None else Instant(now + lifetime),
        )
        await self._store.commit(SaveToken(token))
        return token, secret

    async def holder(self, secret: bytes) -> Token | None:
        """None for one that is unknown, revoked or expired."""
        if not secrets.well_formed(secret):
            return None
        digest = secrets.digest(secret)
        token = await self._store.token(digest)
        if token is None or not hmac.compare_digest(token.digest, digest):
            return None
        return token if token.valid(self._clock.now()) else None

    async def all(self) -> Sequence[Token]:
        return await self._store.tokens()

    async def revoke(self, token_id: str) -> Token | None:
        found = next((token for token in await self._store.tokens() if token.id == token_id), None)
        if found is None:
            return None
        revoked = found if found.revoked_at is not None else replace(found, revoked_at=self._clock.now())
        await self._store.commit(SaveToken(revoked))
        return revoked
