"""The evidence of a simulated world: the same three logs, and its repository asked directly."""

import re

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Conflict
from tests.simulation.script import Change, JumpClock
from tests.simulation.world import World
from tests.support.evidence import Evidence, Landing, Stay
from tests.support.host_log import Move

TRAILER = re.compile(r"^Mergeyard-(Pull-Request|Run): (.*)$", re.MULTILINE)


class SimEvidence(Evidence):
    def __init__(self, world: World) -> None:
        super().__init__(world.origin, world.api, world.ci)
        self.required = frozenset(world.script.statuses)
        self.clocks_agree = not any(isinstance(act, JumpClock) for act in world.script.acts)
        self._origin = world.origin
        self._objects = world.origin.objects
        self._tips_seen = world.tips_seen
        self._late = world.origin.late
        changes = [act for act in world.script.acts if isinstance(act, Change) and act.setting == "mergeMethod"]
        self._methods = {world.script.config.merge_method, *(change.value for change in changes)}

    @property
    def tip(self) -> Sha:
        return self._origin.target

    def tree(self, commit: str) -> Sha:
        return self._objects.commits[Sha(commit)].tree

    def holds(self, commit: Sha, ancestor: Sha) -> bool:
        return self._objects.holds(commit, ancestor)

    def removed_by(self, move: Move) -> set[Sha]:
        """What our queue had not seen on the target it cannot keep away from there."""
        place = next(transaction.place for transaction in self.transactions if move in transaction.moves)
        seen = [tip for tip, at in self._tips_seen.items() if at <= place]
        return {commit for commit in super().removed_by(move) if any(self.holds(tip, commit) for tip in seen)}

    def conflicts(self, stay: Stay, tip: Sha) -> bool:
        """As git merges it upon this tip; where all are squashed or rebased, with the heads that it stands upon in the
        history of that tip. What was taken off and came back with somebody else's merge does not count as landed."""
        head = Sha(stay["prSha"])
        landed = [each for each in self.stays.values() if each["mergedSha"] and self._on_the_line(each, tip)]
        beneath = [Sha(each["prSha"]) for each in landed if self.holds(head, Sha(each["prSha"]))]
        ground = tip if MergeMethod.MERGE_COMMIT in self._methods else self._with_parents(tip, beneath)
        return not self._merged(ground, head)

    def _on_the_line(self, stay: Stay, tip: Sha) -> bool:
        return self._objects.first_parents(tip, Sha(stay["mergedSha"])) is not None

    def is_about_a_late_merge(self, broken: str) -> bool:
        late = [landing for landing in self.landings if landing.new in self._late]
        names = [self.name(stay["id"]) for landing in late for stay in self.stays_in(landing)]
        return any(name in broken for name in (*map(str, late), *names))

    def undone(self, *, without_a_branch: bool) -> list[Sha]:
        """What we landed and somebody else took off again."""
        moves = [(each, move) for each in self.transactions if (move := each.of(self.target))]
        alone = {1} if without_a_branch else {1, 2}
        landed = [move.new for each, move in moves if each.by_service and len(each.moves) in alone]
        removed = [super(SimEvidence, self).removed_by(move) for each, move in moves if not each.by_service]
        return [new for new in landed if new and any(new in commits for commits in removed)]

    def _told(self, landing: Landing) -> list[tuple[Sha, int, str]]:
        """As git shows it: first parents that the old tip does not hold, the last first."""
        told, sha = list[tuple[Sha, int, str]](), landing.new
        while not self._objects.holds(landing.old, sha):
            named = dict[str, str](TRAILER.findall(self._objects.commits[sha].message))
            told.append((sha, int(named.get("Pull-Request", 0)), named.get("Run", "")))
            sha = self._objects.commits[sha].parents[0]
        return told

    def _beneath(self, commit: str, count: int) -> str:
        for _ in range(count):
            commit = self._objects.commits[Sha(commit)].parents[0]
        return commit

    def _beyond(self, commit: Sha, other: Sha) -> set[Sha]:
        return {*self._objects.beyond(commit, [other])}

    def _with_parents(self, commit: Sha, parents: list[Sha]) -> str:
        return self._objects.commit(self.tree(commit), (commit, *parents), "ground")

    def _merge_base(self, one: str, other: str) -> str:
        return self._objects.merge_base(Sha(one), Sha(other))

    def _merged(self, onto: str, head: str) -> str:
        tree = self._objects.merge(Sha(onto), Sha(head))
        return "" if isinstance(tree, Conflict) else tree

    def _trees(self, commit: str, count: int) -> list[str]:
        trees = list[str]()
        while len(trees) < count:
            found = self._objects.commits[Sha(commit)]
            trees.append(found.tree)
            if not found.parents:
                break
            commit = found.parents[0]
        return trees

    def _changes(self, old: str, new: str) -> dict[str, str]:
        return {path: content or "" for path, content in self._objects.changes(Sha(old), Sha(new)).items()}
