"""GitHub's JSON, with the members that we read."""

from datetime import datetime
from typing import Any

from msgspec import Struct, field

from mergeyard.adapters.forges.host import User


class Owner(Struct, frozen=True):
    id: int = 0
    login: str = ""


class RepositoryName(Struct, frozen=True):
    full_name: str
    owner: Owner = Owner()
    default_branch: str = ""


class Label(Struct, frozen=True):
    name: str


class PullRequestBranch(Struct, frozen=True):
    """The head or base branch of a pull request. `repo` is None when the repository was deleted."""

    ref: str
    sha: str
    repo: RepositoryName | None = None


class PullRequestPayload(Struct, frozen=True, kw_only=True):
    number: int
    state: str
    title: str
    head: PullRequestBranch
    base: PullRequestBranch
    updated_at: datetime
    user: User | None = None
    draft: bool = False
    labels: tuple[Label, ...] = ()
    merged_at: str | None = None
    mergeable: bool | None = None
    mergeable_state: str = "unknown"
    merge_commit_sha: str | None = None
    commits: int = 0
    changed_files: int = 0
    """How many of each; only in the answer about one pull request."""
    stack: Any = None
    """Only of a stacked pull request."""
    maintainer_can_modify: bool = False
    """Its author lets accounts with write access push to its branch in a fork; only in the answer about one."""

    @property
    def merge_commit(self) -> str | None:
        """The commit that merged it; None: it is not merged. Later versions of GitHub's API have no `merge_commit_sha`,
        which is read only here."""
        return self.merge_commit_sha if self.merged_at else None

    @property
    def is_fork(self) -> bool:
        """A head whose repository was deleted came from a fork."""
        return self.head.repo is None or self.base.repo is None or self.head.repo.full_name != self.base.repo.full_name


class UserDetails(Struct, frozen=True):
    """`name` is None for an account without a display name."""

    login: str
    id: int
    name: str | None = None
    email: str | None = None
    """Only if the account makes it public, which takes a verified address."""


class PullRequestTextPayload(Struct, frozen=True):
    """Only of a pull request whose text is needed: the poller keeps many pull requests in memory."""

    title: str
    body: str | None = None
    user: UserDetails | None = None


class MergeResult(Struct, frozen=True):
    sha: str


class GitObject(Struct, frozen=True):
    sha: str


class GitRef(Struct, frozen=True):
    object: GitObject


class CommitStatus(Struct, frozen=True):
    context: str
    state: str
    updated_at: datetime
    id: int = 0
    target_url: str | None = None
    description: str | None = None
    avatar_url: str | None = None
    """Contains the id of the app that reported it, if the app has a logo."""


class RequiredCheck(Struct, frozen=True):
    context: str
    app_id: int | None = None
    integration_id: int | None = None

    @property
    def app(self) -> int | None:
        """The only app whose report counts; None: any source. Classic protection and rulesets use different members."""
        app = self.app_id or self.integration_id or 0
        return app if app > 0 else None


class RequiredChecks(Struct, frozen=True):
    contexts: tuple[str, ...] = ()
    checks: tuple[RequiredCheck, ...] = ()

    @property
    def all_checks(self) -> tuple[RequiredCheck, ...]:
        """Older servers return only the names."""
        with_app = {check.context for check in self.checks}
        return (*self.checks, *(RequiredCheck(context) for context in self.contexts if context not in with_app))


class CombinedStatus(Struct, frozen=True):
    statuses: tuple[CommitStatus, ...]


class Creator(Struct, frozen=True):
    login: str = ""
    type: str = ""

    @property
    def app_slug(self) -> str | None:
        """The name of the app in URLs; None for a user. No user can have a name with brackets."""
        slug = self.login.removesuffix("[bot]")
        return slug if self.type == "Bot" and slug not in ("", self.login) else None


class CreatedStatus(Struct, frozen=True):
    """A commit status in the list of all reports, which names its creator."""

    id: int
    creator: Creator | None = None


