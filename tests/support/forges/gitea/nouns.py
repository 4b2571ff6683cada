"""What a Gitea knows of: accounts, repositories, pull requests and all that is put on them."""

from datetime import datetime

from msgspec import Struct, field

from mergeyard.domain.ids import Sha
from tests.support.repositories import Origin


class Account(Struct):
    id: int
    login: str
    password: str = ""
    site_admin: bool = False


class Token(Struct):
    account: Account
    scopes: frozenset[str]


class Label(Struct):
    id: int
    name: str
    color: str


class Reaction(Struct, frozen=True):
    login: str
    content: str


class Comment(Struct):
    id: int
    author: Account
    body: str
    created: datetime
    updated: datetime
    reactions: list[Reaction] = field(default_factory=list[Reaction])


class Review(Struct):
    id: int
    author: Account
    state: str
    body: str
    commit: Sha
    official: bool


class Status(Struct):
    id: int
    creator: Account
    sha: Sha
    context: str
    state: str
    target_url: str
    description: str
    created: datetime


class Hook(Struct):
    id: int
    url: str
    secret: str
    content_type: str
    events: list[str]
    active: bool


class Blocker(Struct):
    """What must be closed before something else is merged, and where it is."""

    repository: "Repository"
    pull: "Pull"


class Pull(Struct):
    number: int
    author: Account
    title: str
    body: str
    base: str
    branch: str
    source: "Repository"
    head: Sha
    created: datetime
    updated: datetime
    state: str = "open"
    merged: bool = False
    merge_commit: Sha | None = None
    checking: bool = False
    """A knob: it is still being looked at whether it can be merged."""
    pushes: int = 0
    labels: list[Label] = field(default_factory=list[Label])
    comments: list[Comment] = field(default_factory=list[Comment])
    reviews: list[Review] = field(default_factory=list[Review])
    blockers: list[Blocker] = field(default_factory=list[Blocker])

    @property
    def draft(self) -> bool:
        return self.title.upper().startswith(("WIP:", "[WIP]"))


class Rule(Struct):
    rule_name: str
    enable_push: bool = False
    enable_push_whitelist: bool = False
    push_whitelist_usernames: list[str] = field(default_factory=list[str])
    enable_merge_whitelist: bool = False
    merge_whitelist_usernames: list[str] = field(default_factory=list[str])
    enable_status_check: bool = False
    status_check_contexts: list[str] = field(default_factory=list[str])
    required_approvals: int = 0
    block_on_rejected_reviews: bool = False
    block_on_official_review_requests: bool = False
    ignore_stale_approvals: bool = False


class Settings(Struct):
    """Of a repository, as a new one has them."""

    default_branch: str = "main"
    archived: bool = False
    has_pull_requests: bool = True
    allow_merge_commits: bool = True
    allow_squash_merge: bool = True
    allow_rebase: bool = True
    allow_manual_merge: bool = False
    autodetect_manual_merge: bool = False


class Repository(Struct):
    id: int
    owner: Account
    name: str
    origin: Origin
    settings: Settings = field(default_factory=Settings)
    roles: dict[str, str] = field(default_factory=dict[str, str])
    pulls: dict[int, Pull] = field(default_factory=dict[int, Pull])
    labels: list[Label] = field(default_factory=list[Label])
    statuses: list[Status] = field(default_factory=list[Status])
    rules: list[Rule] = field(default_factory=list[Rule])
    hooks: list[Hook] = field(default_factory=list[Hook])

    @property
    def path(self) -> str:
        return f"{self.owner.login}/{self.name}"
