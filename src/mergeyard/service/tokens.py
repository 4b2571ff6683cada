"""Makes tokens, finds whom a secret belongs to, and takes tokens back."""

import hmac
import re
import uuid
from collections.abc import Collection, Sequence

import structlog
from msgspec.structs import replace

from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import RESERVED, TokenCreated, TokenRevoked
from mergeyard.domain.repositories import Repo
from mergeyard.domain.tokens import DEFAULT_SCOPES, Scope, Token
from mergeyard.ports.clock import Clock
from mergeyard.ports.store import Store, StoreTrouble
from mergeyard.ports.writes import RecordTokenUse, SaveToken
from mergeyard.service import secrets
from mergeyard.service.background import Background
from mergeyard.service.errors import Code, Refused
from mergeyard.service.journaling import actor_of, noted

log = structlog.get_logger()

LONGEST_ADDRESS = 100
A_NAME = re.compile(r"[^\s#\x00-\x1f][^#\x00-\x1f]{0,99}")
NAMES = "A token's name has 1 to 100 characters, no # and no line break: choose another."
OURS = "The journal calls by this name what no token does: choose another."


class Tokens:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._met = set[bytes]()
        """Digests of those that were found before: nobody need look again whether they may be mistyped."""

    async def create(
        self,
        name: str,
        scopes: Collection[Scope] = DEFAULT_SCOPES,
        repos: Collection[Repo] = (),
        lifetime: int | None = None,
        giver: Token | None = None,
    ) -> tuple[Token, str]:
        """The secret is shown once and stored nowhere. Without a giver it is the operator who makes it."""
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
        _refuse_unfit(token, giver)
        created = TokenCreated(at=now, actor=actor_of(giver), id=token.id, name=name, words=_powers(token))
        await self._store.commit(SaveToken(token), noted(created))
        return token, secret

    async def holder(self, secret: bytes) -> Token | None:
        """None for one that is unknown, revoked or expired."""
        token = await self.find(secret)
        return token if token is not None and token.valid(self._clock.now()) else None

    async def find(self, secret: bytes) -> Token | None:
        """The token with this secret, also a revoked or expired one."""
        digest = secrets.digest(secret)
        if digest not in self._met and not secrets.well_formed(secret):
            return None
        token = await self._store.token(digest)
        if token is None or not hmac.compare_digest(token.digest, digest):
            return None
        self._met.add(digest)
        return token

    async def all(self) -> Sequence[Token]:
        return await self._store.tokens()

    async def revoke(self, token_id: str, taker: Token | None = None) -> Token | None:
        """None when there is no such token. Whoever is signed in with it is signed out."""
        found = await self._store.token_of_id(token_id)
        if found is None or found.revoked_at is not None:
            return found
        now = self._clock.now()
        revoked = replace(found, revoked_at=now)
        deed = TokenRevoked(at=now, actor=actor_of(taker), id=found.id, name=found.name)
        await self._store.commit(SaveToken(revoked), noted(deed))
        return revoked


class TokenUses:
    """Records when and from where tokens are used, in the background: no request waits for it."""

    def __init__(self, store: Store, clock: Clock, background: Background) -> None:
        self._store = store
        self._clock = clock
        self._background = background
        self._being_written = set[str]()
        """Ids of tokens. At most one write per token is in progress, however many requests it makes."""

    def record(self, token: Token, address: str) -> None:
        now = self._clock.now()
        if token.use_is_due(now) and token.id not in self._being_written:
            self._being_written.add(token.id)
            self._background.start(self._write(RecordTokenUse(token.id, now, address[:LONGEST_ADDRESS])))

    async def _write(self, use: RecordTokenUse) -> None:
        try:
            await self._store.commit(use)
        except StoreTrouble as error:
            log.warning("token_use_not_recorded", token_id=use.id, error=str(error))
        finally:
            self._being_written.discard(use.id)


def _refuse_unfit(token: Token, giver: Token | None) -> None:
    if not A_NAME.fullmatch(token.name):
        raise Refused(Code.INVALID_REQUEST, NAMES)
    if token.name.strip().casefold() in RESERVED:
        raise Refused(Code.INVALID_REQUEST, OURS)
    if giver is not None:
        _refuse_more_than_its_giver_has(token, giver)


def _refuse_more_than_its_giver_has(token: Token, giver: Token) -> None:
    lacking = sorted(scope for scope in token.scopes if not giver.may(scope))
    if lacking:
        words = f"Nobody gives away more than they have, and you have no scope {', '.join(lacking)}: leave it out."
        raise Refused(Code.INSUFFICIENT_SCOPE, words)
    if giver.repos and not (token.repos and token.repos <= giver.repos):
        words = "Your own token is limited to some repositories: choose among those."
        raise Refused(Code.INSUFFICIENT_SCOPE, words)
    latest = giver.gives_until(token.created_at)
    if latest is not None and (token.expires_at is None or token.expires_at > latest):
        words = "What you make may not last that long: choose a shorter time."
        raise Refused(Code.INSUFFICIENT_SCOPE, words)


def _powers(token: Token) -> str:
    where = f" on {', '.join(sorted(map(str, token.repos)))}" if token.repos else ""
    return f"{', '.join(sorted(token.scopes))}{where}"
