"""Fake Git host: reports pull requests and performs the queue's tasks."""

from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import LandingMethod
from mergeyard.domain.ids import PullRequestNumber, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import PullRequest, RequiredStatuses
from mergeyard.domain.runs import Member, Step
from mergeyard.domain.states import CheckState, Mergeability
from tests.support.world.repository import FakeChecks, FakeRepository, MergeConflict, apply_changes


class TargetBranchPush(Struct, frozen=True):
    """One update of the target branch by a task."""

    task: t.Land
    before: Sha
    after: Sha


class HostState:
    def __init__(
        self, repository: FakeRepository, checks: FakeChecks, target_branch: str, required: RequiredStatuses
    ) -> None:
        self.repository = repository
        self.checks = checks
        self.target_branch = target_branch
        self.required_statuses = required
        self.pull_requests: dict[PullRequestNumber, PullRequest] = {}
        self.refused_numbers: set[PullRequestNumber] = set()
        """Pull requests that this host refuses to merge."""
        self.test_branch_tips: dict[RunId, Sha] = {}
        self.built_runs: dict[RunId, e.RunBuilt] = {}
        self.pushes: list[TargetBranchPush] = []
        self.lost_unless_referenced = frozenset[Sha]()
        """Commits that are lost unless a ref or a head still contains them."""
        repository.refs[target_branch] = repository.root

    @property
    def tip(self) -> Sha:
        return self.repository.refs[self.target_branch]

    def lose_mirror(self) -> None:
        """Loses all commits that no ref contains, as when another replica takes over."""
        self.lost_unless_referenced = frozenset(self.repository.commits)

    def is_lost(self, commit: Sha) -> bool:
        if commit not in self.lost_unless_referenced:
            return False
        tips = (*self.repository.refs.values(), *(pull_request.head for pull_request in self.pull_requests.values()))
        return not any(self.repository.contains(tip, commit) for tip in tips)

    def contains_removed_commit(self, head: Sha, forbidden: frozenset[Sha]) -> bool:
        removed = forbidden - self.repository.ancestors(self.tip)
        return not removed.isdisjoint(self.repository.ancestors(head))

    def build_merge(self, member: Member, onto: Sha, message: str) -> Step:
        files = self.repository.merge_files(onto, member.head)
        commit = self.repository.commit((onto, member.head), files, message)
        return Step(commit, onto, self.repository.commits[commit].tree)

    def move_target_branch(self, task: t.Land, before: Sha, after: Sha) -> bool:
        moved = self.repository.move_ref(self.target_branch, before, after)
        if moved:
            self.pushes.append(TargetBranchPush(task, before, after))
        return moved

    def mark_merged(self, members: Collection[Member]) -> None:
        for member in members:
            pull_request = self.pull_requests[member.number]
            self.pull_requests[member.number] = replace(pull_request, is_open=False, merged_into=self.target_branch)


def build_run(host: HostState, task: t.BuildRun) -> e.RunBuilt | e.RunBuildRefused | e.BaseCommitMissing:
    """Idempotent: an existing branch is the result."""
    if task.run in host.repository.refs:
        return replace(host.built_runs[task.run], head_checks=_read_head_checks(host, task))
    if host.is_lost(task.onto):
        return e.BaseCommitMissing(run=task.run)
    steps = list[Step]()
    onto = task.onto
    for member in task.members:
        refusal = _find_refusal(host, task, member, onto)
        if refusal is not None:
            blockers = _find_blockers(host, task, member) if refusal is e.BuildRefusal.CONFLICTS_WITH_STACK else ()
            return e.RunBuildRefused(
                run=task.run, submission_id=member.submission_id, refusal=refusal, blockers=blockers
            )
        steps.append(host.build_merge(member, onto, f"{member.number} for {task.run}"))
        onto = steps[-1].commit
    if not task.members:
        files = host.repository.commits[onto].files
        commit = host.repository.commit((onto,), files, f"base run {task.run}")
        steps.append(Step(commit, onto, host.repository.commits[commit].tree))
    host.repository.refs[task.run] = host.test_branch_tips[task.run] = steps[-1].commit
    host.built_runs[task.run] = e.RunBuilt(run=task.run, steps=tuple(steps))
    return replace(host.built_runs[task.run], head_checks=_read_head_checks(host, task))


