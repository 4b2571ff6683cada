"""Looks at pull requests: what their host says, and what only git can tell.

What git says about two commits never changes, so it is asked once.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Collection
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import Mergeability
from mergeyard.ports.git import Commit, Conflict, MissingObject
from mergeyard.service.grounding import ground
from mergeyard.service.site import Site

MOST_REMEMBERED = 50_000
MOST_COMMITS = 250
"""Of a pull request: of a longer one only the newest are searched for others that it stands upon."""

Pair = tuple[Sha, Sha]
"""The tip of a target and the head of a pull request."""
V = TypeVar("V")


class Facts(Struct, frozen=True):
    """What git says about a head and a tip."""

    contained: bool
    mergeability: Mergeability
    commits: tuple[Sha, ...]
    """Those that the head would bring."""


class Memory(OrderedDict[Pair, V], Generic[V]):
    """Forgets the oldest when it holds too much."""

    def keep(self, pair: Pair, value: V) -> V:
        self[pair] = value
        if len(self) > MOST_REMEMBERED:
            self.popitem(last=False)
        return value


class Sight:
    def __init__(self) -> None:
        self._facts = Memory[Facts]()
        self._contained = Memory[bool]()
        self._numbers: dict[Repo, dict[Sha, set[PrNumber]]] = {}
        """Which pull requests have which head."""
        self._surveyed = set[Repo]()

    async def glance(self, site: Site, number: PrNumber) -> tuple[PullRequest | None, bool]:
        """As the host shows it, without trying a merge; and whether that is all there is to know."""
        pull = await site.host.pull(site.repo, number)
        tip = site.keeper.queue.target.tip
        if pull is None or tip is None:
            return pull, True
        self._note(site, pull.head, number)
        facts = self._facts.get((tip, pull.head))
        if facts is not None:
            return self._complete(site, pull, facts), True
        opinion = pull.mergeability if site.host.judges_mergeability else Mergeability.CHECKING
        return replace(pull, contained=await self._seems_contained(site, tip, pull.head), mergeability=opinion), False

    async def look(self, site: Site, number: PrNumber) -> PullRequest | None:
        """As thoroughly as a decision needs it."""
        pull = await site.host.pull(site.repo, number)
        tip = site.keeper.queue.target.tip
        if pull is None or tip is None:
            return pull
        if site.repo not in self._surveyed:
            await self.survey(site, {site.target_ref})
        facts = self._facts.get((tip, pull.head))
        if facts is None:
            await bring(site, tip, site.target_ref)
            await bring(site, pull.head, site.host.head_ref(number))
            facts = self._facts.keep((tip, pull.head), await self._learn(site, tip, pull.head))
        return self._complete(site, pull, facts)

    async def survey(self, site: Site, targets: Collection[str], heads_there: Collection[str] = ()) -> None:
        """Learns in one go which heads there are, and which of them these branches hold already. A forge keeps the
        heads of all that ever were, of which only those count that are named, or wait here."""
        every_head = site.host.every_head_ref
        waiting = {site.host.head_ref(stay.number) for stay in site.keeper.queue.submissions.values()}
        wanted = {every_head} if site.host.forge is None else {*heads_there, *waiting}
        refs = await site.mirror.fetch([*wanted, *targets])
        heads = {ref: head for ref, head in refs.items() if ref not in targets}
        for tip in {refs[target] for target in targets if target in refs}:
            contained = await site.mirror.contained(tip, every_head)
            for head in heads.values():
                self._contained.keep((tip, head), head in contained)
        self._surveyed.add(site.repo)
        self._numbers[site.repo] = {}
        for ref, head in heads.items():
            self._note(site, head, site.host.number_of(ref))

    def knows_contained(self, tip: Sha, head: Sha) -> bool:
        return self._contained.get((tip, head), False)

    def _note(self, site: Site, head: Sha, number: PrNumber | None) -> None:
        if number is not None:
            self._numbers.setdefault(site.repo, {}).setdefault(head, set()).add(number)

    async def _learn(self, site: Site, tip: Sha, head: Sha) -> Facts:
        contained, commits = await asyncio.gather(
            self._is_contained(site, tip, head), site.mirror.commits(head, without=[tip], limit=MOST_COMMITS)
        )
        merged = await site.mirror.merge(await self._ground(site, tip, commits), head)
        clean = Mergeability.NOT_MERGEABLE if isinstance(merged, Conflict) else Mergeability.MERGEABLE
        return Facts(contained, clean, tuple(commit.sha for commit in commits))

    async def _ground(self, site: Site, tip: Sha, commits: tuple[Commit, ...]) -> Sha:
        """A merge commit holds the heads that it merged."""
        if site.keeper.queue.config.merge_method is MergeMethod.MERGE_COMMIT:
            return tip
        return await ground(site.mirror, tip, commits)

    async def _seems_contained(self, site: Site, tip: Sha, head: Sha) -> bool:
        """Not to one who has no mirror of the target yet: nobody is kept waiting until there is one."""
        try:
            return await self._is_contained(site, tip, head)
        except MissingObject:
            return False

    async def _is_contained(self, site: Site, tip: Sha, head: Sha) -> bool:
        known = self._contained.get((tip, head))
        if known is not None:
            return known
        return self._contained.keep((tip, head), await site.mirror.holds(tip, head))

    def _complete(self, site: Site, pull: PullRequest, facts: Facts) -> PullRequest:
        heads = self._numbers.get(site.repo, {})
        contains = {number: commit for commit in facts.commits for number in heads.get(commit, ())}
        contains.pop(pull.number, None)
        opinion = pull.mergeability if site.host.judges_mergeability else facts.mergeability
        return replace(pull, contained=facts.contained, mergeability=opinion, contains=contains)


async def bring(site: Site, commit: Sha, ref: str) -> None:
    """Makes sure that the mirror holds a commit that this ref led to a moment ago."""
    if not await site.has(commit):
        await site.mirror.fetch([ref])
