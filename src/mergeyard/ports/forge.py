"""Git hosts: repositories, pull requests, checks, comments and merges, on a forge or as plain Git."""

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.config import Config, HeadBranchFallback, LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import PullRequest, Status
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.git import Remote

MAX_REQUIREMENT_NAME_CHARS = 100
"""Names in a requirement are cut to this length."""

# What requests are for.


class RequestPurpose(StrEnum):
    """When a Git host allows only a few more requests, those of the first purpose stop first, those of the last one
    only when none is left."""

    DISPLAY = "display"
    """Dialogs, previews, and progress in comments."""
    WAITING = "waiting"
    """Commands, their answers, the end of a pull request, and reads of what only waits."""
    MERGING = "merging"
    """What a pull request under test needs to merge: its branch, its checks, the landing."""


_purpose = ContextVar("purpose", default=RequestPurpose.WAITING)


@contextmanager
def requests_for(purpose: RequestPurpose) -> Generator[None]:
    """The requests in this context have this purpose, and also those of tasks that are started in it."""
    token = _purpose.set(purpose)
    try:
        yield
    finally:
        _purpose.reset(token)


def current_purpose() -> RequestPurpose:
    return _purpose.get()


class RequestBudget(Struct, frozen=True, kw_only=True):
    """How many requests a Git host still accepts from one of our accounts."""

    account: str
    """`token`, `app`, or `installation` with its number."""
    api: str
    """`rest` or `graphql`: each has its own."""
    limit: int
    remaining: int
    resets_at: Instant
    """When `remaining` becomes `limit` again."""


# Webhooks from the forge.


class InvalidSignature(Exception):
    """A webhook is not signed as configured, or none is expected. Its body was not parsed."""


class PullRequestNotice(Struct, frozen=True):
    """A pull request, its labels or its comments changed."""

    repo: Repo
    number: PullRequestNumber


class BranchNotice(Struct, frozen=True):
    repo: Repo
    branch: str


class CommitNotice(Struct, frozen=True):
    """A check or status of this commit changed."""

    repo: Repo
    sha: Sha
    check: str | None = None
    """Its name; None if the webhook is about several."""


ForgeNotice = PullRequestNotice | BranchNotice | CommitNotice
"""Only a hint: the receiver reads the current state from the forge and trusts nothing in the webhook."""

# Comments and labels.

OWN_COMMENT_PREFIX = "<!-- mergeyard"
"""The start of every text that we post. A comment that starts with it is never a command, also if a user wrote it."""


class Comment(Struct, frozen=True, kw_only=True):
    id: str
    author: str
    text: str
    at: Instant
    is_changed: bool = False
    """Whether the forge shows a later time of its last change. That need not be an edit of the text."""


class Thread(Struct, frozen=True):
    """The labels and comments of a pull request."""

    labels: frozenset[str]
    comments: tuple[Comment, ...]
    """Oldest first."""


# Outcomes of a merge.


class Merged(Struct, frozen=True):
    """It is merged, by this call or an earlier one."""

    commit: Sha


class NotMerged(Struct, frozen=True):
    """The head differs, or something else changed that must be read again. Nothing was merged."""

    detail: str


class MergeRefused(Struct, frozen=True):
    """The forge permanently refuses this pull request."""

    detail: str


class MergeForbidden(Struct, frozen=True):
    """The forge does not let us merge at all, or not with this method: a permission or setting is missing. This is not
    the fault of any pull request."""

    detail: str


MergeOutcome = Merged | NotMerged | MergeRefused | MergeForbidden


class Merge(Struct, frozen=True, kw_only=True):
    """Which head to merge into which branch, by which method, with which commit message."""

    number: PullRequestNumber
    head: Sha
    base_branch: str
    method: MergeMethod
    title: str
    message: str
    is_fallback: bool = False
    """The queue pushes tested commits, but cannot move this head branch."""


class DraftPullRequest(Struct, frozen=True, kw_only=True):
    """A draft pull request that shows a test branch and is never merged."""

    branch: str
    base_branch: str
    title: str
    text: str


class PullRequestText(Struct, frozen=True, kw_only=True):
    """What a squashed commit says about a pull request. Bounded, because it comes from the Git host."""

    title: str
    body: str = ""
    author_name: str = ""
    """Empty: the Git host reports no name that a commit can have; the author of the first commit is taken."""
    author_email: str = ""
    """An address that the Git host shows with the account of the author."""


class Finding(Struct, frozen=True):
    """One requirement of the service and whether it is met; if not, the message says what to do."""

    ok: bool
    message: str
    advice: bool = False
    """Nothing is missing, but the message has something to consider."""


class QueueSetup(Struct, frozen=True, kw_only=True):
    """A queue whose needs are compared with the rules of its Git host."""

    branch: str
    merge_method: MergeMethod = MergeMethod.MERGE_COMMIT
    landing: LandingMethod = LandingMethod.TESTED_COMMIT
    head_branch_fallback: HeadBranchFallback = HeadBranchFallback.PROVIDER_MERGE
    reported_checks: frozenset[str] | None = None
    """The checks that were reported on its last test branches; None: it has finished no run yet."""
    needs_push_checks: bool = True
    """Whether its test branches need the checks that the rules name, and get only those that CI runs for pushes."""