def _read_head_checks(host: HostState, task: t.BuildRun) -> dict[str, CheckState] | None:
    head = task.members[0].head if task.read_head_checks and task.members else None
    if head is None or host.repository.commits[head].tree != host.built_runs[task.run].steps[-1].tree:
        return None
    return host.checks.read_checks(head)


def _find_refusal(host: HostState, task: t.BuildRun, member: Member, onto: Sha) -> e.BuildRefusal | None:
    if host.contains_removed_commit(member.head, task.forbidden_commits):
        return e.BuildRefusal.CONTAINS_REMOVED_COMMIT
    if host.repository.contains(task.base, member.head):
        return e.BuildRefusal.ALREADY_CONTAINED
    try:
        if host.repository.merge_files(task.base, member.head) == host.repository.commits[task.base].files:
            return e.BuildRefusal.NOTHING_TO_MERGE
    except MergeConflict:
        return e.BuildRefusal.CONFLICTS_WITH_TARGET
    try:
        host.repository.merge_files(onto, member.head)
    except MergeConflict:
        return e.BuildRefusal.CONFLICTS_WITH_STACK
    return None


def _find_blockers(host: HostState, task: t.BuildRun, member: Member) -> tuple[SubmissionId, ...]:
    """Members ahead that conflict with this one even without the rest of the stack."""
    stack = (*task.built_members, *task.members)
    return tuple(other.submission_id for other in stack[: stack.index(member)] if _conflicts(host, other, member))


def _conflicts(host: HostState, first: Member, second: Member) -> bool:
    try:
        host.repository.merge_files(first.head, second.head)
    except MergeConflict:
        return True
    return False


def rebase_landing(host: HostState, task: t.RebaseLanding) -> e.LandingRebased | e.LandingRebaseRefused:
    """The tested contents on the new tip, unless the tip changed the files that they replace."""
    steps = list[Step]()
    onto = task.onto
    for member, tested in zip(task.members, task.tested_steps, strict=True):
        files, before = host.repository.commits[onto].files, host.repository.commits[tested.parent].files
        changes = host.repository.diff(tested.parent, tested.commit)
        if any(files.get(path) != before.get(path) for path in changes):
            return e.LandingRebaseRefused(landing=task.landing)
        commit = host.repository.commit((onto, member.head), apply_changes(files, changes), f"{member.number} rebased")
        steps.append(Step(commit, onto, host.repository.commits[commit].tree))
        onto = commit
    return e.LandingRebased(landing=task.landing, steps=tuple(steps))


def push_landing(host: HostState, task: t.Land) -> e.Event:
    """Updates two refs atomically, both compared with their expected values; if the new commit is already there, the
    landing succeeded."""
    task = _prefer_existing_commit(host, task)
    new = task.steps[-1].commit
    if host.repository.contains(host.tip, new):
        return e.LandingSucceeded(landing=task.landing, steps=task.steps)
    if host.repository.refs.get(task.run) != task.test_branch_tip:
        return e.LandingOutcomeUnknown(landing=task.landing)
    if not host.move_target_branch(task, task.expected_tip, new):
        return e.LandingMissed(landing=task.landing)
    host.repository.refs.pop(task.run)
    host.mark_merged(task.members)
    return e.LandingSucceeded(landing=task.landing, steps=task.steps)


def _prefer_existing_commit(host: HostState, task: t.Land) -> t.Land:
    """Of two commits with the same parent and tree, the one on its own test branch always exists."""
    last = task.steps[-1]
    if not host.is_lost(last.commit):
        return task
    own = host.repository.commits[task.test_branch_tip]
    if (own.parents[0], own.tree) != (last.parent, last.tree):
        return task
    return replace(task, steps=(*task.steps[:-1], replace(last, commit=task.test_branch_tip)))


