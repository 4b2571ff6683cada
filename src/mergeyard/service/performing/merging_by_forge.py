"""Merges a pull request with the merge of its forge. What came of it is read from the target, never believed."""

from collections.abc import Sequence
from contextlib import suppress
from typing import assert_never

import structlog

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import RunId, Sha
from mergeyard.domain.runs import Member, Step
from mergeyard.domain.states import Mergeability
from mergeyard.domain.statuses import Status
from mergeyard.domain.tasks import Land
from mergeyard.ports.forge import Forge, Merge, Merged, MergeForbidden, MergeRefused, NotMerged
from mergeyard.ports.git import MissingObject
from mergeyard.ports.host import HostRefused, HostTrouble
from mergeyard.service import wording
from mergeyard.service.performing.merging_by_git import MergingRefused
from mergeyard.service.site import Site
from mergeyard.service.talking import words

log = structlog.get_logger()

UNKNOWN_TREE = Sha("")
"""Of what is not on the target any more nobody can say what it held; it is never taken for what was tested."""


class Unseen(HostTrouble):
    """The forge merged it, and the target does not show it: not yet, or not any more."""


class MergingByForge:
    def __init__(self, site: Site, forge: Forge, task: Land, *, patient: bool) -> None:
        self._site = site
        self._forge = forge
        self._task = task
        self._patient = patient

    async def merged_already(self, tip: Sha | None) -> list[Step]:
        """In their order, as far as the forge calls them merged and the target holds what they became, or what a later
        one became: then somebody took off what lay beneath."""
        steps, onto, members = list[Step](), self._task.expected, self._task.members
        for place, member in enumerate(members):
            step = None if tip is None else await self._found(tip, onto, members[place:])
            if step is None:
                await self._wait_for_what_the_target_shows(tip, onto, member)
                break
            steps.append(step)
            onto = step.commit
        return steps

    async def _found(self, tip: Sha, onto: Sha, members: Sequence[Member]) -> Step | None:
        """What the first of them became."""
        first, *others = members
        commit = await self._merged_as(first)
        if commit is None:
            return None
        if await self._came_since(tip, commit):
            return await self._step(first, commit, onto)
        for other in others:
            above = await self._merged_as(other)
            if above is not None and await self._came_since(tip, above):
                return Step(commit, onto, UNKNOWN_TREE)
        return None

    async def _merged_as(self, member: Member) -> Sha | None:
        return await self._forge.merged_as(self._site.repo, self._wanted(member))

    async def _wait_for_what_the_target_shows(self, tip: Sha | None, onto: Sha, member: Member) -> None:
        """A forge may know later than its own repository what it merged."""
        above = () if tip is None else await self._site.mirror.first_parents(tip, down_to=onto) or ()
        if any(wording.is_of(commit.message, member.number, self._task.run) for commit in above):
            raise HostTrouble(f"#{member.number} is on the target, but is not shown as merged yet")

    async def merge(self, member: Member, onto: Sha) -> Step | MergingRefused | None:
        """None when it cannot be merged now, or somebody else has pushed."""
        if await self._site.tip() != onto:
            return None
        await self._say(member, words.about_to_merge())
        outcome = await self._forge.merge(self._site.repo, self._wanted(member))
        match outcome:
            case Merged():
                return await self._step_or_stray(member, outcome.commit, onto)
            case NotMerged():
                return None if self._patient else await self._refused_at_last(member, outcome.words)
            case MergeRefused():
                return MergingRefused(outcome.words)
            case MergeForbidden():
                return MergingRefused(outcome.words, blames=False)
            case _:
                assert_never(outcome)

    async def call_off(self, left: Sequence[Member]) -> None:
        """The next one may have been called good just now, or before a crash: nobody else shall merge it for that."""
        for member in left[:1]:
            await self._say(member, words.not_merged())

    async def _refused_at_last(self, member: Member, said: str) -> MergingRefused | None:
        """What was forced is not sent back for the forge's opinion: it would be tried for ever, and all others wait."""
        pull = await self._site.host.pull(self._site.repo, member.number)
        if pull is None or pull.head != member.head or pull.mergeability is not Mergeability.NOT_MERGEABLE:
            return None
        return MergingRefused(said)

    def _wanted(self, member: Member) -> Merge:
        run, title = self._task.run or RunId(""), self._site.title_of(member)
        method = self._site.method_of(self._task.run)
        if method is MergeMethod.SQUASH:
            words = wording.squash_message(member.number, title, run, member.head)
        else:
            words = wording.merge_message(member.number, title, run)
        subject, _, message = words.partition("\n\n")
        return Merge(
            number=member.number,
            head=member.head,
            base=self._site.keeper.key.branch,
            method=method,
            title=subject,
            message=message,
        )

    async def _say(self, member: Member, status: Status) -> None:
        """Where our own status is required, the forge merges only what it calls good."""
        if self._site.keeper.queue.config.status_check_enabled:
            with suppress(HostRefused):
                await self._forge.show_status(self._site.repo, member.head, status)

    async def _came_since(self, tip: Sha, commit: Sha) -> bool:
        mirror = self._site.mirror
        return await mirror.holds(tip, commit) and not await mirror.holds(self._task.expected, commit)

    async def _step_or_stray(self, member: Member, commit: Sha, onto: Sha) -> Step | MergingRefused:
        """In the very moment of the merge it may have been pointed at another branch; where the target shows it, no
        forge need say so."""
        shown = await self._is_on_target(commit)
        if not shown and await self._merged_as(member) is None:
            log.error("a pull request was merged into another branch", repo=str(self._site.repo), number=member.number)
            told = f"#{member.number} was pointed elsewhere while it was being merged, and landed there as {commit}"
            return MergingRefused(told, blames=False)
        return await self._step(member, commit, onto)

    async def _is_on_target(self, commit: Sha) -> bool:
        tip = await self._site.tip()
        return tip is not None and await self._site.mirror.holds(tip, commit)

    async def _step(self, member: Member, commit: Sha, onto: Sha) -> Step:
        """A rebase may have made several; all of them are this one's, unless somebody pushed in between. What it does
        not stand upon was taken off the target right before."""
        mirror = self._site.mirror
        if not await self._site.has(commit):
            await self._site.tip()
        try:
            made = await mirror.read(commit)
        except MissingObject as missing:
            raise Unseen(f"{commit} was merged, but is not to be seen yet") from missing
        if not await self._is_on_target(commit):
            raise Unseen(f"{commit} was merged, but the target does not show it yet")
        return Step(commit, onto if await self._stands(member, commit, onto) else made.parents[0], made.tree)

    async def _stands(self, member: Member, commit: Sha, onto: Sha) -> bool:
        """A head may bring along what was taken off; one that landed as it is need not stand by its first parents."""
        if not await self._site.mirror.holds(commit, onto):
            return False
        return commit == member.head or await self._site.mirror.first_parents(commit, down_to=onto) is not None
