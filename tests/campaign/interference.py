"""Interference on the Git host: others push, rewind the target branch, and change test branches."""

from collections.abc import Callable
from random import Random

from mergeyard.domain.ids import Sha
from tests.campaign.contents import changes, snapshot
from tests.campaign.people import People, clean_merge
from tests.campaign.push_hooks import PushMoment, forge_commit_command, update_refs_command
from tests.campaign.scenario import CampaignScenario
from tests.support.host_log import TARGET_REF, TEST_BRANCH_PREFIX
from tests.support.repositories import Origin

MAIN = "main"
MAX_REWIND = 3
FIRST = 1
"""The first commit of a repository is never removed."""
LANDING_INTERFERENCE = frozenset(
    {"test branch deleted in a landing", "test branch deleted", "test branch moved", "rewind after a landing"}
)


class Interference:
    def __init__(self, scenario: CampaignScenario, people: People, chance: Random) -> None:
        self.done: list[str] = []
        """What was done, as the report names it."""
        self._scenario = scenario
        self._origin: Origin = scenario.origin
        self._people = people
        self._chance = chance

    @property
    def tampered(self) -> bool:
        """Whether a landing was interfered with, so that its outcome can be unknown."""
        return not LANDING_INTERFERENCE.isdisjoint(self.done)

    def interfere(self) -> None:
        """Does one thing at random, now or in the middle of the next push."""
        ways: dict[Callable[[], str], int] = {
            self._push: 6,
            self._rewind: 3,
            self._cherry_pick_manually: 1,
            self._merge_manually: 1,
            self._delete_test_branch: 1,
            self._move_test_branch: 1,
            self._interfere_with_landing: 6,
            self._interfere_with_build: 2,
        }
        self.done.append(self._chance.choices(list(ways), list(ways.values()))[0]())

    def stop(self) -> None:
        self._scenario.host_log.disarm()

    def _push(self) -> str:
        self._origin.set_ref(MAIN, self._people.commit_outside_queue(MAIN))
        return "push"

    def _rewind(self) -> str:
        self._origin.set_ref(MAIN, self._earlier())
        if self._chance.random() < 0.3:
            self._push()
        return "rewind"

    def _cherry_pick_manually(self) -> str:
        """The changes of a pull request are pushed as another commit."""
        self._push_changes(self._random_head(), merging=None)
        return "manual cherry-pick"

    def _merge_manually(self) -> str:
        head = self._random_head()
        self._push_changes(head, merging=head)
        return "manual merge"

    def _push_changes(self, head: Sha, merging: Sha | None) -> None:
        tip = self._origin.tip(MAIN)
        tree = clean_merge(self._origin, tip, head)
        if tree is not None:
            files = changes(snapshot(self._origin, tip), snapshot(self._origin, tree))
            self._origin.commit(MAIN, files, message="Merged manually", merging=merging)

    def _delete_test_branch(self) -> str:
        for branch in self._random_test_branch():
            self._origin.delete_ref(branch)
        return "test branch deleted"

    def _move_test_branch(self) -> str:
        for branch in self._random_test_branch():
            self._origin.set_ref(branch, self._people.commit_outside_queue(branch))
        return "test branch moved"

    def _interfere_with_landing(self) -> str:
        """In the middle of the next landing, before or after the target branch moves."""
        foreign, earlier, tip = self._people.commit_outside_queue(MAIN), self._earlier(), self._origin.tip(MAIN)
        actions = {
            "push before a landing": (PushMoment.RECEIVED, [f"update {TARGET_REF} {foreign}"]),
            "rewind before a landing": (PushMoment.RECEIVED, [f"update {TARGET_REF} {earlier}"]),
            "rewind after a landing": (PushMoment.APPLIED, [f"update {TARGET_REF} {tip}"]),
            "test branch deleted in a landing": (
                PushMoment.RECEIVED,
                [f"delete {each}" for each in self._random_test_branch()],
            ),
        }
        name = self._chance.choice(list(actions))
        when, updates = actions[name]
        self._scenario.host_log.arm(when, TARGET_REF, update_refs_command(*updates))
        return name

    def _interfere_with_build(self) -> str:
        foreign = self._people.commit_outside_queue(MAIN)
        actions = {
            "push during a build": update_refs_command(f"update {TARGET_REF} {foreign}"),
            "test branch forged": forge_commit_command(foreign),
        }
        name = self._chance.choice(list(actions))
        self._scenario.host_log.arm(PushMoment.RECEIVED, TEST_BRANCH_PREFIX, actions[name])
        return name

    def _earlier(self) -> Sha:
        commits = self._origin.log(MAIN, "%H")
        return Sha(commits[max(FIRST, len(commits) - 1 - self._chance.randint(1, MAX_REWIND))])

    def _random_head(self) -> Sha:
        """Of a pull request that passes: a broken target branch blocks all others."""
        good = [proposal for proposal in self._people.pull_requests.values() if "failing" not in proposal.kinds]
        return self._origin.tip(self._chance.choice(good).branch if good else MAIN)

    def _random_test_branch(self) -> list[str]:
        branches = sorted(self._scenario.test_branches())
        return [self._chance.choice(branches)] if branches else []
