"""API tokens, scopes, browser sessions, and what a user of single sign-on is allowed to do."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import DAY, HOUR, Instant, later


class Scope(StrEnum):
    READ = "read"
    SUBMIT = "submit"
    TARGETS = "targets"
    STATUS = "status"
    PRIORITY = "priority"
    ADMIN = "admin"
    """Implies all other scopes."""


DEFAULT_SCOPES = frozenset({Scope.READ, Scope.SUBMIT, Scope.TARGETS})
TOKEN_USE_INTERVAL_MS = HOUR
MAX_SSO_TOKEN_LIFETIME_MS = 90 * DAY
"""For tokens made by users of the identity provider: the service does not learn when such a user leaves."""


class Token(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    digest: bytes
    """The SHA-256 of the secret. The secret itself is not stored."""
    scopes: frozenset[Scope] = DEFAULT_SCOPES
    repos: frozenset[Repo] = frozenset()
    """Empty: all repositories."""
    created_at: Instant
    expires_at: Instant | None = None
    revoked_at: Instant | None = None
    last_used_at: Instant | None = None
    """Recorded at most once per `TOKEN_USE_INTERVAL_MS`, so it can be that much too early."""
    last_used_from: str = ""
    """The client's address at that time."""

    def is_valid(self, now: Instant) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def is_use_record_due(self, now: Instant) -> bool:
        """Whether a use at this time must be recorded."""
        return self.last_used_at is None or now - self.last_used_at >= TOKEN_USE_INTERVAL_MS

    def has_scope(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def can_access(self, repo: Repo) -> bool:
        return not self.repos or repo in self.repos

    def can_access_host(self, host: str) -> bool:
        return not self.repos or any(repo.host == host for repo in self.repos)

    def latest_expiry_of_new_token(self, _: Instant, /) -> Instant | None:
        """The latest expiry of a token that its holder creates now; None: no limit."""
        return self.expires_at


class SsoPrincipal(Token, frozen=True):
    """Takes the place of a token for users of the identity provider. No client can send it, because its secret was
    never given out.

    It does not expire: the session does, and the next sign-in makes another.
    """

    def latest_expiry_of_new_token(self, now: Instant, /) -> Instant | None:
        return later(now, MAX_SSO_TOKEN_LIFETIME_MS)


class Session(Struct, frozen=True, kw_only=True):
    digest: bytes
    """The SHA-256 of the browser's session secret. The secret itself is not stored."""
    token: str | None
    """The id of the token that the user signed in with. The session never allows more than that token does now."""
    name: str = ""
    """The user's name, if they signed in through the identity provider."""
    subject: str = ""
    """Issuer and `sub` of the user; unlike the name they never change."""
    groups: frozenset[str] = frozenset()
    """The user's groups at sign-in, of those that have grants."""
    created_at: Instant
    expires_at: Instant

    def is_valid(self, now: Instant) -> bool:
        return now < self.expires_at


class Grants(Struct, frozen=True, kw_only=True):
    """The scopes of users who sign in through the identity provider: none unless configured."""

    group_scopes: Mapping[str, frozenset[Scope]] = {}
    default_scopes: frozenset[Scope] = frozenset()

    def scopes_for(self, groups: frozenset[str]) -> frozenset[Scope]:
        """Any granted scope implies `read`."""
        granted = self.default_scopes.union(*(self.group_scopes.get(group, frozenset()) for group in groups))
        return granted | {Scope.READ} if granted else granted


NO_GRANTS = Grants()