class Forge(Protocol):
    def parse_webhook(self, headers: Mapping[str, str], body: bytes) -> Sequence[ForgeNotice]:
        """The changes that a webhook reports; header names are lower case.

        Raises `InvalidSignature` before anything is parsed if the signature is wrong. Webhooks that do not concern us
        or cannot be understood give an empty sequence.
        """
        ...

    async def statuses(self, repo: Repo, sha: Sha, branch: str, test_branch: str = "") -> Sequence[Status]:
        """Every status and check run of the commit that counts for this branch, the latest of each name. With a test
        branch, whose tip the commit is: a result for all of its CI together counts only if it is of this branch."""
        ...

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:
        """Merges with the forge's own merge, only if the head and base branch are exactly those given."""
        ...

    async def find_merge_commit(self, repo: Repo, merge: Merge) -> Sha | None:
        """The commit that merged exactly this head into this branch; None if there is none."""
        ...

    async def thread(self, repo: Repo, number: PullRequestNumber, since: Instant) -> Thread:
        """Its labels, and the comments since that time. Earlier comments may be included."""
        ...

    async def is_edited(self, repo: Repo, number: PullRequestNumber, comment: Comment) -> bool:
        """Whether its text was changed, and is perhaps not that of its author. A forge that does not
        tell edits from other changes of a comment counts each as an edit."""
        ...

    async def can_write(self, repo: Repo, user: str, branch: str) -> bool:
        """Whether the user is allowed to merge pull requests into this branch, as far as the forge reports it."""
        ...

    async def can_maintain(self, repo: Repo, user: str) -> bool:
        """Whether the user is also allowed to bypass the rules of the repository."""
        ...

    async def put_comment(self, repo: Repo, number: PullRequestNumber, text: str, comment: str | None) -> str:
        """Replaces the text of our comment, or creates one if there is none, and returns its id."""
        ...

    async def react(self, repo: Repo, number: PullRequestNumber, comment: str, *, success: bool) -> None: ...

    async def remove_label(self, repo: Repo, number: PullRequestNumber, label: str) -> None: ...

    async def set_status(self, repo: Repo, sha: Sha, status: Status, *, urgent: bool = False) -> None:
        """Sets our own status on a commit. An urgent one, which a merge depends on, does not wait for comments and
        other statuses."""
        ...

    async def close_pull_request(self, repo: Repo, number: PullRequestNumber) -> None:
        """Closes it without a merge; nothing happens if it is closed or merged."""
        ...

    async def retarget_pull_requests(self, repo: Repo, branch: str, target: str) -> None:
        """Changes the base of the open pull requests into `branch` to `target`, before `branch` is deleted. Raises
        `HostError` if `branch` must not be deleted, for example because it is the head of another one."""
        ...

    async def open_draft(self, repo: Repo, draft: DraftPullRequest) -> None:
        """Opens it as an ordinary pull request where the forge has no drafts. Raises `HostRefused` when the forge
        refuses that too: CI that runs for pull requests then never starts."""
        ...

    async def close_draft(self, repo: Repo, branch: str) -> None: ...

    def list_budgets(self) -> Sequence[RequestBudget]:
        """Of the accounts that sent requests from this process, as the Git host reported them. Sends nothing."""
        ...

    async def diagnose(self, repo: Repo | None, queues: Sequence[QueueSetup] = ()) -> Sequence[Finding]:
        """Checks what the service needs on this forge, and in this repository if given: for the target branches of its
        queues, or for its default branch if there are none."""
        ...

    async def branch_warnings(self, repo: Repo, queue: QueueSetup) -> Sequence[str]:
        """Gaps in the branch protection that make merging unsafe: each message says what can happen and what to do."""
        ...


class HostError(Exception):
    """The host did not do what it was asked. Who repairs it differs between the classes below; a retry later can
    succeed with each."""


class HostUnavailable(HostError):
    """The host does not respond, or not as expected: retry later."""


