"""What there is in the fake: people, pull requests, and what was said and reported about them."""

from typing import Any

from msgspec import Struct, field

from mergeyard.domain.ids import Sha
from mergeyard.domain.instants import Instant


class Change(Struct, kw_only=True):
    """A pull request."""

    number: int
    title: str
    author: str
    base: str
    branch: str
    head: Sha
    home: str
    """The full name of the repository that the branch is in."""
    at: Instant
    draft: bool = False
    open: bool = True
    text: str = ""
    merged: Sha | None = None
    """The commit by which it came into its base."""
    labels: list[str] = field(default_factory=list[str])
    reviews: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Who said what, oldest first: `("grace", "APPROVED")`."""
    being_checked: int = 0
    """So many readings will not yet know whether it can be merged."""


class Said(Struct, kw_only=True):
    id: int
    number: int
    author: str
    text: str
    said_at: Instant
    changed_at: Instant
    reactions: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


class Reported(Struct, kw_only=True):
    """A commit status."""

    context: str
    state: str
    at: Instant
    url: str | None = None
    description: str | None = None
    app: int | None = None
    """Which app reported it; None: a person."""


class Ran(Struct, kw_only=True):
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


class Guard(Struct, kw_only=True):
    """What protects a branch."""

    contexts: list[str] = field(default_factory=list[str])
    apps: dict[str, int] = field(default_factory=dict[str, int])
    """Contexts that only this app may report."""
    approvals: int = 0
    reviews: dict[str, Any] = field(default_factory=dict[str, Any])
    """What else is wanted of reviews, in GitHub's words; nobody fulfils it here."""
    further: dict[str, Any] = field(default_factory=dict[str, Any])
    """Other rules, in GitHub's words; nobody fulfils them either."""
    bypass: dict[str, str] = field(default_factory=dict[str, str])
    """Logins on the bypass list, each with the mode of a ruleset: `always`, `pull_request` or `exempt`."""
    enforce_admins: bool = True
    """Of classic protection: it applies to administrators too."""


class Hook(Struct, kw_only=True):
    address: str
    secret: str
    events: list[str]
    content_type: str = "json"
    active: bool = True


class AppFacts(Struct, kw_only=True):
    """A registered app, and where it is installed."""

    id: str
    public_key: str
    slug: str = "mergeyard-test"
    permissions: dict[str, str] = field(default_factory=dict[str, str])
    events: list[str] = field(default_factory=list[str])
    hooks: list[Hook] = field(default_factory=list[Hook])
    """One at most."""
    installed_in: dict[str, int] = field(default_factory=dict[str, int])
    """Owners, each with the number of the installation."""
    suspended: bool = False
