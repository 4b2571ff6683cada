"""The host and forge ports as one replica reaches them: calls take time, can fail, and can return stale data."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.config import Config, LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import HeadBranchAccess, PullRequest, Requirement, Status
from mergeyard.domain.states import Mergeability, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import (
    BranchNotice,
    ChecksFrom,
    Comment,
    CommitNotice,
    DraftPullRequest,
    Finding,
    ForgeNotice,
    HostUnavailable,
    Merge,
    Merged,
    MergeOutcome,
    NotMerged,
    OpenPullRequest,
    PullRequestNotice,
    PullRequestText,
    QueueSetup,
    RequestBudget,
    Thread,
    select_newest,
)
from mergeyard.ports.git import Conflict, Remote
from tests.simulation.faults import Family, FaultInjector
from tests.simulation.git import TARGET, Origin, fork_ref
from tests.simulation.process import Connection
from tests.simulation.script import Heads

REPO = Repo("git.local", "acme", "app")
BRANCH = "main"
SendNotice = Callable[[ForgeNotice], None]


class View(Struct, frozen=True):
    """Everything the host shows at one moment."""

    refs: dict[str, Sha]
    pull_requests: dict[PullRequestNumber, PullRequest]
    statuses: dict[Sha, dict[str, Status]]
    merged: dict[tuple[PullRequestNumber, Sha], Sha]


CallLater = Callable[[float, Callable[[], None]], object]


class HostState:
    def __init__(
        self,
        origin: Origin,
        send_notice: SendNotice,
        call_later: CallLater,
        heads: Heads | None,
        *,
        has_forge: bool,
        requires_approval: bool,
        hides_reviews: bool,
    ) -> None:
        self.origin = origin
        self.heads = heads
        self.notices_heads = heads is not None and has_forge
        """A forge notices by itself that branches moved; on plain Git, people update their pull requests."""
        self._call_later = call_later
        self._noticed = len(origin)
        self._target_shown = origin.target
        self.hides_reviews = hides_reviews
        self.requires_approval = requires_approval
        """A rule that the service's own account bypasses: this host merges what the service asks it to merge."""
        self.approved_reads = defaultdict[PullRequestNumber, list[Instant]](list)
        """When it answered the reads of a pull request that had all it requires; only answers that arrived."""
        self.on_review: Callable[[PullRequestNumber, bool], None] = lambda _, __: None
        """Called with the pull request and whether it is approved now."""
        self._visible_reviews = Counter[PullRequestNumber]()
        self.pull_requests: dict[PullRequestNumber, PullRequest] = {}
        self.statuses: dict[Sha, dict[str, Status]] = {}
        self.merged: dict[tuple[PullRequestNumber, Sha], Sha] = {}
        self.is_wanted: Callable[[PullRequestNumber], bool] = lambda _: True
        self.conflicted = set[tuple[PullRequestNumber, Sha]]()
        """What it refused to merge because of a conflict."""
        self.comments: list[tuple[PullRequestNumber, str]] = []
        self._send_notice = send_notice
        self._stale: View | None = None

    def view(self) -> View:
        self._stale = View(
            dict(self.origin.refs),
            dict(self.pull_requests),
            {sha: dict(known) for sha, known in self.statuses.items()},
            dict(self.merged),
        )
        return self._stale

    def stale_view(self) -> View:
        """The last correct view that was read."""
        return self._stale or self.view()

    def change(self, number: PullRequestNumber, pull_request: PullRequest) -> None:
        """Changes of a pull request also change its refs, as on plain Git."""
        self.pull_requests[number] = pull_request
        self.origin.set(f"refs/pull/{number}/head", pull_request.head)
        facts = (
            pull_request.base_branch,
            pull_request.is_open,
            pull_request.draft,
            pull_request.title,
            pull_request.merged_into,
            self._visible_reviews[number],
        )
        self.origin.set(f"refs/pull/{number}/meta", self.origin.objects.tree({"meta": repr(facts)}))
        self._send_notice(PullRequestNotice(REPO, number))

    # Head branches.

    def head_branch_ref(self, pull_request: PullRequest) -> str:
        branch, fork = pull_request.head_branch, pull_request.head_repo
        return fork_ref(fork, branch) if fork else f"refs/heads/{branch}"

    def head_branch_access(self, pull_request: PullRequest, refs: Mapping[str, Sha]) -> HeadBranchAccess:
        if self.heads is None:
            return HeadBranchAccess.NOT_MOVED
        if pull_request.number in self.heads.in_closed_forks:
            return HeadBranchAccess.IN_FORK
        if pull_request.number in self.heads.protected:
            return HeadBranchAccess.PROTECTED
        is_there = refs.get(self.head_branch_ref(pull_request)) == pull_request.head
        return HeadBranchAccess.MOVABLE if is_there else HeadBranchAccess.GONE

    def notice_pushes(self) -> None:
        """Some time after each push: first the head branches, then the target branch."""
        if not self.notices_heads or self.heads is None:
            return
        moved, target = [u.ref for each in self.origin.log[self._noticed :] for u in each.updates], self.origin.target
        self._noticed = len(self.origin)
        watched = {self.head_branch_ref(each): number for number, each in self.pull_requests.items()}
        numbers = [watched[ref] for ref in moved if ref in watched]
        if numbers or TARGET in moved:
            self._call_later(
                self.heads.shown_after_ms / 1000, lambda: self._show(numbers, target if TARGET in moved else None)
            )

    def _show(self, numbers: Sequence[PullRequestNumber], target: Sha | None) -> None:
        for number in numbers:
            self._show_head(number)
        if target is not None:
            self._show_target(target)

    def _show_head(self, number: PullRequestNumber) -> None:
        pull_request = self.pull_requests[number]
        head = self.origin.refs.get(self.head_branch_ref(pull_request))
        if head is None or head == pull_request.head or not pull_request.is_open:
            return
        is_empty = self.origin.objects.contains(self._target_shown, head)
        closes = is_empty and self.heads is not None and self.heads.closes_merged
        self.change(number, replace(pull_request, head=head, is_open=not closes))

    def _show_target(self, target: Sha) -> None:
        """As merged: only a pull request whose head the branch did not have before."""
        before, self._target_shown = self._target_shown, target
        for number, pull_request in list(self.pull_requests.items()):
            contains = self.origin.objects.contains
            is_new = contains(target, pull_request.head) and not contains(before, pull_request.head)
            if pull_request.is_open and pull_request.base_branch == BRANCH and is_new:
                self.change(number, replace(pull_request, is_open=False, merged_into=BRANCH))

    def close_pull_request(self, number: PullRequestNumber) -> None:
        pull_request = self.pull_requests[number]
        if pull_request.is_open:
            self.change(number, replace(pull_request, is_open=False))

    def review(self, number: PullRequestNumber, *, approve: bool) -> None:
        """If reviews are hidden, the refs stay the same: without a notice, only a read of the pull request shows it."""
        pull_request = self.pull_requests[number]
        if not self.requires_approval or approve is not bool(pull_request.unmet_requirements):
            return
        self.on_review(number, approve)
        self._visible_reviews[number] += not self.hides_reviews
        self.change(number, replace(pull_request, requirements=(require_approval(given=int(approve)),)))

    def move_target(self, to: Sha) -> None:
        self.origin.set(TARGET, to)
        self._send_notice(BranchNotice(REPO, BRANCH))

    def set_status(self, sha: Sha, status: Status) -> None:
        self.statuses.setdefault(sha, {})[status.context] = status
        self._send_notice(CommitNotice(REPO, sha))

    def mergeability(self, pull_request: PullRequest) -> Mergeability:
        conflicts = isinstance(self.origin.objects.merge(self.origin.target, pull_request.head), Conflict)
        return Mergeability.NOT_MERGEABLE if conflicts else Mergeability.MERGEABLE

    def mark_merged(self, number: PullRequestNumber, head: Sha, commit: Sha) -> bool:
        """A host that notices heads cannot be told about a merge."""
        pull_request = self.pull_requests[number]
        if pull_request.head in (head, commit) and pull_request.is_open and not self.notices_heads:
            self.change(number, replace(pull_request, is_open=False, merged_into=BRANCH))
        return self.pull_requests[number].merged_into is not None

    def put_comment(self, number: PullRequestNumber, text: str, comment: str | None) -> str:
        if comment is not None:
            self.comments[int(comment)] = (number, text)
            return comment
        self.comments.append((number, text))
        return str(len(self.comments) - 1)

    def merge(self, wanted: Merge, seconds: int, sent_at: Instant) -> MergeOutcome:
        known = self.merged.get((wanted.number, wanted.head))
        if known is not None:
            return Merged(known)
        pull_request = self.pull_requests[wanted.number]
        if (
            not pull_request.is_open
            or pull_request.draft
            or pull_request.head != wanted.head
            or pull_request.base_branch != wanted.base_branch
        ):
            return NotMerged("it has changed")
        tree = self.origin.objects.merge(self.origin.target, pull_request.head)
        if isinstance(tree, Conflict):
            self.conflicted.add((wanted.number, wanted.head))
            return NotMerged("it conflicts")
        parents = (
            (self.origin.target,) if wanted.method is MergeMethod.SQUASH else (self.origin.target, pull_request.head)
        )
        message = f"{wanted.title}\n\n{wanted.message}"
        commit = self.origin.objects.commit(tree, parents, message, committed=f"{seconds} +0000")
        self.origin.merge(commit, sent_at)
        if not self.is_wanted(wanted.number):
            self.origin.late.add(commit)
        self.merged[wanted.number, wanted.head] = commit
        self.change(wanted.number, replace(pull_request, is_open=False, merged_into=BRANCH))
        self._send_notice(BranchNotice(REPO, BRANCH))
        return Merged(commit)


