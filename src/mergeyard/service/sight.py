"""Looks at pull requests: what their host says, and what only git can tell.

What git says about two commits never changes, so it is asked once.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from itertools import islice
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
from mergeyard.service.repository_config import guarded_paths, read_file
from mergeyard.service.site import Site
from mergeyard.service.surveying import survey
from mergeyard.service.turn import Keeper

MOST_COMMITS = 250
"""Of a pull request: of a longer one only the newest are searched for others that it stands upon."""
MAX_GUARDED_SHOWN = 10
MAX_PATH_LENGTH = 200
"""Characters of a guarded path that are kept to be shown."""
MAX_MERGE_BASES = 10
"""A crafted history can have many: beyond these the head is also compared with the tip itself."""


class Facts(Struct, frozen=True):
    """What git says about a head and a tip."""

    contained: bool
    mergeability: Mergeability
    commits: tuple[Sha, ...]
    """Those that the head would bring."""
    tree: Sha | None
    """Of the head merged into the target; None when it conflicts."""


class Learned(Struct):
    """What was asked upon one tip: of another one everything is asked anew."""

    tip: Sha
    facts: dict[Sha, Facts] = {}
    guards: tuple[str, ...] | None = None
    """The globs of guarded paths, as the tip has them."""
    guarded: dict[Sha, tuple[str, ...]] = {}
    """Some of the guarded paths that a head changes. Asked only for forks, so not part of the facts: a pull request of
    the same repository can have the same head."""
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
        learned = self._upon(site.keeper, tip)
        facts = learned.facts.get(pull.head)
        if facts is not None and (not pull.fork or pull.head in learned.guarded):
            return self._complete(site, pull, facts, learned), True
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
        learned = self._upon(site.keeper, tip)
        known = learned.facts
        if pull.head not in known or (pull.fork and pull.head not in learned.guarded):
            if not await site.has(tip):
                await site.tip()
            await site.bring(number, pull.head)
            known[pull.head] = facts = await self._learn(site, tip, pull.head)
            if pull.fork:
                learned.guarded[pull.head] = await self._guarded(site, learned, pull.head, facts)
        return self._complete(site, pull, known[pull.head], learned)

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
        if isinstance(merged, Conflict):
            return Facts(not commits, Mergeability.NOT_MERGEABLE, commits, None)
        return Facts(not commits, Mergeability.MERGEABLE, commits, merged)

    async def _guarded(self, site: Site, learned: Learned, head: Sha, facts: Facts) -> tuple[str, ...]:
        """What the head changes since every merge base, and what its merge would change: a merge follows renames, so it
        can change a file whose former name was not guarded."""
        mirror, tip = site.mirror, learned.tip
        if learned.guards is None:
            learned.guards = guarded_paths(await read_file(mirror, tip))
        bases = await mirror.merge_bases(tip, head)
        few = bases[:MAX_MERGE_BASES] if 0 < len(bases) <= MAX_MERGE_BASES else (*bases[:MAX_MERGE_BASES], tip)
        changes = [(base, head) for base in few] + ([(tip, facts.tree)] if facts.tree else [])
        found = dict[str, None]()
        for before, after in changes:
            found |= dict.fromkeys(await mirror.changed_paths_matching(before, after, learned.guards))
        return tuple(path[:MAX_PATH_LENGTH] for path in islice(found, MAX_GUARDED_SHOWN))

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

    def _complete(self, site: Site, pull: PullRequest, facts: Facts, learned: Learned) -> PullRequest:
        land = self._landscapes[site.repo]
        contains = {number: commit for commit in facts.commits for number in land.numbers_of(commit)}
        contains.pop(pull.number, None)
        opinion = pull.mergeability if site.host.judges_mergeability else Mergeability.UNKNOWN
        if opinion is Mergeability.UNKNOWN:
            opinion = facts.mergeability
        guarded = learned.guarded.get(pull.head) if pull.fork else None
        return replace(pull, contained=facts.contained, mergeability=opinion, contains=contains, guarded=guarded)
