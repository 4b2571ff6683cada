"""API tokens: creates them with their secrets, finds them by their secret, revokes them and records their use."""

import hashlib
import hmac
import re
import secrets
import string
import uuid
import zlib
from collections.abc import Callable, Collection
from datetime import UTC, datetime

import structlog
from msgspec.structs import replace

from mergeyard.domain.access import DEFAULT_SCOPES, Scope, Token
from mergeyard.domain.ids import Repo
from mergeyard.domain.journal import RESERVED_ACTORS, TokenCreated, TokenRevoked
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.store import Store, StoreUnavailable
from mergeyard.ports.writes import RecordTokenUse, SaveToken
from mergeyard.service.audit_log import audit_entry, encode_actor
from mergeyard.service.background import Background
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.idempotency import IdempotentRequest, to_response_writes

SECRET_PREFIX = "my_"
ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_WIDTH = 43
"""Base-62 digits, which have 256 random bits."""
CHECKSUM_WIDTH = 6
SECRET_PATTERN = re.compile(rb"my_[0-9A-Za-z]{%d}" % (RANDOM_WIDTH + CHECKSUM_WIDTH))


def generate_secret() -> str:
    body = SECRET_PREFIX + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_WIDTH))
    return body + compute_checksum(body.encode())


def hash_secret(secret: bytes) -> bytes:
    """The only form in which a secret is stored. 256 random bits need neither a salt nor a slow hash."""
    return hashlib.sha256(secret).digest()


def is_well_formed(secret: bytes) -> bool:
    """False for a secret that Mergeyard cannot have generated: its form or its checksum is wrong."""
    if SECRET_PATTERN.fullmatch(secret) is None:
        return False
    return secret[-CHECKSUM_WIDTH:] == compute_checksum(secret[:-CHECKSUM_WIDTH]).encode()


def compute_checksum(body: bytes) -> str:
    return encode_base62(zlib.crc32(body), CHECKSUM_WIDTH)


def encode_base62(number: int, width: int) -> str:
    digits: list[str] = []
    for _ in range(width):
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))


log = structlog.get_logger()

MAX_ADDRESS_CHARS = 100
NAME_PATTERN = re.compile(r"[^\s#\x00-\x1f][^#\x00-\x1f]{0,99}")
INVALID_NAME_MESSAGE = "A token's name must have 1 to 100 characters, no # and no line break: choose another name."
RESERVED_NAME_MESSAGE = "The audit log uses this name for Mergeyard itself: choose another name."


RenderToken = Callable[[Token], bytes]


def _render_nothing(_: Token) -> bytes:
    return b""


class Tokens:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._found_before = set[bytes]()
        """Digests of tokens that were found before: their form need not be checked again."""

    async def create(
        self,
        name: str,
        scopes: Collection[Scope] = DEFAULT_SCOPES,
        repos: Collection[Repo] = (),
        lifetime_ms: int | None = None,
        created_by: Token | None = None,
        *,
        expires_at: Instant | None = None,
        idempotent_request: IdempotentRequest | None = None,
        render: RenderToken = _render_nothing,
    ) -> tuple[Token, str]:
        """Returns the token and its secret, which is not stored, also not in the response of an idempotent request.
        Without `created_by`, the operator creates it."""
        secret, now = generate_secret(), self._clock.now()
        token = Token(
            id=uuid.uuid4().hex[:12],
            name=name,
            digest=hash_secret(secret.encode()),
            scopes=frozenset(scopes),
            repos=frozenset(repos),
            created_at=now,
            expires_at=expires_at if lifetime_ms is None else Instant(now + lifetime_ms),
        )
        _validate(token, created_by)
        created = TokenCreated(
            at=now, actor=encode_actor(created_by), id=token.id, name=name, detail=_describe_access(token)
        )
        response_writes = to_response_writes(idempotent_request, render(token), now)
        await self._store.commit(SaveToken(token), audit_entry(created), *response_writes)
        return token, secret

    async def find_valid(self, secret: bytes) -> Token | None:
        """None when the token is unknown, revoked or expired."""
        token = await self.find(secret)
        return token if token is not None and token.is_valid(self._clock.now()) else None

    async def find(self, secret: bytes) -> Token | None:
        """The token with this secret, even if it is revoked or expired."""
        digest = hash_secret(secret)
        if digest not in self._found_before and not is_well_formed(secret):
            return None
        token = await self._store.token(digest)
        if token is None or not hmac.compare_digest(token.digest, digest):
            return None
        self._found_before.add(digest)
        return token

    async def list_manageable(self, manager: Token | None) -> list[Token]:
        """Those that this token can manage, newest first; all of them for the operator."""
        tokens = [token for token in await self._store.tokens() if _can_manage(manager, token)]
        return sorted(tokens, key=lambda token: -token.created_at)

    async def revoke(
        self,
        token_id: str,
        revoked_by: Token | None = None,
        *,
        idempotent_request: IdempotentRequest | None = None,
        render: RenderToken = _render_nothing,
    ) -> Token | None:
        """None when there is no such token that `revoked_by` can manage. Sessions that were started with it end too."""
        found, now = await self._store.token_by_id(token_id), self._clock.now()
        if found is None or not _can_manage(revoked_by, found):
            return None
        if found.revoked_at is not None:
            return found
        revoked = replace(found, revoked_at=now)
        action = TokenRevoked(at=now, actor=encode_actor(revoked_by), id=found.id, name=found.name)
        response_writes = to_response_writes(idempotent_request, render(revoked), now)
        await self._store.commit(SaveToken(revoked), audit_entry(action), *response_writes)
        return revoked


