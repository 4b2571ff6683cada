"""Recorded merges of a queue, and the first-parent history of its target branch as the host shows it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from msgspec import Struct

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, QueueId, Repo, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import Status, Submission
from mergeyard.domain.runs import Run, Step
from mergeyard.domain.states import SATISFIED_CHECK_STATES, Reason
from mergeyard.ports.git import Commit, Mirror, MissingObject, Signature
from mergeyard.ports.store import Store
from mergeyard.service import git_names, persistence
from mergeyard.service.repositories import RepositoryContext

LANDED_REASONS = frozenset({Reason.MERGED_BY_QUEUE, Reason.MERGED_DIRECTLY, Reason.TREE_MISMATCH})
"""The reasons of submissions that this queue merged."""
MAX_SUBMISSIONS_READ = 5000
"""The maximum of concluded submissions to read, merged or not."""


class LandingForm(StrEnum):
    """How the pull request was merged, which determines what the audit compares."""

    AS_TESTED = "tested_commit"
    REBASED = "rebased"
    PROVIDER_MERGE = "provider_merge"


class RecordedMerge(Struct, frozen=True, kw_only=True):
    """One merged pull request."""

    submission: Submission
    run: Run | None = None
    """The run that verified it, if it is still stored."""
    statuses: Mapping[str, Status] = {}
    """The latest status per context of the commit whose checks the run used."""

    @property
    def commit(self) -> Sha | None:
        return self.submission.merged_sha

    @property
    def form(self) -> LandingForm:
        if self.submission.rebased:
            return LandingForm.REBASED
        is_by_provider = self.run is not None and self.run.landing_method is LandingMethod.PROVIDER_MERGE
        return LandingForm.PROVIDER_MERGE if is_by_provider else LandingForm.AS_TESTED

    @property
    def tested_step(self) -> Step | None:
        """The step of the run that tested it."""
        if self.run is None:
            return None
        steps = zip(self.run.stack, self.run.chain, strict=False)
        return next((step for member, step in steps if member.submission_id == self.submission.id), None)

    @property
    def tested_head(self) -> Sha | None:
        members = () if self.run is None else self.run.stack
        return next((member.head for member in members if member.submission_id == self.submission.id), None)

    @property
    def tested_on(self) -> Sha | None:
        """The commit that it was tested on."""
        return None if self.tested_step is None else self.tested_step.parent

    @property
    def missing_checks(self) -> tuple[str, ...]:
        """The required checks without a passed report for the tested tip before the run was decided."""
        run = self.run
        return () if run is None else tuple(name for name in run.required_statuses if not self._has_passed(run, name))

    def _has_passed(self, run: Run, name: str) -> bool:
        """A status reported after the decision does not count against it. Statuses of a head count only against a
        merge: the store does not keep them as long as the run, and those of a forge are not stored at all."""
        status = self.statuses.get(name)
        if run.checks.get(name) not in SATISFIED_CHECK_STATES:
            return False
        if status is None:
            return run.used_head_checks
        return status.check_state in SATISFIED_CHECK_STATES or status.at >= (run.decided_at or 0)


async def read_last_merges(store: Store, queue: QueueId, repo: Repo, count: int) -> tuple[RecordedMerge, ...]:
    """Oldest first."""
    runs: dict[RunId | None, tuple[Run | None, Mapping[str, Status]]] = {}
    landings = list[RecordedMerge]()
    for submission in reversed(await _read_last_merged(store, queue, count)):
        if submission.verified_by not in runs:
            runs[submission.verified_by] = await _read_run(store, queue, repo, submission.verified_by)
        run, statuses = runs[submission.verified_by]
        landings.append(RecordedMerge(submission=submission, run=run, statuses=statuses))
    return tuple(landings)


async def _read_last_merged(store: Store, queue: QueueId, count: int) -> list[Submission]:
    """Newest first. Reads more until enough are found, because many submissions can end without a merge."""
    take = count
    while True:
        concluded = [persistence.decode_submission(body) for body in await store.concluded_submissions(queue, take)]
        merged = [submission for submission in concluded if submission.reason in LANDED_REASONS]
        if len(merged) >= count or len(concluded) < take or take >= MAX_SUBMISSIONS_READ:
            return merged[:count]
        take = min(4 * take, MAX_SUBMISSIONS_READ)


async def _read_run(
    store: Store, queue: QueueId, repo: Repo, run_id: RunId | None
) -> tuple[Run | None, Mapping[str, Status]]:
    run = None if run_id is None else await persistence.read_run(store, queue, run_id)
    statuses = () if run is None or not run.chain else await store.statuses(repo, run.checked_commit)
    return run, {status.context: status for status in statuses}


class MergeClaim(Struct, frozen=True):
    number: PullRequestNumber
    run: RunId | None


def read_claim(commit: Commit) -> MergeClaim | None:
    """Reads only the last paragraph, which has our trailers: text quoted above it is not a claim."""
    last = commit.message.rstrip().rpartition("\n\n")[2]
    number = git_names.parse_pull_request_trailer(last)
    return None if number is None else MergeClaim(number, git_names.parse_run_trailer(last))


@dataclass(eq=False)
class BranchHistory:
    tip: Sha | None = None
    base: Sha | None = None
    """The parent of the oldest commit in `first_parent_commits`."""
    first_parent_commits: Sequence[Commit] = ()
    """Oldest first."""
    other_commits: Sequence[Commit] = ()
    """Merge commits that the target branch contains, but not along first parents."""
    own_committer: Signature | None = None
    """Of the tested commits of these merges; None if the mirror no longer has them."""
    rebased_as_tested: Mapping[SubmissionId, bool] = field(default_factory=dict[SubmissionId, bool])
    """For rebased merges: whether the merge changed exactly the tested paths, and none that changed since the test.
    Merges whose tested commits the mirror no longer has are missing here."""

    @cached_property
    def positions(self) -> dict[Sha, int]:
        return {commit.sha: position for position, commit in enumerate(self.first_parent_commits)}

    @cached_property
    def _commits(self) -> Mapping[Sha, Commit]:
        return {commit.sha: commit for commit in (*self.other_commits, *self.first_parent_commits)}

    def contains(self, commit: Sha | None) -> bool:
        return commit in self._commits

    def has_own_committer(self, commit: Commit) -> bool:
        ours = self.own_committer
        theirs = commit.committer
        return ours is not None and (theirs.name, theirs.email) == (ours.name, ours.email)

    def __getitem__(self, commit: Sha) -> Commit:
        return self._commits[commit]

    def list_merge_commits(self, last: Sha) -> tuple[Commit, ...]:
        """This commit and its first parents with the same claim, newest first: a rebased pull request has several."""
        commit = self._commits[last]
        claim, commits = read_claim(commit), [commit]
        while claim is not None and commit.parents:
            parent = self._commits.get(commit.parents[0])
            if parent is None or read_claim(parent) != claim:
                break
            commits.append(parent)
            commit = parent
        return tuple(commits)

    def list_rebased_by_host(self, landing: RecordedMerge, merged: Collection[Sha]) -> tuple[Commit, ...]:
        """The commits that the Git host made of a pull request, newest first, down to the merge before it. `merged` are
        the commits of all recorded merges.

        The host keeps the messages of the authors, so trailers do not tell which commits belong together. The committer
        does not either: it can be our account on the host, with our name.
        """
        run = landing.run
        if run is None or run.merge_method is not MergeMethod.REBASE or landing.form is not LandingForm.PROVIDER_MERGE:
            return ()
        commits = list[Commit]()
        current = landing.commit
        while current is not None and current in self._commits and current != run.base:
            if commits and current in merged:
                break
            commit = self._commits[current]
            commits.append(commit)
            current = commit.parents[0] if commit.parents else None
        return tuple(commits)

    def find_parent(self, landing: RecordedMerge) -> Sha | None:
        """The commit that a merge was put on; None if it cannot be determined."""
        if landing.commit is None or not self.contains(landing.commit):
            return None
        last = self._commits[landing.commit]
        if landing.run is None or landing.run.merge_method is not MergeMethod.REBASE:
            return last.parents[0] if last.parents else None
        base_parents = self.list_merge_commits(last.sha)[-1].parents
        if read_claim(last) is None or not base_parents:
            return None
        return base_parents[0] if base_parents[0] in self._commits or base_parents[0] == self.base else None

    def list_between(self, below: Sha, above: Sha) -> tuple[Commit, ...]:
        """The commits from `above` down to `below`, without `below`, along first parents; empty if `above` does not
        lead there."""
        commits, current = list[Commit](), above
        while current != below:
            commit = self._commits.get(current)
            if commit is None or not commit.parents:
                return ()
            commits.append(commit)
            current = commit.parents[0]
        return tuple(commits)


async def read_branch_history(context: RepositoryContext, landings: Sequence[RecordedMerge]) -> BranchHistory:
    mirror = context.mirror
    tip = await context.fetch_target_tip()
    if tip is None:
        return BranchHistory()
    base, first_parents = await _read_first_parents(mirror, tip, landings)
    on_line = {commit.sha for commit in first_parents}
    not_first_parents = [landing.commit for landing in landings if landing.commit and landing.commit not in on_line]
    other_commits = [
        await mirror.read_commit(commit) for commit in not_first_parents if await mirror.contains(tip, commit)
    ]
    history = BranchHistory(tip, base, first_parents, other_commits, await _read_own_committer(mirror, landings))
    history.rebased_as_tested = await _check_rebased_merges(mirror, landings, history)
    return history


async def _read_own_committer(mirror: Mirror, landings: Sequence[RecordedMerge]) -> Signature | None:
    """The committer of the latest tested commit: it is ours, even if the Git host made the commit that merged."""
    for landing in reversed(landings):
        if landing.tested_step is None:
            continue
        try:
            return (await mirror.read_commit(landing.tested_step.commit)).committer
        except MissingObject:
            continue
    return None


async def _read_first_parents(
    mirror: Mirror, tip: Sha, landings: Iterable[RecordedMerge]
) -> tuple[Sha | None, tuple[Commit, ...]]:
    """Reads from the commit that the oldest merge was tested on; if the branch was rewritten, from the first later one
    that it still contains."""
    for base in _list_base_candidates(landings):
        if await mirror.contains(tip, base):
            first_parents = await mirror.first_parents(tip, down_to=base)
            if first_parents is not None:
                return base, first_parents
    return None, ()


def _list_base_candidates(landings: Iterable[RecordedMerge]) -> Iterator[Sha]:
    for landing in landings:
        if landing.tested_on is not None:
            yield landing.tested_on
        if landing.commit is not None:
            yield landing.commit


async def _check_rebased_merges(
    mirror: Mirror, landings: Iterable[RecordedMerge], history: BranchHistory
) -> dict[SubmissionId, bool]:
    found = dict[SubmissionId, bool]()
    for landing in landings:
        parent = history.find_parent(landing)
        if landing.form is LandingForm.REBASED and parent is not None:
            try:
                found[landing.submission.id] = await _is_rebased_as_tested(mirror, landing, parent)
            except MissingObject:
                continue
    return found


async def _is_rebased_as_tested(mirror: Mirror, landing: RecordedMerge, parent: Sha) -> bool:
    tested, commit = landing.tested_step, landing.commit
    assert commit is not None
    if tested is None:
        return False
    tested_paths = await mirror.changed_paths(tested.parent, tested.commit)
    if tested_paths != await mirror.changed_paths(parent, commit):
        return False
    paths_since = await mirror.changed_paths(tested.parent, parent)
    return tested_paths.isdisjoint(paths_since) and tested_paths.isdisjoint(
        await mirror.changed_paths(tested.commit, commit)
    )
