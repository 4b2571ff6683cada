"""The host and forge ports as one replica reaches them: calls take time, can fail, and can return stale data."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import PullRequest, Status
from mergeyard.domain.states import Mergeability
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import (
    BranchNotice,
    ChecksFrom,
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
    Thread,
    select_newest,
)
from mergeyard.ports.git import Conflict, Remote
from tests.simulation.faults import Family, FaultInjector
from tests.simulation.git import TARGET, Origin
from tests.simulation.process import Connection

REPO = Repo("git.local", "acme", "app")
BRANCH = "main"
SendNotice = Callable[[ForgeNotice], None]


class View(Struct, frozen=True):
    """Everything the host shows at one moment."""

    refs: dict[str, Sha]
    pull_requests: dict[PullRequestNumber, PullRequest]
    statuses: dict[Sha, dict[str, Status]]
    merged: dict[tuple[PullRequestNumber, Sha], Sha]


class HostState:
    def __init__(self, origin: Origin, send_notice: SendNotice) -> None:
        self.origin = origin
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
        )
        self.origin.set(f"refs/pull/{number}/meta", self.origin.objects.tree({"meta": repr(facts)}))
        self._send_notice(PullRequestNotice(REPO, number))

    def move_target(self, to: Sha) -> None:
        self.origin.set(TARGET, to)
        self._send_notice(BranchNotice(REPO, BRANCH))

    def set_status(self, sha: Sha, status: Status) -> None:
        self.statuses.setdefault(sha, {})[status.context] = status
        self._send_notice(CommitNotice(REPO, sha))

    def mergeability(self, pull_request: PullRequest) -> Mergeability:
        conflicts = isinstance(self.origin.objects.merge(self.origin.target, pull_request.head), Conflict)
        return Mergeability.NOT_MERGEABLE if conflicts else Mergeability.MERGEABLE

    def mark_merged(self, number: PullRequestNumber, head: Sha) -> None:
        pull_request = self.pull_requests[number]
        if pull_request.head == head and pull_request.is_open:
            self.change(number, replace(pull_request, is_open=False, merged_into=BRANCH))

    def put_comment(self, number: PullRequestNumber, text: str, comment: str | None) -> str:
        if comment is not None:
            self.comments[int(comment)] = (number, text)
            return comment
        self.comments.append((number, text))
        return str(len(self.comments) - 1)

    def merge(self, wanted: Merge, seconds: int) -> MergeOutcome:
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
        self.origin.merge(commit)
        if not self.is_wanted(wanted.number):
            self.origin.late.add(commit)
        self.merged[wanted.number, wanted.head] = commit
        self.change(wanted.number, replace(pull_request, is_open=False, merged_into=BRANCH))
        self._send_notice(BranchNotice(REPO, BRANCH))
        return Merged(commit)


T = TypeVar("T")
USUAL_DELAY_S = 0.1


class SimHost:
    name = REPO.host
    has_groups = False
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
    def seconds(self) -> int:
        return self._connection.seconds

    def unsupported_reason(self, method: MergeMethod, landing: LandingMethod) -> str | None:
        if self.forge and landing is LandingMethod.PROVIDER_MERGE and method is MergeMethod.REBASE:
            return "it rebases differently from git"
        return None

    def canonical_repo(self, repo: Repo) -> Repo:
        return repo

    async def remote(self, repo: Repo) -> Remote:
        return Remote(str(repo))

    def head_ref(self, number: PullRequestNumber) -> str:
        return f"refs/pull/{number}/head"

    def pull_request_number_of(self, ref: str) -> PullRequestNumber | None:
        return PullRequestNumber(int(ref.split("/")[2])) if ref.startswith("refs/pull/") else None

    def pull_request_url(self, repo: Repo, number: PullRequestNumber) -> str | None:  # noqa: ARG002
        return None

    async def has_repository(self, repo: Repo) -> bool:
        return repo == REPO

    async def read_pull_request(self, repo: Repo, number: PullRequestNumber) -> PullRequest | None:  # noqa: ARG002
        return await self.read_view(lambda view: self._with_mergeability(view.pull_requests.get(number)))

    def _with_mergeability(self, pull_request: PullRequest | None) -> PullRequest | None:
        if pull_request is None or self.forge is None:
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

    async def mark_merged(self, repo: Repo, number: PullRequestNumber, head: Sha, commit: Sha) -> None:  # noqa: ARG002
        await self.call(lambda: self.host_state.mark_merged(number, head))

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

    def parse_webhook(self, headers: Mapping[str, str], body: bytes) -> Sequence[ForgeNotice]:
        raise NotImplementedError(f"notices are not sent as webhooks here: {headers} {body}")

    async def statuses(self, repo: Repo, sha: Sha, branch: str) -> Sequence[Status]:  # noqa: ARG002
        return await self._host.read_view(lambda view: tuple(view.statuses.get(sha, {}).values()))

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:  # noqa: ARG002
        return await self._host.call(lambda: self._host.host_state.merge(merge, self._host.seconds))

    async def find_merge_commit(self, repo: Repo, merge: Merge) -> Sha | None:  # noqa: ARG002
        return await self._host.read_view(lambda view: view.merged.get((merge.number, merge.head)))

    async def thread(self, repo: Repo, number: PullRequestNumber, since: Instant) -> Thread:  # noqa: ARG002
        return Thread(frozenset(), ())

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

    async def set_status(self, repo: Repo, sha: Sha, status: Status) -> None:  # noqa: ARG002
        await self._host.call(lambda: self._host.host_state.set_status(sha, status))

    async def open_draft(self, repo: Repo, draft: DraftPullRequest) -> None:
        """There are no draft pull requests here."""

    async def close_draft(self, repo: Repo, branch: str) -> None:
        """There are no draft pull requests here."""

    async def branch_warnings(self, repo: Repo, branch: str) -> Sequence[str]:  # noqa: ARG002
        return ()

    async def diagnose(self, repo: Repo | None) -> Sequence[Finding]:  # noqa: ARG002
        return ()
