"""Interference on the Git host: others push, rewind the target branch, and change test branches; authors push, rebase,
delete and create their head branches."""

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
    def __init__(
        self, scenario: CampaignScenario, people: People, chance: Random, authors: Random, *, heads_first: bool
    ) -> None:
        self.done: list[str] = []
        """What was done, as the report names it."""
        self.pushed = set[int]()
        """The pull requests whose authors changed their heads."""
        self.disturbed = set[int]()
        """The pull requests whose authors changed their head branches."""
        self._to_submit = list[int]()
        self._own_heads = dict[int, Sha]()
        """What the author of each pull request pushed last."""
        self._authors = authors
        self._heads_first = heads_first
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

    def let_author_act(self) -> None:
        """The author of one pull request changes the head branch, now or in the middle of the next landing, before or
        after its refs moved. Half of the time the pull request follows, on a forge always, and is submitted again."""
        number, chance = self._authors.choice(list(self._people.pull_requests)), self._authors
        branch = self._people.pull_requests[number].branch
        way = chance.choice(("pushes", "pushes", "rewrites", "rewrites", "deletes", "restores"))
        head = None if way == "deletes" else self._new_head(number, way)
        moment = chance.choice((None, PushMoment.RECEIVED, PushMoment.RECEIVED, PushMoment.APPLIED))
        follows = head is not None and (self._heads_first or chance.random() < 0.5)
        pushed = chance.choice((TARGET_REF, f"refs/heads/{branch}")) if self._heads_first else TARGET_REF
        self.disturbed.add(number)
        if follows:
            self.pushed.add(number)
            self._to_submit.append(number)
        refs = [f"refs/heads/{branch}", *([f"refs/pull/{number}/head"] if follows else [])]
        orders = [f"delete {ref}" if head is None else f"update {ref} {head}" for ref in refs]
        if moment is not None:
            self._scenario.host_log.arm(moment, pushed, update_refs_command(*orders))
        elif head is not None or self._origin.ref(branch) is not None:
            self._origin.run("update-ref", "--no-deref", "--stdin", stdin="".join(f"{o}\n" for o in orders).encode())
        what = "a landing" if pushed == TARGET_REF else "its head moved"
        when = {None: "", PushMoment.RECEIVED: f" before {what}", PushMoment.APPLIED: f" after {what}"}[moment]
        self.done.append(f"author {way}{when}")

    def take_resubmitted(self) -> list[int]:
        """The pull requests that authors want to submit again."""
        numbers, self._to_submit = self._to_submit, []
        return numbers

    def _new_head(self, number: int, way: str) -> Sha:
        """More commits, the same changes on top of the target branch, or the last head that the author pushed."""
        own = self._own_heads.get(number) or self._origin.tip(f"refs/pull/{number}/head")
        if way == "pushes":
            own = self._people.commit_outside_queue(own)
        elif way == "rewrites":
            target = self._origin.tip(self._people.pull_requests[number].base)
            tree = clean_merge(self._origin, target, own) or f"{own}^{{tree}}"
            command = ("commit-tree", tree, "-p", target, "-m", "Rewritten")
            own = Sha(self._origin.run(*command).decode().strip())
        self._own_heads[number] = own
        return own

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
        return self._origin.tip(self._people.place_of(self._chance.choice(good)) if good else MAIN)

    def _random_test_branch(self) -> list[str]:
        branches = sorted(self._scenario.test_branches())
        return [self._chance.choice(branches)] if branches else []