def merge_on_host(host: HostState, task: t.Land) -> e.Event:
    steps = list[Step]()
    onto = task.expected_tip
    for member in task.members:
        existing_step = _find_existing_merge(host, onto, member)
        if existing_step is not None:
            steps.append(existing_step)
        elif member.number in host.refused_numbers:
            return e.LandingRefused(
                landing=task.landing, detail="not allowed", submission_id=member.submission_id, steps=tuple(steps)
            )
        elif host.tip != onto:
            return e.LandingMissed(landing=task.landing, steps=tuple(steps))
        else:
            step = host.build_merge(member, onto, f"{member.number} merged by the host")
            host.move_target_branch(task, onto, step.commit)
            host.mark_merged((member,))
            steps.append(step)
        onto = steps[-1].commit
    return e.LandingSucceeded(landing=task.landing, steps=tuple(steps))


def _find_existing_merge(host: HostState, onto: Sha, member: Member) -> Step | None:
    commit = host.tip
    while commit not in (onto, host.repository.root):
        parents = host.repository.commits[commit].parents
        if parents == (onto, member.head):
            return Step(commit, onto, host.repository.commits[commit].tree)
        commit = parents[0]
    return None


class FakeHost(HostState):
    def perform_task(self, task: t.Task, revision: int) -> e.Event:
        match task:
            case t.ReadTargetBranch():
                return self._read_target_branch(task, revision)
            case t.ReadPullRequest():
                return e.PullRequestObserved(
                    pull_request=self.read_pull_request(task.number), observed_at_revision=revision
                )
            case t.ReadChecks():
                return self.read_checks(task.run, revision)
            case t.BuildRun():
                return build_run(self, task)
            case t.DeleteBranch():
                self.repository.refs.pop(task.run, None)
                return e.BranchDeleted(run=task.run)
            case t.RebaseLanding():
                return rebase_landing(self, task)
            case t.ReadPullRequests():
                pull_requests = tuple(self.read_pull_request(number) for number in task.numbers)
                return e.LandingPullRequestsRead(
                    landing=task.landing, pull_requests=pull_requests, observed_at_revision=revision
                )
            case t.Land():
                by_provider = task.landing_method is LandingMethod.PROVIDER_MERGE
                return merge_on_host(self, task) if by_provider else push_landing(self, task)

    def read_pull_request(self, number: PullRequestNumber) -> PullRequest:
        pull_request = self.pull_requests[number]
        return replace(
            pull_request,
            mergeability=self._mergeability(pull_request),
            is_in_target_branch=self.repository.contains(self.tip, pull_request.head),
            contained_heads={
                other.number: other.head
                for other in self.pull_requests.values()
                if other.number != number and self._is_stacked_on(pull_request, other)
            },
        )

    def read_checks(self, run: RunId, revision: int) -> e.ChecksObserved:
        return e.ChecksObserved(
            run=run, checks=self.checks.read_checks(self.test_branch_tips[run]), observed_at_revision=revision
        )

    def _is_stacked_on(self, pull_request: PullRequest, other: PullRequest) -> bool:
        contains_head = self.repository.contains(pull_request.head, other.head)
        return contains_head and not self.repository.contains(self.tip, other.head)

    def _mergeability(self, pull_request: PullRequest) -> Mergeability:
        if pull_request.mergeability is not Mergeability.MERGEABLE:
            return pull_request.mergeability
        try:
            self.repository.merge_files(self.tip, pull_request.head)
        except MergeConflict:
            return Mergeability.NOT_MERGEABLE
        return Mergeability.MERGEABLE

    def _read_target_branch(self, task: t.ReadTargetBranch, revision: int) -> e.TargetBranchObserved:
        reachable = self.repository.ancestors(self.tip)
        known_commits = self.repository.ancestors(task.known_tip) if task.known_tip is not None else frozenset[Sha]()
        return e.TargetBranchObserved(
            tip=self.tip,
            observed_at_revision=revision,
            required_statuses=self.required_statuses,
            removed_commits=known_commits - reachable,
        )