class CheckApp(Struct, frozen=True):
    id: int = 0
    name: str = ""
    slug: str = ""


class SuiteOfRun(Struct, frozen=True):
    id: int


class CheckSuite(Struct, frozen=True):
    app: CheckApp | None = None
    updated_at: datetime | None = None
    status: str | None = None
    conclusion: str | None = None
    latest_check_runs_count: int = 0

    @property
    def has_ended(self) -> bool:
        return self.conclusion is not None or self.status == "startup_failure"

    @property
    def failed_to_start(self) -> bool:
        """A workflow file with an error makes a suite without runs. What GitHub shows depends on the error."""
        is_empty_failure = self.conclusion == "failure" and self.latest_check_runs_count == 0
        return is_empty_failure or "startup_failure" in (self.conclusion, self.status)


class CheckSuites(Struct, frozen=True):
    check_suites: tuple[CheckSuite, ...]


class CheckOutput(Struct, frozen=True):
    title: str | None = None


class CheckRun(Struct, frozen=True, kw_only=True):
    id: int
    name: str
    status: str
    conclusion: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    details_url: str | None = None
    html_url: str | None = None
    app: CheckApp | None = None
    check_suite: SuiteOfRun | None = None
    output: CheckOutput = CheckOutput()


class CheckRuns(Struct, frozen=True):
    check_runs: tuple[CheckRun, ...]


class Collaborator(Struct, frozen=True):
    permissions: dict[str, bool] = field(default_factory=dict[str, bool])


class Role(Struct, frozen=True):
    permission: str
    """`admin`, `write`, `read` or `none`; newer roles are mapped to the nearest of these."""
    role_name: str = ""
    """Can be the name of a custom role."""
    user: Collaborator | None = None

    @property
    def can_write(self) -> bool:
        return self.permission in ("admin", "write")

    @property
    def can_maintain(self) -> bool:
        """A custom role has the permissions of the role that it is built on."""
        has_permission = self.user is not None and bool(self.user.permissions.get("maintain"))
        return self.permission == "admin" or self.role_name == "maintain" or (self.can_write and has_permission)


class Repository(Struct, frozen=True, kw_only=True):
    default_branch: str
    permissions: dict[str, bool] = field(default_factory=dict[str, bool])
    allow_merge_commit: bool = True
    allow_squash_merge: bool = True
    allow_rebase_merge: bool = True


class AppDetails(Struct, frozen=True, kw_only=True):
    id: int
    slug: str = ""
    name: str = ""
    permissions: dict[str, str] = field(default_factory=dict[str, str])
    events: tuple[str, ...] = ()


class Installation(Struct, frozen=True, kw_only=True):
    id: int
    permissions: dict[str, str] = field(default_factory=dict[str, str])
    suspended_at: str | None = None


class InstallationToken(Struct, frozen=True):
    token: str
    expires_at: datetime


class HookConfig(Struct, frozen=True):
    url: str = ""
    content_type: str = ""


class Hook(Struct, frozen=True):
    events: tuple[str, ...]
    active: bool = True
    config: HookConfig = HookConfig()


# Facts about a pull request: members of the GraphQL API and of lists that only rules need.


class ReviewedCommit(Struct, frozen=True):
    oid: str


class Review(Struct, frozen=True, rename="camel"):
    """The last review of a user with write access that approves, requests changes, or was dismissed."""

    state: str
    author: User | None = None
    commit: ReviewedCommit | None = None

    @property
    def author_name(self) -> str:
        return f"@{self.author.login}" if self.author else ""


class Reviews(Struct, frozen=True):
    nodes: tuple[Review | None, ...] = ()


class Reviewer(Struct, frozen=True, rename="camel"):
    login: str = ""
    combined_slug: str = ""


class Team(Struct, frozen=True):
    id: int
    slug: str


class ReviewRequest(Struct, frozen=True, rename="camel"):
    as_code_owner: bool = False
    requested_reviewer: Reviewer | None = None

    @property
    def name(self) -> str:
        reviewer = self.requested_reviewer or Reviewer()
        name = reviewer.combined_slug or reviewer.login
        return f"@{name}" if name else ""


