"""Merges a pull request with git, where the host has no merge of its own."""

from itertools import takewhile

from msgspec import Struct

from mergeyard.domain.ids import RunId, Sha
from mergeyard.domain.runs import Member, Step
from mergeyard.domain.tasks import Land
from mergeyard.ports.git import Conflict, MissingObject, PushRefused, RefUpdate, Stale
from mergeyard.ports.host import HostTrouble
from mergeyard.service import wording
from mergeyard.service.performing.stepping import Stepper, TooLarge, steps_of
from mergeyard.service.site import Site


class MergingRefused(Struct, frozen=True):
    """The host will not have it, and will not have it later either."""

    words: str
    blames: bool = True
    """Whether that is because of the pull request."""


class MergingByGit:
    def __init__(self, site: Site, task: Land) -> None:
        self._site = site
        self._task = task

    async def merged_already(self, tip: Sha | None) -> list[Step]:
        """The first commits upon the one that we expected, as far as they are our members'."""
        mirror, task = self._site.mirror, self._task
        above = () if tip is None else await mirror.first_parents(tip, down_to=task.expected) or ()
        numbers = {member.number for member in task.members}
        ours = tuple(takewhile(lambda commit: wording.pull_request_of(commit.message) in numbers, above))
        if not ours:
            return []
        count = len({wording.pull_request_of(commit.message) for commit in ours})
        return list(await steps_of(mirror, task.expected, ours[-1].sha, task.members[:count]) or ())

    async def merge(self, member: Member, onto: Sha) -> Step | MergingRefused | None:
        """None when it cannot be merged upon this."""
        site, task = self._site, self._task
        stepper = Stepper(site.mirror, site.method_of(task.run), task.run or RunId(""), task.expected)
        await site.bring(member.number, member.head)
        try:
            step = await stepper.step(member, site.title_of(member), onto)
        except MissingObject:  # its head is gone from the host
            return None
        if isinstance(step, TooLarge):
            return MergingRefused(step.words)
        if isinstance(step, Conflict):
            return None
        outcome = await site.mirror.push(RefUpdate(site.target_ref, onto, step.commit))
        if isinstance(outcome, PushRefused):
            return MergingRefused(outcome.words)
        if isinstance(outcome, Stale) and await site.tip() == onto:
            raise HostTrouble("the target is where we expect it, and yet it cannot be moved")
        return None if isinstance(outcome, Stale) else step
