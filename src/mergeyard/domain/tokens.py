"""Who may do what: a token with its scopes, its repositories and its end."""

from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import Repo


class Scope(StrEnum):
    READ = "read"
    SUBMIT = "submit"
    TARGETS = "targets"
    STATUS = "status"
    PRIORITY = "priority"
    ADMIN = "admin"
    """Implies all others."""


DEFAULT_SCOPES = frozenset({Scope.READ, Scope.SUBMIT, Scope.TARGETS})


class Token(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    digest: bytes
    """The SHA-256 of the secret, which itself is stored nowhere."""
    scopes: frozenset[Scope] = DEFAULT_SCOPES
    repos: frozenset[Repo] = frozenset()
    """Empty: all of them."""
    created_at: Instant
    expires_at: Instant | None = None
    revoked_at: Instant | None = None

    def valid(self, now: Instant) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def sees(self, repo: Repo) -> bool:
        return not self.repos or repo in self.repos