class ReviewRequests(Struct, frozen=True):
    nodes: tuple[ReviewRequest | None, ...] = ()


class Conversation(Struct, frozen=True, rename="camel"):
    is_resolved: bool


class PageInfo(Struct, frozen=True, rename="camel"):
    has_next_page: bool
    end_cursor: str | None = None


class Conversations(Struct, frozen=True, rename="camel"):
    total_count: int
    nodes: tuple[Conversation | None, ...]
    page_info: PageInfo


class EditedComment(Struct, frozen=True, rename="camel"):
    full_database_id: str | int = ""
    last_edited_at: datetime | None = None


class EditedComments(Struct, frozen=True):
    nodes: tuple[EditedComment | None, ...] = ()


class PullRequestFacts(Struct, frozen=True, rename="camel"):
    comments: EditedComments | None = None
    review_decision: str | None = None
    latest_opinionated_reviews: Reviews | None = None
    review_requests: ReviewRequests | None = None
    review_threads: Conversations | None = None


class OtherPullRequest(Struct, frozen=True, rename="camel"):
    number: int
    state: str
    head_ref_name: str
    head_ref_oid: str
    review_decision: str | None = None
    latest_opinionated_reviews: Reviews | None = None


class OtherPullRequests(Struct, frozen=True):
    nodes: tuple[OtherPullRequest | None, ...] = ()


class CommitNode(Struct, frozen=True, rename="camel"):
    associated_pull_requests: OtherPullRequests | None = None


class RepositoryNode(Struct, frozen=True, rename="camel"):
    pull_request: PullRequestFacts | None = None
    same_name: OtherPullRequests | None = None
    """The open pull requests whose head branches have the same name, also those in forks."""
    head_commit: CommitNode | None = None
    """The head of the pull request; None: only a fork has this commit."""

    def list_same_head(self, number: int, head: str) -> tuple[OtherPullRequest, ...]:
        """The other open pull requests with this head."""
        listed = (self.same_name, self.head_commit and self.head_commit.associated_pull_requests)
        others = {other.number: other for each in listed if each for other in each.nodes if other}
        same = [each for each in others.values() if (each.state, each.head_ref_oid) == ("OPEN", head)]
        return tuple(sorted((each for each in same if each.number != number), key=lambda other: other.number))


class QueryData(Struct, frozen=True):
    repository: RepositoryNode | None = None


class QueryError(Struct, frozen=True):
    message: str = ""
    type: str = ""
    path: tuple[str | int, ...] | None = None
    """To the member that is null because of this error."""


class QueryResult(Struct, frozen=True):
    data: QueryData | None = None
    errors: tuple[QueryError, ...] = ()


class Activity(Struct, frozen=True):
    after: str
    actor: User | None = None


class ChangedFile(Struct, frozen=True):
    filename: str
    previous_filename: str | None = None


class Verification(Struct, frozen=True):
    verified: bool = False


class CommitDetails(Struct, frozen=True):
    verification: Verification = Verification()


class ListedCommit(Struct, frozen=True):
    sha: str
    commit: CommitDetails = CommitDetails()


class SshSigningKey(Struct, frozen=True):
    key: str = ""
    """A line such as `ssh-ed25519 AAAA… comment`."""


class KeyAddress(Struct, frozen=True):
    email: str = ""
    verified: bool = False


class GpgKey(Struct, frozen=True):
    key_id: str | None = None
    """The last 16 digits of the fingerprint."""
    revoked: bool = False
    emails: list[KeyAddress] | None = None
    """Of its identities. One is verified if it is an address of the account."""

    def has_verified(self, address: str) -> bool:
        return any(each.verified and each.email.casefold() == address.casefold() for each in self.emails or ())


class Deployment(Struct, frozen=True):
    id: int


class DeploymentStatus(Struct, frozen=True):
    state: str
