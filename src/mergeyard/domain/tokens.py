"""Who may do what: a token with its scopes, its repositories and its end."""

from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.instants import DAY, HOUR, Instant, later
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
USE_RECORDED_EVERY = HOUR
LONGEST_GIFT = 90 * DAY
"""Of somebody who has no token of their own: nobody is told when they leave."""


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
    last_used_at: Instant | None = None
    """Recorded at most once per `USE_RECORDED_EVERY`, so it may be that much too early."""
    last_used_from: str = ""
    """The client's address at that time."""

    def valid(self, now: Instant) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def use_is_due(self, now: Instant) -> bool:
        """Whether a use at this time is to be recorded."""
        return self.last_used_at is None or now - self.last_used_at >= USE_RECORDED_EVERY

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def sees(self, repo: Repo) -> bool:
        return not self.repos or repo in self.repos

    def sees_host(self, host: str) -> bool:
        return not self.repos or any(repo.host == host for repo in self.repos)

    def gives_until(self, _: Instant, /) -> Instant | None:
        """When a token that its holder makes now must end; None: it need not."""
        return self.expires_at


class VouchedFor(Token, frozen=True):
    """Stands in for a token where somebody else vouches: nobody can send it, because nobody ever got its secret.

    It has no end of its own: the session has, and whoever is vouched for again gets another.
    """

    def gives_until(self, now: Instant, /) -> Instant | None:
        return later(now, LONGEST_GIFT)