class RateLimited(HostUnavailable):
    """The host responds, and accepts this request only later: no request is sent until then."""

    def __init__(self, message: str, until: Instant, now: Instant) -> None:
        super().__init__(message)
        self.until = until
        self.wait_s = max(1, -(-(until - now) // SECOND))


class AllowanceKept(RateLimited):
    """The host would accept this request, but what it still allows is kept for requests that matter more."""


class HostRefused(HostError):
    """The host refuses this request, and will until a permission or a rule changes. It is otherwise
    available."""


class HostAccessLost(HostError):
    """Our account or app is no longer accepted, or no longer sees the repository, whatever was asked: an administrator
    has to give it access again. No `HostRefused`, because it says nothing about what was asked: a caller that can do
    without one answer, such as a rule that it is not allowed to read, cannot do without all."""


class UnexpectedHostResponse(HostUnavailable):
    """The host's response about one pull request is invalid. It is otherwise available."""


# Lists for users who choose a pull request.

MAX_LISTED = 100
MAX_LISTED_CHARS = 300


class OpenPullRequest(Struct, frozen=True, kw_only=True):
    number: PullRequestNumber
    title: str
    author: str
    """Empty if its account was deleted."""
    head: Sha
    head_branch: str
    draft: bool = False


def select_newest(found: Iterable[OpenPullRequest]) -> tuple[OpenPullRequest, ...]:
    """The newest ones, newest first: a host numbers pull requests in the order in which they are opened. Long texts are
    cut, because pages show them in a list."""
    newest = sorted(found, key=lambda pull_request: pull_request.number, reverse=True)[:MAX_LISTED]
    return tuple(
        replace(
            one,
            title=one.title[:MAX_LISTED_CHARS],
            author=one.author[:MAX_LISTED_CHARS],
            head_branch=one.head_branch[:MAX_LISTED_CHARS],
        )
        for one in newest
    )


class ChecksFrom(StrEnum):
    API = "api"
    """CI reports statuses to our API."""
    RUN = "run"
    """The service runs the checks itself."""
    HOST = "host"
    """The service reads them from the host."""


class Host(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def provider(self) -> str:
        """The kind of host: `git`, `github`, `gitlab`, `gitea`."""
        ...

    @property
    def number_prefix(self) -> str:
        """The sign that makes the number of a pull request a link: `#`, on GitLab `!`."""
        ...

    @property
    def has_groups(self) -> bool:
        """Whether an owner can be a nested group: `acme/tools`."""
        ...

    @property
    def checks_from(self) -> ChecksFrom: ...

    @property
    def forge(self) -> Forge | None:
        """Its forge features; None for plain Git."""
        ...

    @property
    def poll_interval_ms(self) -> int:
        """How often, in milliseconds, the poller reads a repository for which no webhook arrives."""
        ...

    def unsupported_reason(self, config: Config) -> str | None:
        """Why the host cannot merge as such a queue does, and what to do instead; None: it can."""
        ...

    @property
    def moves_heads_first(self) -> bool:
        """Whether a head branch must be moved, and shown by the host, before the target branch contains its commit.
        Otherwise one push moves both."""
        ...

    async def own_address(self, repo: Repo) -> str | None:
        """The e-mail address that makes the host show our account as the committer; None: it has none for us."""
        ...

    async def read_text(self, repo: Repo, number: PullRequestNumber) -> PullRequestText | None:
        """None if there is no such pull request."""
        ...

    @property
    def reports_mergeability(self) -> bool:
        """Whether the host reports the mergeability of pull requests. Otherwise the service asks git."""
        ...

    def canonical_repo(self, repo: Repo) -> Repo:
        """The canonical spelling of a repository, where the host accepts several."""
        ...

    async def remote(self, repo: Repo) -> Remote:
        """Its credentials are valid for a few minutes."""
        ...

    def head_ref(self, number: PullRequestNumber) -> str:
        """The ref of a pull request's head, such as `refs/pull/12/head`."""
        ...

    @property
    def head_ref_pattern(self) -> str:
        """The pattern of all head refs, such as `refs/pull/*/head`."""
        ...

    def pull_request_url(self, repo: Repo, number: PullRequestNumber) -> str | None:
        """The URL of its page; None if the host has no pages."""
        ...

    async def has_repository(self, repo: Repo) -> bool: ...

    async def read_pull_request(
        self,
        repo: Repo,
        number: PullRequestNumber,
        *,
        with_requirements: bool = True,
        with_head_branch: bool = True,
    ) -> PullRequest | None:
        """The pull request as the host shows it now, without what only git knows (`is_in_target_branch`,
        `contained_heads`), and without mergeability if the host does not report it. Reading its requirements takes
        several requests; so does its head branch, without which `head_branch_access` says nothing."""
        ...

    async def branch_tip(self, repo: Repo, branch: str) -> Sha | None:
        """None if there is no such branch."""
        ...

    async def open_pull_requests(self, repo: Repo, branch: str) -> Sequence[OpenPullRequest]:
        """The newest open pull requests into this branch, as `select_newest` selects them, without those that show a
        test branch."""
        ...

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:
        """The required statuses of the host's branch protection."""
        ...

    async def refs(self, repo: Repo, branches: Collection[str]) -> Mapping[str, Sha]:
        """These branches, if they exist, and all refs that change when a pull request changes: the poller compares two
        reads. Other refs can be included."""
        ...

    async def find_changed(self, repos: Mapping[Repo, Collection[PullRequestNumber]]) -> Collection[Repo]:
        """Those whose `refs` can have changed since they were last read, found without reading them. A host that cannot
        tell returns all of them. Changes of other pull requests than the given ones can be found a little later."""
        ...

    def pull_request_number_of(self, ref: str) -> PullRequestNumber | None:
        """The pull request that a ref returned by `refs` belongs to."""
        ...

    async def mark_merged(self, repo: Repo, number: PullRequestNumber, head: Sha, commit: Sha) -> bool:
        """Marks it as merged, if the host does not notice by itself. Idempotent. False: the host shows it as open, or
        as closed without a merge."""
        ...

    async def close(self) -> None: ...