class TokenUses:
    """Records when and from where tokens are used, in the background: no request waits for it."""

    def __init__(self, store: Store, clock: Clock, background: Background) -> None:
        self._store = store
        self._clock = clock
        self._background = background
        self._writes_in_progress = set[str]()
        """Ids of tokens. At most one write per token is in progress, however many requests it makes."""

    def record(self, token: Token, address: str) -> None:
        now = self._clock.now()
        if token.is_use_record_due(now) and token.id not in self._writes_in_progress:
            self._writes_in_progress.add(token.id)
            self._background.start(self._write(RecordTokenUse(token.id, now, address[:MAX_ADDRESS_CHARS])))

    async def _write(self, use: RecordTokenUse) -> None:
        try:
            await self._store.commit(use)
        except StoreUnavailable as error:
            log.warning("token_use_not_recorded", token_id=use.id, error=str(error))
        finally:
            self._writes_in_progress.discard(use.id)


def _validate(token: Token, giver: Token | None) -> None:
    if not NAME_PATTERN.fullmatch(token.name):
        raise RequestRefused(Code.INVALID_REQUEST, INVALID_NAME_MESSAGE)
    if token.name.strip().casefold() in RESERVED_ACTORS:
        raise RequestRefused(Code.INVALID_REQUEST, RESERVED_NAME_MESSAGE)
    if giver is not None:
        _refuse_escalation(token, giver)


def _can_manage(manager: Token | None, token: Token) -> bool:
    """A token that is limited to some repositories manages only tokens that are limited to some of the same."""
    return manager is None or not manager.repos or (bool(token.repos) and token.repos <= manager.repos)


def _refuse_escalation(token: Token, giver: Token) -> None:
    """A token never gets more scopes, repositories or time than the user who creates it has."""
    lacking = sorted(scope for scope in token.scopes if not giver.has_scope(scope))
    if lacking:
        message = f"You cannot grant the scope {', '.join(lacking)}, because you do not have it: leave it out."
        raise RequestRefused(Code.INSUFFICIENT_SCOPE, message)
    if not _can_manage(giver, token):
        message = "Your own token is limited to some repositories: limit the new token to some of the same."
        raise RequestRefused(Code.INSUFFICIENT_SCOPE, message)
    latest = giver.latest_expiry_of_new_token(token.created_at)
    if latest is not None and (token.expires_at is None or token.expires_at > latest):
        limit = datetime.fromtimestamp(latest / SECOND, UTC)
        message = f"You can grant access until {limit:%Y-%m-%d %H:%M} UTC: choose a shorter time for the new token."
        raise RequestRefused(Code.INSUFFICIENT_SCOPE, message)


def _describe_access(token: Token) -> str:
    repos = f" on {', '.join(sorted(map(str, token.repos)))}" if token.repos else ""
    return f"{', '.join(sorted(token.scopes))}{repos}"