def require_approval(*, given: int) -> Requirement:
    return Requirement(reason=Reason.WAITING_FOR_REVIEW, needed=1, given=given)


T = TypeVar("T")
USUAL_DELAY_S = 0.1


class SimHost:
    name = REPO.host
    has_groups = False
    number_prefix = "#"
    head_ref_pattern = "refs/pull/*/head"

    def __init__(
        self, host_state: HostState, connection: Connection, faults: FaultInjector, *, has_forge: bool
    ) -> None:
        self.host_state = host_state
        self.provider = "github" if has_forge else "git"
        self.forge = SimForge(self) if has_forge else None
        self.checks_from = ChecksFrom.HOST if has_forge else ChecksFrom.API
        self.poll_interval_ms = 20_000 if has_forge else 0
        self.reports_mergeability = has_forge
        self._connection = connection
        self._faults = faults
        self._listed_refs: Mapping[str, Sha] = {}

    @property
    def moves_heads_first(self) -> bool:
        return self.host_state.heads is not None and self.host_state.heads.moved_first

    async def own_address(self, repo: Repo) -> str | None:  # noqa: ARG002
        return None

    async def read_text(self, repo: Repo, number: PullRequestNumber) -> PullRequestText | None:  # noqa: ARG002
        return await self.read_view(
            lambda view: PullRequestText(title=each.title) if (each := view.pull_requests.get(number)) else None
        )

    @property
    def now(self) -> Instant:
        return self._connection.now

    @property
    def seconds(self) -> int:
        return self._connection.seconds

    def unsupported_reason(self, config: Config) -> str | None:
        if self.forge and config.landing is LandingMethod.PROVIDER_MERGE and config.merge_method is MergeMethod.REBASE:
            return "it rebases differently from git"
        return None

    def canonical_repo(self, repo: Repo) -> Repo:
        return repo

    async def remote(self, repo: Repo) -> Remote:
        return Remote(f"{repo.owner}/{repo.name}")

    def head_ref(self, number: PullRequestNumber) -> str:
        return f"refs/pull/{number}/head"

    def pull_request_number_of(self, ref: str) -> PullRequestNumber | None:
        return PullRequestNumber(int(ref.split("/")[2])) if ref.startswith("refs/pull/") else None

    def pull_request_url(self, repo: Repo, number: PullRequestNumber) -> str | None:  # noqa: ARG002
        return None

    async def has_repository(self, repo: Repo) -> bool:
        return repo == REPO

    async def read_pull_request(
        self,
        repo: Repo,  # noqa: ARG002
        number: PullRequestNumber,
        *,
        with_requirements: bool = True,
        with_head_branch: bool = True,  # noqa: ARG002
    ) -> PullRequest | None:
        pull_request, answered_at = await self.read_view(
            lambda view: (self._complete(view.pull_requests.get(number), view.refs), self.now)
        )
        if with_requirements and pull_request is not None and not pull_request.unmet_requirements:
            self.host_state.approved_reads[number].append(answered_at)
        return pull_request

    def _complete(self, pull_request: PullRequest | None, refs: Mapping[str, Sha]) -> PullRequest | None:
        if pull_request is None:
            return None
        access = self.host_state.head_branch_access(pull_request, refs)
        is_merged_by_head = self.host_state.notices_heads
        pull_request = replace(pull_request, head_branch_access=access, is_merged_by_head=is_merged_by_head)
        if self.forge is None:
            return pull_request
        return replace(pull_request, mergeability=self.host_state.mergeability(pull_request))

    async def branch_tip(self, repo: Repo, branch: str) -> Sha | None:  # noqa: ARG002
        return await self.read_view(lambda view: view.refs.get(f"refs/heads/{branch}"))

    async def open_pull_requests(self, repo: Repo, branch: str) -> Sequence[OpenPullRequest]:  # noqa: ARG002
        return await self.read_view(
            lambda view: select_newest(
                OpenPullRequest(
                    number=number,
                    title=pull_request.title,
                    author=pull_request.author,
                    head=pull_request.head,
                    head_branch=pull_request.head_branch,
                    draft=pull_request.draft,
                )
                for number, pull_request in view.pull_requests.items()
                if pull_request.is_open and pull_request.base_branch == branch
            )
        )

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    async def refs(self, repo: Repo, branches: Collection[str]) -> Mapping[str, Sha]:  # noqa: ARG002
        self._listed_refs = await self.read_view(lambda view: view.refs)
        return self._listed_refs

    async def find_changed(self, repos: Mapping[Repo, Collection[PullRequestNumber]]) -> Collection[Repo]:
        """Plain Git compares time stamps; a listing that was stale differs from them."""
        return repos if self.forge or self._listed_refs != self.host_state.origin.refs else ()

    async def mark_merged(self, repo: Repo, number: PullRequestNumber, head: Sha, commit: Sha) -> bool:  # noqa: ARG002
        return await self.call(lambda: self.host_state.mark_merged(number, head, commit))

    async def close(self) -> None:
        """Nothing is open."""

    async def read_view(self, select: Callable[[View], T]) -> T:
        def read() -> T:
            stale = self._faults.occurs(Family.STALE_READS)
            return select(self.host_state.stale_view() if stale else self.host_state.view())

        return await self.call(read)

    async def call(self, effect: Callable[[], T]) -> T:
        return await self._connection.call(effect, USUAL_DELAY_S, HostUnavailable, Family.REFUSALS, Family.LOST_REPLIES)


