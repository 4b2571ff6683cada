"""Evidence that goes into details: what every pull request became, and where others had moved what it changed."""

from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.ids import Sha
from tests.support.api import Api
from tests.support.ci import Ci
from tests.support.evidence import Landing, Stay
from tests.support.git_evidence import GitEvidence
from tests.support.host_log import HostLog, Move
from tests.support.repositories import Origin


class Piece(Struct, frozen=True):
    """What one pull request became in a chain."""

    number: int
    head: Sha
    onto: Sha
    commits: tuple[Sha, ...]
    """The oldest first."""

    @property
    def last(self) -> Sha:
        return self.commits[-1]


class DetailedEvidence(GitEvidence):
    required = frozenset({"unit"})

    def __init__(self, origin: Origin, host_log: HostLog, api: Api, ci: Ci) -> None:
        super().__init__(origin, host_log, api, ci)
        self._judging = ci
        self._told_before = dict[tuple[Sha, Sha], list[tuple[Sha, int, str]]]()

    def _told(self, landing: Landing) -> list[tuple[Sha, int, str]]:
        """Asked once: what landed does not change. What lands directly may be somebody's own commit, with any words."""
        place = (landing.old, landing.new)
        if place not in self._told_before:
            told = super()._told(landing)
            self._told_before[place] = told if landing.run else [(commit, 0, "") for commit, _, _ in told]
        return self._told_before[place]

    def landed_pieces(self, landing: Landing) -> list[Piece]:
        return self._pieces(landing)

    def tested_pieces(self, landing: Landing) -> list[Piece]:
        """All of the stack in which it was tested; some may have landed before, as other commits."""
        assert landing.run
        tip = Sha(landing.run["testBranchSha"])
        return self._pieces(replace(landing, old=self._stands_on(tip, landing.old), new=tip))

    def targets(self) -> list[Sha]:
        """Every commit that the target ever was, in order."""
        moves = [move for each in self.transactions if (move := each.of(self.target))]
        return list(dict.fromkeys(sha for move in moves for sha in (move.old, move.new) if sha)) or [self.tip]

    def removed_by_others(self) -> set[Sha]:
        """With the pull requests of which it was made."""
        moves = [each.of(self.target) for each in self.transactions if not each.by_service]
        return set[Sha]().union(*(self._removed_with_heads(move) for move in moves if move))

    def _removed_with_heads(self, move: Move) -> set[Sha]:
        removed = self.removed_by(move)
        heads = [Sha(stay["prSha"]) for stay in self.stays.values() if stay["mergedSha"] in removed]
        return removed.union(*(self._beyond(head, move.new) for head in heads if move.new))

    def heads_beneath(self, head: Sha, onto: Sha) -> list[Sha]:
        """Those that it holds, and that the target holds only in another form."""
        landed = [stay for stay in self.stays.values() if stay["mergedSha"]]
        inside = self.commits_of(head) - {head} - self.commits_of(onto)
        there = [stay for stay in landed if stay["prSha"] in inside and self.holds(onto, Sha(stay["mergedSha"]))]
        return [Sha(stay["prSha"]) for stay in there]

    def commits_of(self, head: Sha) -> set[Sha]:
        return {*map(Sha, self._git.run("rev-list", head).decode().split())}

    def is_red(self, commit: Sha) -> bool:
        return self._judging.verdict(commit) == "failure"

    def parents(self, commit: Sha) -> tuple[Sha, ...]:
        return tuple(map(Sha, self._git.run("rev-parse", f"{commit}^@").decode().split()))

    def paths_changed_by(self, stay: Stay, upon: Sha) -> set[str]:
        """Also what one commit of it did and another undid, and where others have moved what it changed."""
        own = super().paths_changed_by(stay, upon) | self._touched(Sha(stay["prSha"]), upon)
        fork = Sha(self._merge_base(upon, stay["prSha"]))
        return own | {new for old, new in self._moved(fork, upon) if old in own}

    def brings_just(self, landing: Landing, stay: Stay) -> bool:
        """Of one that holds another, a merge with the target tells only the sum of both: see `judging`."""
        return super().brings_just(landing, stay) or bool(self._others_in(stay))

    def _others_in(self, stay: Stay) -> set[str]:
        heads = {other["prSha"] for other in self.stays.values()} - {stay["prSha"]}
        return heads & self.commits_of(Sha(stay["prSha"]))

    def _touched(self, head: Sha, upon: Sha) -> set[str]:
        """By any commit of its own."""
        form = ("log", "-m", "--first-parent", "--raw", "--no-renames", "--format=", head, f"^{upon}")
        return {line.rpartition("\t")[2] for line in self._git.run(*form).decode().splitlines() if line}

    def _moved(self, old: Sha, new: Sha) -> list[tuple[str, str]]:
        lines = self._git.run("diff-tree", "-r", "-M", "--diff-filter=R", old, new).decode().splitlines()
        return [(before, after) for _, before, after in (line.split("\t") for line in lines)]

    def _stands_on(self, tip: Sha, target: Sha) -> Sha:
        """The last commit that was the target's own: heads may be part of both, by another way."""
        targets = set(self.way_to(target))
        return next(commit for commit in self.way_to(tip) if commit in targets)

    def way_to(self, tip: Sha) -> list[Sha]:
        """Along first parents, the newest first."""
        return [*map(Sha, self._git.run("rev-list", "--first-parent", tip).decode().split())]

    def _pieces(self, chain: Landing) -> list[Piece]:
        told, onto, pieces = reversed(self._told(chain)), chain.old, list[Piece]()
        for number, group in groupby(told, key=lambda each: each[1]):
            commits = tuple(commit for commit, _, _ in group)
            pieces.append(Piece(number, self._head_of(number), onto, commits))
            onto = commits[-1]
        return pieces

    def _head_of(self, number: int) -> Sha:
        return next((Sha(stay["prSha"]) for stay in self.stays.values() if stay["prNumber"] == number), Sha(""))
