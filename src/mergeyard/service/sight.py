"""Looks at pull requests: what their host says, and what only git can tell.

What git says about two commits never changes, so it is asked once.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import Mergeability
from mergeyard.ports.git import Conflict, Mirror, MissingObject
from mergeyard.ports.host import Host
from mergeyard.service.grounding import ground
from mergeyard.service.landscape import Landscape
from mergeyard.service.naming_branches import branch_ref
from mergeyard.service.site import Site
from mergeyard.service.surveying import survey
from mergeyard.service.turn import Keeper

MOST_COMMITS = 250
"""Of a pull request: of a longer one only the newest are searched for others that it stands upon."""


class Facts(Struct, frozen=True):
    """What git says about a head and a tip."""

    contained: bool
    mergeability: Mergeability
    commits: tuple[Sha, ...]
    """Those that the head would bring."""


class Learned(Struct):
    """What was asked upon one tip: of another one everything is asked anew."""

    tip: Sha
    facts: dict[Sha, Facts] = {}
    contained: dict[Sha, bool] = {}


class Sight:
    def __init__(self) -> None:
        self._learned = WeakKeyDictionary[Keeper, Learned]()
        self._landscapes = defaultdict[Repo, Landscape](Landscape)

    async def glance(self, site: Site, number: PrNumber) -> tuple[PullRequest | None, bool]:
        """As the host shows it, without trying a merge; and whether that is all there is to know."""
        pull = await site.host.pull(site.repo, number)
        tip = site.keeper.queue.target.tip
        if pull is None or tip is None:
            return pull, True
        self._landscapes[site.repo].glimpse(number, pull.head)
        facts = self._upon(site.keeper, tip).facts.get(pull.head)
        if facts is not None:
            return self._complete(site, pull, facts), True
        contained = await self._seems_contained(site, tip, pull)
        return replace(pull, contained=contained, mergeability=Mergeability.CHECKING), False

    async def look(self, site: Site, number: PrNumber) -> PullRequest | None:
        """As thoroughly as a decision needs it."""
        pull = await site.host.pull(site.repo, number)
        tip = site.keeper.queue.target.tip
        if pull is None or tip is None:
            return pull
        if not self._landscapes[site.repo].surveyed:
            await self.survey(site, {site.target_ref})
        known = self._upon(site.keeper, tip).facts
        if pull.head not in known:
            if not await site.has(tip):
                await site.tip()
            await site.bring(number, pull.head)
            known[pull.head] = await self._learn(site, tip, pull.head)
        return self._complete(site, pull, known[pull.head])

    async def survey(self, site: Site, targets: Collection[str], heads: Mapping[PrNumber, Sha] | None = None) -> None:
        """Learns which heads there are, and which of them these branches hold already. Without the heads that its host
        names, a repository is surveyed once."""
        land = self._landscapes[site.repo]
        async with land.surveying:
            if heads is not None or not land.surveyed:
                await survey(site, land, targets, heads or {})

    async def forget_others(self, repo: Repo, host: Host, mirror: Mirror) -> None:
        """The mirror keeps the heads of pull requests that are known, and not of all that ever were."""
        land = self._landscapes[repo]
        async with land.surveying:
            if land.surveyed:
                await mirror.forget(host.every_head_ref, unless=lambda ref: host.number_of(ref) in land.numbers)

    def knows_contained(self, keeper: Keeper, number: PrNumber, head: Sha) -> bool:
        land, tip = self._landscapes[keeper.key.repo], keeper.queue.target.tip
        return tip is not None and land.holds(branch_ref(keeper.key.branch), tip, number, head) is True

    def _upon(self, keeper: Keeper, tip: Sha) -> Learned:
        learned = self._learned.get(keeper)
        if learned is None or learned.tip != tip:
            learned = self._learned[keeper] = Learned(tip)
        return learned

    async def _learn(self, site: Site, tip: Sha, head: Sha) -> Facts:
        commits = await site.mirror.shas(head, without=[tip], limit=MOST_COMMITS)
        merged = await site.mirror.merge(await self._ground(site, tip, commits), head)
        clean = Mergeability.NOT_MERGEABLE if isinstance(merged, Conflict) else Mergeability.MERGEABLE
        return Facts(not commits, clean, commits)

    async def _ground(self, site: Site, tip: Sha, commits: tuple[Sha, ...]) -> Sha:
        """A merge commit holds the heads that it merged."""
        if site.keeper.queue.config.merge_method is MergeMethod.MERGE_COMMIT:
            return tip
        return await ground(site.mirror, tip, commits)

    async def _seems_contained(self, site: Site, tip: Sha, pull: PullRequest) -> bool:
        """Not to one who has no mirror of the target yet: nobody is kept waiting until there is one."""
        known = self._landscapes[site.repo].holds(site.target_ref, tip, pull.number, pull.head)
        if known is not None:
            return known
        contained = self._upon(site.keeper, tip).contained
        try:
            if pull.head not in contained:
                contained[pull.head] = await site.mirror.holds(tip, pull.head)
        except MissingObject:
            return False
        return contained[pull.head]

    def _complete(self, site: Site, pull: PullRequest, facts: Facts) -> PullRequest:
        land = self._landscapes[site.repo]
        contains = {number: commit for commit in facts.commits for number in land.numbers_of(commit)}
        contains.pop(pull.number, None)
        opinion = pull.mergeability if site.host.judges_mergeability else Mergeability.UNKNOWN
        if opinion is Mergeability.UNKNOWN:
            opinion = facts.mergeability
        return replace(pull, contained=facts.contained, mergeability=opinion, contains=contains)
