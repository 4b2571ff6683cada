"""The state of the fake GitHub: pull requests, comments, statuses, protections, and callers with their permissions."""

import re
import secrets
from collections.abc import Mapping
from typing import Any
from zlib import crc32

import jwt
from jwt.types import Options
from msgspec import Struct, field
from msgspec.structs import replace

from mergeyard.domain.ids import Sha
from mergeyard.domain.timestamps import HOUR, SECOND, Instant, later
from mergeyard.ports.external import Clock


class Review(Struct, kw_only=True):
    """A review; a dismissed one stays in the list."""

    id: int
    user: str
    state: str
    """`APPROVED`, `CHANGES_REQUESTED`, `COMMENTED` or `DISMISSED`."""
    commit: Sha
    """The head that the user reviewed."""
    at: Instant
    on_behalf_of: tuple[str, ...] = ()
    """Teams that had to review and whose member the user is: `acme/db`."""


class ReviewRequest(Struct, frozen=True):
    reviewer: str
    """A user (`grace`) or a team (`acme/db`)."""
    as_code_owner: bool = False

    @property
    def is_team(self) -> bool:
        return "/" in self.reviewer


class ReviewThread(Struct):
    """A conversation about a line of a pull request."""

    is_resolved: bool = False
    is_outdated: bool = False


class StackPlace(Struct, frozen=True, kw_only=True):
    """The place of a pull request in a stack of GitHub's; 1 is the bottom."""

    number: int
    """The stack's own number."""
    base: str
    """The branch that the whole stack is for."""
    size: int
    position: int


class LateHead(Struct, frozen=True):
    """A push that GitHub has not noticed yet."""

    tip: Sha
    by: str
    reads: int
    """Of the pull request, until it is noticed."""


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
    merged_by: str = ""
    maintainer_can_modify: bool = False
    """Users with write access can push to its branch in a fork."""
    late_head: LateHead | None = None
    labels: list[str] = field(default_factory=list[str])
    last_pusher: str = ""
    """Who moved the head last."""
    reviews: list[Review] = field(default_factory=list[Review])
    """Oldest first."""
    review_requests: list[ReviewRequest] = field(default_factory=list[ReviewRequest])
    threads: list[ReviewThread] = field(default_factory=list[ReviewThread])
    being_checked: int = 0
    """Number of reads for which the mergeability is still unknown."""
    stack: StackPlace | None = None
    commits: int = 1
    changed_files: int = 1
    """The numbers that GitHub shows; a test sets them."""
    is_for_person: bool = False
    """Copilot opened it on behalf of a person. GitHub's API does not show that."""


class Comment(Struct, kw_only=True):
    id: int
    number: int
    author: str
    body: str
    posted_body: str
    created_at: Instant
    updated_at: Instant
    """Not only edits change it: hiding the comment does, and it can be a second later from the start."""
    reactions: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @property
    def last_edited_at(self) -> Instant | None:
        return None if self.body == self.posted_body else self.updated_at


class CommitStatus(Struct, kw_only=True):
    """A commit status."""

    id: int
    context: str
    state: str
    at: Instant
    url: str | None = None
    description: str | None = None
    app: int | None = None
    """ID of the app that reported it; None for a user."""
    creator: str = "ada"
    """The user that reported it. For an app, its bot is the creator."""


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


class CheckSuite(Struct, kw_only=True):
    """A check suite. One of a workflow that could not start has no check runs."""

    id: int
    at: Instant
    status: str
    conclusion: str | None
    app: str = "GitHub Actions"
    app_id: int = 15368
    runs: int = 0


class Deployment(Struct, kw_only=True):
    id: int
    sha: str
    environment: str
    states: list[str]
    """States that the environment reported, oldest first."""


class Activity(Struct, kw_only=True):
    """A change of a branch."""

    id: int
    kind: str
    ref: str
    before: str
    after: str
    actor: str
    at: Instant


class Team(Struct, kw_only=True):
    id: int
    slug: str
    members: set[str] = field(default_factory=set[str])


class BranchProtection(Struct, kw_only=True):
    """Protection of a branch: classic protection, or a short form of a ruleset."""

    contexts: list[str] = field(default_factory=list[str])
    apps: dict[str, int] = field(default_factory=dict[str, int])
    """Contexts that must be reported by this app."""
    approvals: int = 0
    reviews: dict[str, Any] = field(default_factory=dict[str, Any])
    """Other review requirements, as in GitHub's API."""
    other_rules: dict[str, Any] = field(default_factory=dict[str, Any])
    """Other rules, as in GitHub's API."""
    bypass: dict[str, str] = field(default_factory=dict[str, str])
    """Logins on the bypass list, each with the mode of a ruleset: `always`, `pull_request` or `exempt`."""
    enforce_admins: bool = True
    """Classic protection applies to administrators too."""
    strict: bool = False
    """The head must contain the tip of the base branch."""


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


