"""The evidence of a simulated world: the same three logs, and its repository asked directly."""

import re

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Conflict
from tests.simulation.world import World
from tests.support.evidence import Evidence, Landing

TRAILER = re.compile(r"^Mergeyard-(Pull-Request|Run): (.*)$", re.MULTILINE)


class SimEvidence(Evidence):
    def __init__(self, world: World) -> None:
        super().__init__(world.origin, world.api, world.ci)
        self.required = frozenset(world.script.statuses)
        self._origin = world.origin
        self._objects = world.origin.objects

    @property
    def tip(self) -> Sha:
        return self._origin.target

    def tree(self, commit: str) -> Sha:
        return self._objects.commits[Sha(commit)].tree

    def holds(self, commit: Sha, ancestor: Sha) -> bool:
        return self._objects.holds(commit, ancestor)

    def somebody_undid_a_landing(self, *, without_a_branch: bool) -> bool:
        moves = [(each, move) for each in self.transactions if (move := each.of(self.target))]
        alone = {1} if without_a_branch else {1, 2}
        merged = [move.new for each, move in moves if each.by_service and len(each.moves) in alone]
        undone = [move for each, move in moves if not each.by_service]
        return any(new in self.removed_by(move) for new in merged if new for move in undone)

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
