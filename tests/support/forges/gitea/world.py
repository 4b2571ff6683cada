"""The state of the fake Gitea: accounts, repositories, pull requests, and who is allowed to do what."""

from base64 import b64decode
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import count
from threading import RLock
from uuid import uuid4

from msgspec import Struct, field

from mergeyard.domain.ids import Sha
from mergeyard.domain.timestamps import SECOND
from mergeyard.ports.external import Clock
from tests.support.forges.git_server import GitRequest, GitServer
from tests.support.repositories import Origin


class Key(Struct):
    """A public key of an account: of SSH, or of OpenPGP. Only the signatures of a verified one count."""

    id: int
    content: str
    """A line of an SSH key, or the fingerprint of an OpenPGP key."""
    verified: bool = False

    @property
    def is_ssh(self) -> bool:
        return " " in self.content

    @property
    def mark(self) -> bytes:
        """What every signature of the key contains."""
        return b64decode(self.content.split()[1]) if self.is_ssh else bytes.fromhex(self.content)


class Account(Struct):
    id: int
    login: str
    password: str = ""
    site_admin: bool = False
    full_name: str = ""
    hides_email: bool = False
    keys: list[Key] = field(default_factory=list[Key])
    address: str = ""

    @property
    def email(self) -> str:
        return self.address or f"{self.login}@example.org"


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
    """A review of an account, or a request to an account or a team."""

    id: int
    author: Account | None
    state: str
    body: str
    commit: Sha
    official: bool
    team: str = ""
    dismissed: bool = False


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
    """A pull request that must be closed before another one is merged, and its repository."""

    repository: "Repository"
    pull_request: "PullRequest"


class PullRequest(Struct):
    number: int
    author: Account
    title: str
    body: str
    base: str
    head_branch: str
    head_repository: "Repository"
    head: Sha
    merge_base: Sha | None
    """From here to the head are the changes that Gitea shows. It stays as it is when the pull request is merged."""
    created: datetime
    updated: datetime
    state: str = "open"
    merged: bool = False
    merge_commit: Sha | None = None
    mergeability_unknown: bool = False
    """Set by tests: Gitea has not determined the mergeability yet."""
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
    push_whitelist_teams: list[str] = field(default_factory=list[str])
    push_whitelist_deploy_keys: bool = False
    merge_whitelist_teams: list[str] = field(default_factory=list[str])
    enable_approvals_whitelist: bool = False
    approvals_whitelist_username: list[str] = field(default_factory=list[str])
    enable_status_check: bool = False
    status_check_contexts: list[str] = field(default_factory=list[str])
    required_approvals: int = 0
    block_on_rejected_reviews: bool = False
    block_on_official_review_requests: bool = False
    block_on_outdated_branch: bool = False
    ignore_stale_approvals: bool = False
    require_signed_commits: bool = False
    protected_file_patterns: str = ""
    unprotected_file_patterns: str = ""
    block_admin_merge_override: bool = False


class Settings(Struct):
    """Settings of a repository, with the defaults of a new one."""

    default_branch: str = "main"
    archived: bool = False
    has_pull_requests: bool = True
    allow_merge_commits: bool = True
    allow_squash_merge: bool = True
    allow_rebase: bool = True
    allow_manual_merge: bool = False
    autodetect_manual_merge: bool = False
    internal_tracker: dict[str, bool] = field(default_factory=lambda: {"enable_issue_dependencies": True})


class Repository(Struct):
    id: int
    owner: Account
    name: str
    origin: Origin
    settings: Settings = field(default_factory=Settings)
    roles: dict[str, str] = field(default_factory=dict[str, str])
    pull_requests: dict[int, PullRequest] = field(default_factory=dict[int, PullRequest])
    labels: list[Label] = field(default_factory=list[Label])
    statuses: list[Status] = field(default_factory=list[Status])
    rules: list[Rule] = field(default_factory=list[Rule])
    hooks: list[Hook] = field(default_factory=list[Hook])

    @property
    def path(self) -> str:
        return f"{self.owner.login}/{self.name}"


ROLES = ("none", "read", "write", "admin", "owner")
TOKEN_AS_USER = "x-oauth-basic"


class ApiError(Exception):
    """An error response of the API."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class World:
    def __init__(self, clock: Clock) -> None:
        self.url = ""
        self._clock = clock
        self.lock = RLock()
        self.accounts: dict[str, Account] = {}
        self.tokens: dict[str, Token] = {}
        self.repositories: dict[str, Repository] = {}
        self.git_server: GitServer
        self._ids = count(1)

    def next_id(self) -> int:
        return next(self._ids)

    def now(self) -> datetime:
        """Gitea's times are whole seconds."""
        return datetime.fromtimestamp(self._clock.now() // SECOND, UTC)

    def account(self, login: str) -> Account:
        found = self.accounts.get(login.lower())
        if found is None:
            raise ApiError(404, f"user does not exist [name: {login}]")
        return found

    def make_account(self, login: str, password: str, *, site_admin: bool = False) -> Account:
        account = self.accounts[login.lower()] = Account(self.next_id(), login, password, site_admin)
        return account

    def make_token(self, account: Account, *scopes: str) -> str:
        secret = uuid4().hex + "0" * 8
        self.tokens[secret] = Token(account, frozenset(scopes))
        return secret

    def repository(self, owner: str, name: str) -> Repository:
        found = self.repositories.get(f"{owner}/{name}".lower())
        if found is None:
            raise ApiError(404, "not found")
        return found

    def role(self, repository: Repository, account: Account) -> str:
        """All repositories are public."""
        if account is repository.owner:
            return "owner"
        return "admin" if account.site_admin else repository.roles.get(account.login, "read")

    def has_role(self, repository: Repository, account: Account, least: str) -> bool:
        return ROLES.index(self.role(repository, account)) >= ROLES.index(least)

    def is_git_request_allowed(self, request: GitRequest) -> bool:
        """The token can be the user name or the password."""
        token = self.tokens.get(request.user if request.password == TOKEN_AS_USER else request.password)
        if token is None or not token.scopes & {"all", "write:repository"}:
            return False
        repository = self.repositories[request.repository.lower()]
        return not request.is_write or self.has_role(repository, token.account, "write")


def find_pull_request(repository: Repository, number: str) -> PullRequest:
    found = repository.pull_requests.get(int(number))
    if found is None:
        raise ApiError(404, "not found")
    return found


def find_comment(repository: Repository, identity: str) -> tuple[PullRequest, Comment]:
    for pull in repository.pull_requests.values():
        for comment in pull.comments:
            if comment.id == int(identity):
                return pull, comment
    raise ApiError(404, "comment does not exist")


def find_rule(repository: Repository, branch: str) -> Rule | None:
    """The first matching rule; an exact name has precedence."""
    matching = [rule for rule in repository.rules if fnmatchcase(branch, rule.rule_name)]
    return min(matching, key=lambda rule: rule.rule_name != branch, default=None)
