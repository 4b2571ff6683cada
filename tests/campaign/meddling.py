"""Others at the host who know nothing of the queue: they push, rewind, and tamper with test branches."""

from collections.abc import Callable
from random import Random

from mergeyard.domain.ids import Sha
from tests.campaign.ambushes import When, forging, moving
from tests.campaign.people import People, clean_merge
from tests.campaign.snapshots import changes, snapshot
from tests.campaign.yard import CampaignYard
from tests.support.host_log import TARGET, TEST_BRANCHES
from tests.support.repositories import Origin

MAIN = "main"
FARTHEST = 3
FIRST = 1
"""The commit with which every repository begins is never taken off."""
HANDS_IN_A_LANDING = frozenset(
    {"test branch deleted in a landing", "test branch deleted", "test branch moved", "rewind after a landing"}
)


class Meddling:
    def __init__(self, yard: CampaignYard, people: People, chance: Random) -> None:
        self.done: list[str] = []
        """In the words of the table."""
        self._yard = yard
        self._origin: Origin = yard.origin
        self._people = people
        self._chance = chance

    @property
    def tampered(self) -> bool:
        """Whether somebody had his hands in a landing, so that nobody can tell what became of it."""
        return not HANDS_IN_A_LANDING.isdisjoint(self.done)

    def meddle(self) -> None:
        """Now, or in the middle of the next push."""
        ways: dict[Callable[[], str], int] = {
            self._push: 6,
            self._rewind: 3,
            self._pick_by_hand: 1,
            self._merge_by_hand: 1,
            self._delete_test_branch: 1,
            self._move_test_branch: 1,
            self._ambush_landing: 6,
            self._ambush_build: 2,
        }
        self.done.append(self._chance.choices(list(ways), list(ways.values()))[0]())

    def rest(self) -> None:
        self._yard.host_log.lift()

    def _push(self) -> str:
        self._origin.set(MAIN, self._people.commit_elsewhere(MAIN))
        return "push"

    def _rewind(self) -> str:
        self._origin.set(MAIN, self._earlier())
        if self._chance.random() < 0.3:
            self._push()
        return "rewind"

    def _pick_by_hand(self) -> str:
        """Somebody brings what a pull request brings, as a commit of its own."""
        self._bring_by_hand(self._any_head(), merging=None)
        return "pick by hand"

    def _merge_by_hand(self) -> str:
        head = self._any_head()
        self._bring_by_hand(head, merging=head)
        return "merge by hand"

    def _bring_by_hand(self, head: Sha, merging: Sha | None) -> None:
        tip = self._origin.tip(MAIN)
        tree = clean_merge(self._origin, tip, head)
        if tree is not None:
            files = changes(snapshot(self._origin, tip), snapshot(self._origin, tree))
            self._origin.commit(MAIN, files, message="By hand", merging=merging)

    def _delete_test_branch(self) -> str:
        for branch in self._a_test_branch():
            self._origin.remove(branch)
        return "test branch deleted"

    def _move_test_branch(self) -> str:
        for branch in self._a_test_branch():
            self._origin.set(branch, self._people.commit_elsewhere(branch))
        return "test branch moved"

    def _ambush_landing(self) -> str:
        """In the middle of the next one, before or after the target has moved."""
        foreign, earlier, tip = self._people.commit_elsewhere(MAIN), self._earlier(), self._origin.tip(MAIN)
        ambushes = {
            "push before a landing": (When.ARRIVED, [f"update {TARGET} {foreign}"]),
            "rewind before a landing": (When.ARRIVED, [f"update {TARGET} {earlier}"]),
            "rewind after a landing": (When.MOVED, [f"update {TARGET} {tip}"]),
            "test branch deleted in a landing": (When.ARRIVED, [f"delete {each}" for each in self._a_test_branch()]),
        }
        name = self._chance.choice(list(ambushes))
        when, orders = ambushes[name]
        self._yard.host_log.lay(when, TARGET, moving(*orders))
        return name

    def _ambush_build(self) -> str:
        foreign = self._people.commit_elsewhere(MAIN)
        ambushes = {
            "push during a build": moving(f"update {TARGET} {foreign}"),
            "test branch forged": forging(foreign),
        }
        name = self._chance.choice(list(ambushes))
        self._yard.host_log.lay(When.ARRIVED, TEST_BRANCHES, ambushes[name])
        return name

    def _earlier(self) -> Sha:
        way = self._origin.log(MAIN, "%H")
        return Sha(way[max(FIRST, len(way) - 1 - self._chance.randint(1, FARTHEST))])

    def _any_head(self) -> Sha:
        """Of one that is not red: whoever breaks the target keeps everybody waiting."""
        good = [proposal for proposal in self._people.proposals.values() if "red" not in proposal.kinds]
        return self._origin.tip(self._chance.choice(good).branch if good else MAIN)

    def _a_test_branch(self) -> list[str]:
        branches = sorted(self._yard.test_branches())
        return [self._chance.choice(branches)] if branches else []
