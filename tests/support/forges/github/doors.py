"""Who calls the fake, and what they may do there."""

import secrets
from collections.abc import Mapping
from typing import Any

import jwt
from jwt.types import Options
from msgspec import Struct

from mergeyard.domain.instants import HOUR, SECOND, Instant, later
from mergeyard.ports.clock import Clock
from tests.support.forges.github.facts import AppFacts

LONGEST_CLAIM = 600
LEVELS = {"none": 0, "read": 1, "write": 2, "admin": 3}


class Visitor(Struct, frozen=True):
    login: str
    permissions: Mapping[str, str]
    owners: frozenset[str] | None = None
    """Whose repositories are seen; None: everybody's."""
    repositories: frozenset[str] | None = None
    """Their full names in lower case; None: all of these owners."""
    is_app: bool = False

    def sees(self, repository: str) -> bool:
        """Given its full name in lower case."""
        owner = repository.partition("/")[0]
        return (self.owners is None or owner in self.owners) and (
            self.repositories is None or repository in self.repositories
        )

    def may(self, permission: str, level: str) -> bool:
        return LEVELS[self.permissions.get(permission, "none")] >= LEVELS[level]


class Doors:
    def __init__(self, clock: Clock) -> None:
        self.app: AppFacts | None = None
        self.tokens: dict[str, Visitor] = {}
        """Tokens of people."""
        self.given: list[str] = []
        """Every token that an installation was ever given, oldest first."""
        self._clock = clock
        self._installed: dict[str, tuple[Visitor, Instant]] = {}

    def visitor(self, token: str) -> Visitor | None:
        if token in self.tokens:
            return self.tokens[token]
        visitor, until = self._installed.get(token, (None, Instant(0)))
        if visitor is not None:
            return visitor if self._clock.now() < until else None
        return self._app(token)

    def give(
        self, installation: int, repositories: frozenset[str] | None, permissions: Mapping[str, str] | None
    ) -> tuple[str, Instant] | None:
        """A token that is good for an hour, for these repositories and permissions; they are not checked here. Tokens
        are long, and of no fixed length."""
        if self.app is None or self.app.suspended or installation not in self.app.installed_in.values():
            return None
        owners = frozenset(owner for owner, number in self.app.installed_in.items() if number == installation)
        token = f"ghs_{secrets.token_urlsafe(20 + len(self.given) * 100)}"
        until = later(self._clock.now(), HOUR)
        self.given.append(token)
        allowed = self.app.permissions if permissions is None else permissions
        self._installed[token] = (Visitor(f"{self.app.slug}[bot]", allowed, owners, repositories), until)
        return token, until

    def revoke(self) -> None:
        """Every token of every installation."""
        self._installed.clear()

    def _app(self, token: str) -> Visitor | None:
        """Whoever has signed with the app's key, a moment ago and for a moment."""
        if self.app is None:
            return None
        unverified: Options = {"verify_exp": False, "verify_iat": False}
        try:
            claims: dict[str, Any] = jwt.decode(
                token, self.app.public_key, algorithms=["RS256"], issuer=self.app.id, options=unverified
            )
        except jwt.PyJWTError:
            return None
        now = self._clock.now() // SECOND
        fresh = claims["iat"] <= now < claims["exp"] <= now + LONGEST_CLAIM
        return Visitor(self.app.slug, {}, is_app=True) if fresh else None