class SimForge:
    def __init__(self, host: SimHost) -> None:
        self._host = host

    def list_budgets(self) -> Sequence[RequestBudget]:
        return ()

    def parse_webhook(self, headers: Mapping[str, str], body: bytes) -> Sequence[ForgeNotice]:
        raise NotImplementedError(f"notices are not sent as webhooks here: {headers} {body}")

    async def statuses(
        self,
        repo: Repo,  # noqa: ARG002
        sha: Sha,
        branch: str,  # noqa: ARG002
        test_branch: str = "",  # noqa: ARG002
    ) -> Sequence[Status]:
        return await self._host.read_view(lambda view: tuple(view.statuses.get(sha, {}).values()))

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:  # noqa: ARG002
        sent_at = self._host.now
        return await self._host.call(lambda: self._host.host_state.merge(merge, self._host.seconds, sent_at))

    async def find_merge_commit(self, repo: Repo, merge: Merge) -> Sha | None:  # noqa: ARG002
        return await self._host.read_view(lambda view: view.merged.get((merge.number, merge.head)))

    async def thread(self, repo: Repo, number: PullRequestNumber, since: Instant) -> Thread:  # noqa: ARG002
        return Thread(frozenset(), ())

    async def is_edited(self, repo: Repo, number: PullRequestNumber, comment: Comment) -> bool:  # noqa: ARG002
        return comment.is_changed

    async def can_write(self, repo: Repo, user: str, branch: str) -> bool:  # noqa: ARG002
        return True

    async def can_maintain(self, repo: Repo, user: str) -> bool:  # noqa: ARG002
        return True

    async def put_comment(self, repo: Repo, number: PullRequestNumber, text: str, comment: str | None) -> str:  # noqa: ARG002
        return await self._host.call(lambda: self._host.host_state.put_comment(number, text, comment))

    async def react(self, repo: Repo, number: PullRequestNumber, comment: str, *, success: bool) -> None:
        """There are no comment commands here."""

    async def remove_label(self, repo: Repo, number: PullRequestNumber, label: str) -> None:
        """There are no labels here."""

    async def set_status(self, repo: Repo, sha: Sha, status: Status, *, urgent: bool = False) -> None:  # noqa: ARG002
        await self._host.call(lambda: self._host.host_state.set_status(sha, status))

    async def close_pull_request(self, repo: Repo, number: PullRequestNumber) -> None:  # noqa: ARG002
        await self._host.call(lambda: self._host.host_state.close_pull_request(number))

    async def retarget_pull_requests(self, repo: Repo, branch: str, target: str) -> None:
        """The base of every pull request here is the target branch of the queue, or a branch without a queue."""

    async def open_draft(self, repo: Repo, draft: DraftPullRequest) -> None:
        """There are no draft pull requests here."""

    async def close_draft(self, repo: Repo, branch: str) -> None:
        """There are no draft pull requests here."""

    async def branch_warnings(self, repo: Repo, queue: QueueSetup) -> Sequence[str]:  # noqa: ARG002
        return ()

    async def diagnose(self, repo: Repo | None, queues: Sequence[QueueSetup] = ()) -> Sequence[Finding]:  # noqa: ARG002
        return ()
