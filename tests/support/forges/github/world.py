"""The state of the fake GitHub: pull requests, comments, statuses, protections, and callers with their permissions."""

import secrets
from collections.abc import Mapping
from typing import Any

import jwt
from jwt.types import Options
from msgspec import Struct, field

from mergeyard.domain.ids import Sha
from mergeyard.domain.timestamps import HOUR, SECOND, Instant, later
from mergeyard.ports.external import Clock


class PullRequest(Struct, kw_only=True):
    """A pull request."""

    number: int
    title: str
    author: str
    base: str
    branch: str
    head: Sha
    home: str
    """Full name of the repository that contains the head branch."""
    at: Instant
    draft: bool = False
    open: bool = True
    text: str = ""
    merged: Sha | None = None
    """The commit that merged it."""
    labels: list[str] = field(default_factory=list[str])
    reviews: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """User and state, oldest first: `("grace", "APPROVED")`."""
    being_checked: int = 0
    """Number of reads for which the mergeability is still unknown."""


class Comment(Struct, kw_only=True):
    id: int
    number: int
    author: str
    body: str
    created_at: Instant
    updated_at: Instant
    reactions: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


class CommitStatus(Struct, kw_only=True):
    """A commit status."""

    context: str
    state: str
    at: Instant
    url: str | None = None
    description: str | None = None
    app: int | None = None
    """ID of the app that reported it; None for a user."""


class CheckRun(Struct, kw_only=True):
    """A check run."""

    id: int
    name: str
    status: str
    conclusion: str | None
    started_at: Instant | None
    completed_at: Instant | None
    suite: int
    app: str = "GitHub Actions"
    app_id: int = 15368
    url: str | None = None
    title: str | None = None


class BranchProtection(Struct, kw_only=True):
    """Protection of a branch."""

    contexts: list[str] = field(default_factory=list[str])
    apps: dict[str, int] = field(default_factory=dict[str, int])
    """Contexts that must be reported by this app."""
    approvals: int = 0
    reviews: dict[str, Any] = field(default_factory=dict[str, Any])
    """Other review requirements, as in GitHub's API; they are never fulfilled here."""
    other_rules: dict[str, Any] = field(default_factory=dict[str, Any])
    """Other rules, as in GitHub's API; they are never fulfilled here."""
    bypass: dict[str, str] = field(default_factory=dict[str, str])
    """Logins on the bypass list, each with the mode of a ruleset: `always`, `pull_request` or `exempt`."""
    enforce_admins: bool = True
    """Classic protection applies to administrators too."""


class Hook(Struct, kw_only=True):
    url: str
    secret: str
    events: list[str]
    content_type: str = "json"
    active: bool = True


class RegisteredApp(Struct, kw_only=True):
    """A registered app and its installations."""

    id: str
    public_key: str
    slug: str = "mergeyard-test"
    permissions: dict[str, str] = field(default_factory=dict[str, str])
    events: list[str] = field(default_factory=list[str])
    hooks: list[Hook] = field(default_factory=list[Hook])
    """At most one."""
    installations: dict[str, int] = field(default_factory=dict[str, int])
    """Installation ID by owner."""
    suspended: bool = False


MAX_JWT_LIFETIME_S = 600
PERMISSION_LEVELS = {"none": 0, "read": 1, "write": 2, "admin": 3}


class Caller(Struct, frozen=True):
    login: str
    permissions: Mapping[str, str]
    owners: frozenset[str] | None = None
    """Owners whose repositories are visible; None for all."""
    repositories: frozenset[str] | None = None
    """Visible repositories, full names in lower case; None for all of these owners."""
    is_app: bool = False

    def can_see(self, repository: str) -> bool:
        """`repository` is a full name in lower case."""
        owner = repository.partition("/")[0]
        return (self.owners is None or owner in self.owners) and (
            self.repositories is None or repository in self.repositories
        )

    def has_permission(self, permission: str, level: str) -> bool:
        return PERMISSION_LEVELS[self.permissions.get(permission, "none")] >= PERMISSION_LEVELS[level]


class Authentication:
    def __init__(self, clock: Clock) -> None:
        self.app: RegisteredApp | None = None
        self.tokens: dict[str, Caller] = {}
        """Tokens of users."""
        self.issued_tokens: list[str] = []
        """All installation tokens that were ever issued, oldest first."""
        self._clock = clock
        self._installation_tokens: dict[str, tuple[Caller, Instant]] = {}

    def find_caller(self, token: str) -> Caller | None:
        if token in self.tokens:
            return self.tokens[token]
        caller, expires_at = self._installation_tokens.get(token, (None, Instant(0)))
        if caller is not None:
            return caller if self._clock.now() < expires_at else None
        return self._find_app(token)

    def issue_token(
        self, installation: int, repositories: frozenset[str] | None, permissions: Mapping[str, str] | None
    ) -> tuple[str, Instant] | None:
        """A token that is valid for an hour, for these repositories and permissions, which are not checked here. Tokens
        have no fixed length."""
        if self.app is None or self.app.suspended or installation not in self.app.installations.values():
            return None
        owners = frozenset(owner for owner, number in self.app.installations.items() if number == installation)
        token = f"ghs_{secrets.token_urlsafe(20 + len(self.issued_tokens) * 100)}"
        expires_at = later(self._clock.now(), HOUR)
        self.issued_tokens.append(token)
        allowed = self.app.permissions if permissions is None else permissions
        self._installation_tokens[token] = (Caller(f"{self.app.slug}[bot]", allowed, owners, repositories), expires_at)
        return token, expires_at

    def revoke_installation_tokens(self) -> None:
        """Revokes all installation tokens."""
        self._installation_tokens.clear()

    def _find_app(self, token: str) -> Caller | None:
        """The app, if the token is a JWT that its key signed recently and for a short time."""
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
        is_current = claims["iat"] <= now < claims["exp"] <= now + MAX_JWT_LIFETIME_S
        return Caller(self.app.slug, {}, is_app=True) if is_current else None