class PublicApp(Struct, frozen=True, kw_only=True):
    """What every account can see of an app."""

    id: int
    slug: str
    owner: str = "acme"
    has_logo: bool = True
    """Without a logo GitHub shows the avatar of the owner."""

    @property
    def bot(self) -> str:
        return f"{self.slug}[bot]"

    @property
    def avatar_path(self) -> str:
        return f"in/{self.id}" if self.has_logo else f"u/{to_account_id(self.owner)}"


DEFAULT_SLUG = re.compile(r"app-([0-9]{1,12})")


def to_account_id(login: str) -> int:
    """The ID of a user or an organization."""
    return crc32(login.lower().encode()) % 10**8 + 1


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
    """The app itself, with its JWT."""
    app_id: int | None = None
    """The app of an installation token."""

    @property
    def account(self) -> str:
        """Whose rate limit a request counts against: a user, an app, or one installation of an app."""
        return f"{self.login} of {', '.join(sorted(self.owners))}" if self.owners else self.login

    def can_see(self, repository: str) -> bool:
        """`repository` is a full name in lower case."""
        owner = repository.partition("/")[0]
        return (self.owners is None or owner in self.owners) and (
            self.repositories is None or repository in self.repositories
        )

    @property
    def can_resolve_teams(self) -> bool:
        """Teams belong to the organization. No document says whether the token of an installation that is limited to
        repositories can read them; users report that it cannot, also with the permission Members."""
        return self.app_id is None or self.repositories is None

    def has_permission(self, permission: str, level: str) -> bool:
        return PERMISSION_LEVELS[self.permissions.get(permission, "none")] >= PERMISSION_LEVELS[level]


class Authentication:
    def __init__(self, clock: Clock) -> None:
        self.app: RegisteredApp | None = None
        self.tokens: dict[str, Caller] = {}
        """Tokens of users."""
        self.public_apps = {"github-actions": PublicApp(id=15368, slug="github-actions")}
        """Other apps, by slug. An app that is missing here has the slug `app-<id>`, and a logo."""
        self.missing_users: set[str] = set()
        """Logins without an account; all others have one."""
        self.display_names: dict[str, str] = {}
        self.public_addresses: dict[str, str] = {}
        self.ssh_signing_keys: dict[str, list[str]] = {}
        """By login: lines such as `ssh-ed25519 AAAA…`."""
        self.gpg_keys: dict[str, dict[str, str]] = {}
        """By login: fingerprints, each with the address of its identity, which the account verified."""
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
        if self.app is None or installation not in self.app.installations.values():
            return None
        owners = frozenset(owner for owner, number in self.app.installations.items() if number == installation)
        token = f"ghs_{secrets.token_urlsafe(20 + len(self.issued_tokens) * 100)}"
        expires_at = later(self._clock.now(), HOUR)
        self.issued_tokens.append(token)
        allowed = self.app.permissions if permissions is None else permissions
        self._installation_tokens[token] = (self._installation_caller(owners, repositories, allowed), expires_at)
        return token, expires_at

    def _installation_caller(
        self, owners: frozenset[str], repositories: frozenset[str] | None, permissions: Mapping[str, str]
    ) -> Caller:
        assert self.app is not None
        login = f"{self.app.slug}[bot]"
        return Caller(login, permissions, owners, repositories, app_id=self.find_app_id(login))

    def find_app_id(self, login: str) -> int:
        """The ID of the app that acts as `<slug>[bot]`."""
        is_registered = self.app is not None and login == f"{self.app.slug}[bot]"
        return int(self.app.id) if self.app is not None and is_registered else to_account_id(login)

    def find_app(self, app_id: int) -> PublicApp:
        own = [PublicApp(id=int(self.app.id), slug=self.app.slug)] if self.app else []
        known = [app for app in (*self.public_apps.values(), *own) if app.id == app_id]
        return known[0] if known else PublicApp(id=app_id, slug=f"app-{app_id}")

    def find_app_by_slug(self, slug: str) -> PublicApp | None:
        if self.app is not None and slug == self.app.slug:
            return self.find_app(int(self.app.id))
        unnamed = DEFAULT_SLUG.fullmatch(slug)
        return self.public_apps.get(slug) or (self.find_app(int(unnamed[1])) if unnamed else None)

    def is_suspended(self, caller: Caller) -> bool:
        """Whether the caller is an installation of the registered app, which its owner suspended."""
        return self.app is not None and self.app.suspended and caller.app_id == int(self.app.id)

    def rename_repository(self, old: str, new: str) -> None:
        """Installation tokens are for repositories, whatever their names. Both names are in lower case."""
        for token, (caller, expires_at) in self._installation_tokens.items():
            names = frozenset(new if name == old else name for name in caller.repositories or ())
            renamed = replace(caller, repositories=names) if caller.repositories else caller
            self._installation_tokens[token] = (renamed, expires_at)

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
