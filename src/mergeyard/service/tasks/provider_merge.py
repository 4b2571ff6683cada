"""Lets the Git host merge pull requests one by one, for queues with `landing = provider_merge`.

A forge merges with its own API call, and only the tested head; on a plain Git host the merge is made and pushed with
git.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import assert_never

import structlog
from msgspec import Struct

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.events import Event, LandingMissed, LandingRefused, LandingSucceeded, TargetBranchDirty
from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import Status
from mergeyard.domain.runs import Member, Step
from mergeyard.domain.states import Mergeability
from mergeyard.domain.tasks import Land
from mergeyard.ports import forge as port
from mergeyard.ports.external import Clock
from mergeyard.ports.git import Commit, Conflict, MissingObject, PushRefused, RefUpdate, Stale
from mergeyard.service import git_names
from mergeyard.service.comments import texts
from mergeyard.service.commit_messages import merge_message
from mergeyard.service.repositories import RepositoryContext, mark_merged
from mergeyard.service.tasks.commit_builder import (
    MergeCommitBuilder,
    PullRequestTooLarge,
    RebaseDiffers,
    pull_request_of,
    write_squash,
)
from mergeyard.service.tasks.observe import can_no_longer_merge


class MemberMergeRefused(Struct, frozen=True):
    """The Git host refuses this merge, and a retry would not help."""

    detail: str
    blames_pull_request: bool = True
    """False if the cause is not the pull request, for example a missing permission."""


@dataclass(frozen=True)
class GitMerger:
    context: RepositoryContext
    task: Land

    async def find_merged_steps(self, tip: Sha | None) -> list[Step]:
        """The commits directly on top of the expected tip that belong to our members and have the tested trees. Others
        can push commits with our trailers, also on top of ours."""
        task = self.task
        rest = () if tip is None else await self.context.mirror.first_parents(tip, down_to=task.expected_tip) or ()
        steps = list[Step]()
        onto = task.expected_tip
        for member, tested in zip(task.members, task.steps, strict=True):
            count = _count_commits_of(member, tested, rest)
            if count == 0:
                break
            last = rest[count - 1]
            steps.append(Step(last.sha, onto, last.tree))
            onto = last.sha
            rest = rest[count:]
        return steps

    async def merge(self, member: Member, onto: Sha) -> Step | MemberMergeRefused | None:
        """None if it cannot be merged onto this commit."""
        context, task = self.context, self.task
        builder = MergeCommitBuilder(context, context.merge_method_of(task.run), task.run, task.expected_tip)
        await context.fetch_head_if_missing(member.number, member.head)
        try:
            step = await builder.build_step(member, onto)
        except MissingObject:  # the Git host no longer has the head
            return None
        if isinstance(step, PullRequestTooLarge):
            return MemberMergeRefused(step.message)
        if isinstance(step, Conflict | RebaseDiffers):
            return None
        outcome = await context.mirror.push(RefUpdate(context.target_ref, onto, step.commit))
        if isinstance(outcome, PushRefused):
            return MemberMergeRefused(outcome.detail)
        if isinstance(outcome, Stale) and await context.fetch_target_tip() == onto:
            raise port.HostUnavailable(
                "The target branch has the expected commit, but the push fails. Check the Git host."
            )
        return None if isinstance(outcome, Stale) else step


def _count_commits_of(member: Member, tested: Step, commits: Sequence[Commit]) -> int:
    """How many of the first commits are the merge of this member: a rebase makes several. 0 if it is not merged."""
    named = takewhile(lambda commit: git_names.parse_pull_request_trailer(commit.message) == member.number, commits)
    complete = (count for count, commit in enumerate(named, start=1) if commit.tree == tested.tree)
    return max(complete, default=0)


log = structlog.get_logger()

UNKNOWN_TREE = Sha("")
"""The tree of a commit that is no longer on the target branch; never equal to a tested tree."""


FALLBACK_ADVICE = (
    "The Git host has to merge this pull request, because the queue cannot move its head branch. Allow this merge "
    "method on the Git host, or set headBranchFallback of the queue to close."
)
"""All other pull requests merge without the Git host, so the refusal must not pause the queue."""


class MergeNotVisible(port.HostUnavailable):
    """Only one of the forge and the target branch shows a merge: the other one not yet, or no longer."""


@dataclass(frozen=True)
class ForgeMerger:
    context: RepositoryContext
    task: Land
    forge: port.Forge
    clock: Clock
    can_retry: bool

    async def find_merged_steps(self, tip: Sha | None) -> list[Step]:
        """Finds the members that are already merged, in order: the forge reports them as merged, and the target branch
        contains their commit or that of a later member (then an earlier commit was removed from the branch)."""
        steps, onto, members = list[Step](), self.task.expected_tip, self.task.members
        for index, member in enumerate(members):
            step = None if tip is None else await self._find_step(tip, onto, members[index:])
            if step is None:
                await self._raise_if_forge_is_stale(tip, onto, member)
                break
            steps.append(step)
            onto = step.commit
        return steps

    async def _find_step(self, tip: Sha, onto: Sha, members: Sequence[Member]) -> Step | None:
        """Returns the step of the first member, if it is merged."""
        first, *others = members
        commit = await self._find_merge_commit(first)
        if commit is None:
            return None
        if await self._is_new_on_target(tip, commit):
            return await self._read_step(first, commit, onto)
        for other in others:
            later = await self._find_merge_commit(other)
            if later is not None and await self._is_new_on_target(tip, later):
                return Step(commit, onto, UNKNOWN_TREE)
        return None

    async def _find_merge_commit(self, member: Member) -> Sha | None:
        return await self.forge.find_merge_commit(self.context.repo, self._build_merge(member, ""))

    async def _raise_if_forge_is_stale(self, tip: Sha | None, onto: Sha, member: Member) -> None:
        """Raises if our commit seems to be on the target branch although the forge does not report the pull request as
        merged yet: its API can be older than its own repository. Others can push commits with our trailers too, so this
        counts for a minute."""
        if not self.can_retry:
            return
        commits_above = () if tip is None else await self.context.mirror.first_parents(tip, down_to=onto) or ()
        if any(git_names.has_trailers_of(commit.message, member.number, self.task.run) for commit in commits_above):
            raise MergeNotVisible(
                f"{self._name(member)} is on the target branch, but the Git host does not report it as merged yet."
            )

    async def merge(self, member: Member, onto: Sha) -> Step | MemberMergeRefused | None:
        """None if the forge cannot merge it now, or the target branch moved."""
        if await self.context.fetch_target_tip() != onto:
            return None
        await self._set_status(member, texts.build_merging_status())
        try:
            message = await self._write_message(member, onto)
        except MissingObject:  # the Git host no longer has the head
            return None
        # Last of all: an approval that is withdrawn after this read comes too late.
        if await can_no_longer_merge(self.context, [member], self.clock):
            return None
        outcome = await self.forge.merge(self.context.repo, self._build_merge(member, message))
        match outcome:
            case port.Merged():
                return await self._read_step_or_refuse(member, outcome.commit, onto)
            case port.NotMerged():
                submission = self.context.queue_actor.queue.submissions.get(member.submission_id)
                is_forced = submission is not None and submission.forced
                if self.can_retry and not is_forced:
                    return None
                return await self._refuse_if_final(member, outcome.detail)
            case port.MergeRefused():
                return MemberMergeRefused(outcome.detail)
            case port.MergeForbidden():
                if self._is_fallback:
                    return MemberMergeRefused(f"{outcome.detail} {FALLBACK_ADVICE}")
                return MemberMergeRefused(outcome.detail, blames_pull_request=False)
            case _:
                assert_never(outcome)

    async def reset_status(self, remaining: Sequence[Member]) -> None:
        """Sets the status of the next member back to pending: it may have been set to success just now or before a
        crash, and must not allow others to merge."""
        for member in remaining[:1]:
            await self._set_status(member, texts.build_not_merged_status())

    async def _refuse_if_final(self, member: Member, detail: str) -> MemberMergeRefused | None:
        """A pull request that was force-submitted fails at once if it has conflicts or lacks what a rule requires,
        because the landing does not read it as not ready then. On the last attempt every pull request fails that is
        still the same: we cannot tell when the forge would accept it, and all others wait for it."""
        pull_request = await self.context.host.read_pull_request(self.context.repo, member.number)
        if pull_request is None or not pull_request.is_open or pull_request.head != member.head:
            return None
        if pull_request.base_branch != self.context.queue_actor.key.branch:
            return None
        if pull_request.mergeability is Mergeability.NOT_MERGEABLE or pull_request.unmet_requirements:
            return MemberMergeRefused(detail)
        is_last = not self.can_retry and pull_request.mergeability is Mergeability.MERGEABLE
        return MemberMergeRefused(detail) if is_last else None

    @property
    def _is_fallback(self) -> bool:
        return self.context.queue_actor.queue.config.landing is LandingMethod.TESTED_COMMIT

    def _name(self, member: Member) -> str:
        return f"{self.context.host.number_prefix}{member.number}"

    async def _write_message(self, member: Member, onto: Sha) -> str:
        """The same as that of the tested commit, unless the pull request was edited since."""
        context, run = self.context, self.task.run
        if context.merge_method_of(run) is not MergeMethod.SQUASH:
            return merge_message(member.number, context.title_of(member), run, context.host.number_prefix)
        await context.fetch_head_if_missing(member.number, member.head)
        message, _ = await write_squash(context, pull_request_of(context, member), run, self.task.expected_tip, onto)
        return message

    def _build_merge(self, member: Member, message: str) -> port.Merge:
        subject, _, body = message.partition("\n\n")
        return port.Merge(
            number=member.number,
            head=member.head,
            base_branch=self.context.queue_actor.key.branch,
            method=self.context.merge_method_of(self.task.run),
            title=subject,
            message=body,
            is_fallback=self._is_fallback,
        )

    async def _set_status(self, member: Member, status: Status) -> None:
        """If our status is a required check, the forge merges only heads on which it is `success`."""
        if self.context.queue_actor.queue.config.status_check_enabled:
            with suppress(port.HostRefused):
                await self.forge.set_status(self.context.repo, member.head, status, urgent=True)

    async def _is_new_on_target(self, tip: Sha, commit: Sha) -> bool:
        mirror = self.context.mirror
        return await mirror.contains(tip, commit) and not await mirror.contains(self.task.expected_tip, commit)

    async def _read_step_or_refuse(self, member: Member, commit: Sha, onto: Sha) -> Step | MemberMergeRefused:
        """The base of the pull request may have been changed during the merge. If the target branch contains the
        commit, the forge is not asked."""
        if not await self._is_on_target(commit) and await self._find_merge_commit(member) is None:
            log.error("merged_into_other_branch", repo=str(self.context.repo), number=member.number, commit=commit)
            name = self._name(member)
            message = f"The base of {name} was changed during the merge; it was merged elsewhere as {commit}."
            return MemberMergeRefused(message, blames_pull_request=False)
        return await self._read_step(member, commit, onto)

    async def _is_on_target(self, commit: Sha) -> bool:
        tip = await self.context.fetch_target_tip()
        return tip is not None and await self.context.mirror.contains(tip, commit)

    async def _read_step(self, member: Member, commit: Sha, onto: Sha) -> Step:
        """Reads the step of a merged member. A rebase can create several commits; all of them belong to the member. If
        the commit is not stacked on `onto`, that was removed from the target branch right before the merge."""
        if not await self._is_on_target(commit):
            raise MergeNotVisible(f"{commit} was merged, but is not on the target branch yet.")
        merge_commit = await self.context.mirror.read_commit(commit)
        parent = onto if await self._is_stacked_on(member, commit, onto) else merge_commit.parents[0]
        return Step(commit, parent, merge_commit.tree)

    async def _is_stacked_on(self, member: Member, commit: Sha, onto: Sha) -> bool:
        """Whether `commit` was merged on top of `onto`. A head can contain a removed commit, so containment is not
        enough; a head that was fast-forwarded need not reach `onto` along first parents."""
        if not await self.context.mirror.contains(commit, onto):
            return False
        return commit == member.head or await self.context.mirror.first_parents(commit, down_to=onto) is not None


Merger = GitMerger | ForgeMerger
Outcome = LandingSucceeded | LandingMissed | LandingRefused

MAX_ATTEMPTS = 16
"""About one minute with the pauses between attempts. After that, a merge that the target branch does not show was
removed from it, and a pull request that the forge reports as not mergeable stays so."""


async def merge_one_by_one(context: RepositoryContext, task: Land, clock: Clock, attempt: int) -> tuple[Event, ...]:
    """Finishes a landing that has begun. Members that are already merged are found on the target branch and not merged
    again."""
    forge, can_retry = context.host.forge, attempt < MAX_ATTEMPTS
    merger = GitMerger(context, task) if forge is None else ForgeMerger(context, task, forge, clock, can_retry)
    outcome = await _find_and_merge(merger, can_retry=can_retry)
    while isinstance(outcome, LandingMissed):  # possibly because another replica merged the same members
        next_outcome = await _find_and_merge(merger, can_retry=can_retry)
        if len(next_outcome.steps) <= len(outcome.steps):
            break
        outcome = next_outcome
    if isinstance(merger, ForgeMerger) and not isinstance(outcome, LandingSucceeded):
        await merger.reset_status(task.members[len(outcome.steps) :])
    await mark_merged(context, task.members, outcome.steps)
    return outcome, TargetBranchDirty()


async def _find_and_merge(merger: Merger, *, can_retry: bool) -> Outcome:
    tip = await merger.context.fetch_target_tip()
    steps, outcome = await merger.find_merged_steps(tip), None
    try:
        outcome = await _merge_remaining(merger, tip, steps)
    except MergeNotVisible:
        if can_retry:
            raise
    return outcome or LandingMissed(landing=merger.task.landing, steps=tuple(steps))


async def _merge_remaining(merger: Merger, tip: Sha | None, steps: list[Step]) -> Outcome | None:
    """Merges the remaining members and appends to `steps`. None: it stopped, because others pushed on top of our
    commits, or a merge has other contents than were tested."""
    task = merger.task
    onto, remaining = steps[-1].commit if steps else task.expected_tip, task.members[len(steps) :]
    if remaining and (tip != onto or not _are_as_tested(task, steps)):
        return None
    for member in remaining:
        step = await merger.merge(member, onto)
        if step is None:
            return None
        if isinstance(step, MemberMergeRefused):
            detail, submission_id = step.detail, member.submission_id if step.blames_pull_request else None
            return LandingRefused(landing=task.landing, detail=detail, submission_id=submission_id, steps=tuple(steps))
        steps.append(step)
        if not _are_as_tested(task, steps):
            return None
        onto = step.commit
    return LandingSucceeded(landing=task.landing, steps=tuple(steps))


def _are_as_tested(task: Land, steps: list[Step]) -> bool:
    """Whether every merge has the tested tree and parent. If not, the members after it were not tested on this base."""
    parents = (task.expected_tip, *(step.commit for step in steps))
    compared = zip(parents, steps, task.steps, strict=False)
    return all(step.parent == onto and step.tree == tested.tree for onto, step, tested in compared)
