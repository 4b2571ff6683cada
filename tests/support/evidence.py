"""What can be said afterwards about a server: the host's log, its own records, and the answers that it gave."""

import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Protocol, cast

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.ids import Sha
from tests.support.api import Answer, Refused
from tests.support.ci import REQUIRED
from tests.support.host_log import TEST_BRANCHES, Move, Transaction

Stay = dict[str, Any]
Run = dict[str, Any]
ENDED = frozenset({"merged", "failed", "cancelled"})
MOST_STEPS = 100
"""Of a run."""
RUN_OF_BRANCH = re.compile(rf"{TEST_BRANCHES}.+/([0-9a-f-]{{36}})(?:-bisection)?")


class Landing(Struct, frozen=True):
    """A move of the target by the service; the run is that of the test branch that went with it."""

    place: int
    old: Sha
    new: Sha
    run: Run | None
    by_forge: bool = False
    """The forge merged it, and no branch went with it: its words name the run."""

    def __str__(self) -> str:
        return f"{self.old[:8]}..{self.new[:8]}"


class Log(Protocol):
    """What the host's refs did."""

    def __iter__(self) -> Iterator[Transaction]: ...


class People(Protocol):
    """Who asked, and what they were told."""

    queue: dict[str, Any]
    answers: list[Answer]
    asked: list[tuple[str, str, dict[str, Any]]]

    def post(self, path: str, **members: Any) -> dict[str, Any]: ...


class Reporter(Protocol):
    """A CI that remembers what it ever called a success."""

    passed: defaultdict[Sha, set[str]]


class Evidence(ABC):
    required = frozenset(REQUIRED)
    clocks_agree = True
    """Else the instants that are told say nothing about what came first."""

    def __init__(self, host_log: Log, api: People, ci: Reporter) -> None:
        self.stays = dict[str, Stay]()
        self.runs = dict[str, Run]()
        self.transactions: tuple[Transaction, ...] = ()
        self.landings: tuple[Landing, ...] = ()
        self.target = f"refs/heads/{api.queue['targetBranch']}"
        self.targets_beside = set[str]()
        """Of other queues in the same repository."""
        self._host_log = host_log
        self._api = api
        self._ci = ci

    def collect(self) -> None:
        """Reads the records; again before a queue is deleted, since they go with it."""
        listed = {stay["id"]: stay for stay in self._listed()}
        self.stays |= listed
        for number in {stay["prNumber"] for stay in listed.values()}:
            last = self._api.post("getSubmittedPullRequest", pr={"number": number}, includeTimeline=True)
            self.stays[last["id"]] = last
        for name in sorted({found[1] for ref in self._test_branches() if (found := RUN_OF_BRANCH.fullmatch(ref))}):
            try:
                self.runs[name] = self._api.post("getMergeQueueTestingDetails", testRunId=name)
            except Refused as refused:
                if refused.code != "test_run_not_found":
                    raise
        self.transactions = tuple(self._host_log)
        self.landings = tuple(self._landings())

    def _listed(self) -> Iterator[Stay]:
        page = self._api.post("listPullRequests", take=100)
        yield from page["pullRequests"]
        while "nextCursor" in page:
            page = self._api.post("listPullRequests", take=100, cursor=page["nextCursor"])
            yield from page["pullRequests"]

    def _test_branches(self) -> set[str]:
        return {move.ref for transaction in self._host_log for move in transaction.moves}

    # The host

    def _landings(self) -> Iterator[Landing]:
        for transaction in self.transactions:
            move = transaction.of(self.target)
            if transaction.by_service and move and move.old and move.new:
                landing = Landing(transaction.place, move.old, move.new, self._run_deleted_by(transaction))
                yield landing if landing.run else self._merged_by_forge(landing)

    def _merged_by_forge(self, landing: Landing) -> Landing:
        runs = [self.runs[run] for _, _, run in self._told(landing) if run in self.runs]
        return replace(landing, run=runs[0], by_forge=True) if runs else landing

    def _run_deleted_by(self, transaction: Transaction) -> Run | None:
        names = [RUN_OF_BRANCH.fullmatch(move.ref) for move in transaction.moves if move.new is None]
        return next((self.runs.get(name[1]) for name in names if name), None)

    def was_on_target(self, commit: Sha) -> bool:
        return any(commit in self._commits(landing) for landing in self.landings)

    # The repository

    @property
    @abstractmethod
    def tip(self) -> Sha:
        """Of the target, now."""

    @abstractmethod
    def tree(self, commit: str) -> Sha: ...

    @abstractmethod
    def holds(self, commit: Sha, ancestor: Sha) -> bool: ...

    @abstractmethod
    def _told(self, landing: Landing) -> list[tuple[Sha, int, str]]:
        """The commits of a landing, the last first, each with the pull request and the run that it names."""

    @abstractmethod
    def _beneath(self, commit: str, count: int) -> str:
        """So many first parents further down."""

    @abstractmethod
    def _beyond(self, commit: Sha, other: Sha) -> set[Sha]:
        """What one holds and the other does not."""

    @abstractmethod
    def _with_parents(self, commit: Sha, parents: list[Sha]) -> str:
        """The same contents, with these in their history."""

    @abstractmethod
    def _merge_base(self, one: str, other: str) -> str: ...

    @abstractmethod
    def _merged(self, onto: str, head: str) -> str:
        """The tree of a merge."""

    @abstractmethod
    def _trees(self, commit: str, count: int) -> list[str]:
        """Of so many along first parents."""

    @abstractmethod
    def _changes(self, old: str, new: str) -> dict[str, str]:
        """Every path that differs, with what it became."""

    # What they say together

    def landed_as_tested(self, landing: Landing) -> bool:
        assert landing.run
        if landing.by_forge:
            return self.tree(landing.new) in self._trees(landing.run["testBranchSha"], MOST_STEPS)
        count = len(self._commits(landing)) + 1
        return self._trees(landing.new, count) == self._trees(landing.run["testBranchSha"], count)

    def is_told_as_mismatch(self, landing: Landing) -> bool:
        """A forge may merge upon what somebody pushed in that very moment: then the queue says so, and pauses."""
        return any(stay["reason"]["code"] == "tree_mismatch" for stay in self.stays_in(landing))

    def is_composed(self, landing: Landing) -> bool:
        """The tested contents, upon a tip that moved only elsewhere or by those who were tested along."""
        assert landing.run
        tested = self._tested_by_forge(landing) if landing.by_forge else landing.run["testBranchSha"]
        if self.tree(landing.new) == self.tree(tested):
            return True
        if self._somebody_else_moved_it(Sha(tested), landing):
            return False
        numbers = {number for _, number, _ in self._told(landing)}
        own = [step for step, number, _ in reversed(self._stack(tested, landing)) if number in numbers]
        brought = self._overall(*((self._beneath(step, 1), step) for step in own))
        return brought == self._overall((landing.old, landing.new))

    def _stack(self, tested: str, landing: Landing) -> list[tuple[Sha, int, str]]:
        return self._told(replace(landing, old=Sha(self._merge_base(landing.old, tested)), new=Sha(tested)))

    def _overall(self, *steps: tuple[str, str]) -> dict[str, tuple[str, str]]:
        """Every path that differs after these steps, with what it was and what it became."""
        before, after = dict[str, str](), dict[str, str]()
        for old, new in steps:
            before = self._changes(new, old) | before
            after |= self._changes(old, new)
        return {path: (before[path], after[path]) for path in before if before[path] != after[path]}

    def _somebody_else_moved_it(self, tested: Sha, landing: Landing) -> bool:
        """Whether the target held what another than the service had brought there, and the test did not."""
        before = (each for each in self.transactions if not each.by_service and each.place < landing.place)
        moves = (move for each in before if (move := each.of(self.target)))
        brought = (move.new for move in moves if move.old and move.new and not self.holds(move.old, move.new))
        return any(self.holds(landing.old, new) and not self.holds(tested, new) for new in brought)

    def _tested_by_forge(self, landing: Landing) -> str:
        """A forge merges one by one: the step of the tested stack that is the same pull request's."""
        assert landing.run
        tested, (_, number, _) = landing.run["testBranchSha"], self._told(landing)[0]
        return next((step for step, other, _ in self._stack(tested, landing) if other == number), tested)

    def brings_just(self, landing: Landing, stay: Stay) -> bool:
        own = [commit for commit, number, _ in self._told(landing) if number == stay["prNumber"]]
        beneath, head = Sha(self._beneath(own[-1], 1)), Sha(stay["prSha"])
        grounds = (self._ground(beneath, head, counts) for counts in (self._landed_beneath, self._partly_beneath))
        return any(self._merged(ground, head) == self.tree(own[0]) for ground in grounds)

    def _ground(self, beneath: Sha, head: Sha, counts: Callable[[Stay, Sha], bool]) -> str:
        """Squashed or rebased it does not hold the head that it came from: who has commits of that one brings only what
        came after. Who has no other commit than its head, has none of theirs."""
        if not self._beyond(head, beneath) - {head}:
            return beneath
        others = {other["prSha"] for other in self.stays.values() if counts(other, beneath)}
        common = {Sha(self._merge_base(head, other)) for other in others} - {head}
        held = [commit for commit in sorted(common) if not self.holds(beneath, commit)]
        return self._with_parents(beneath, held) if held else beneath

    def _landed_beneath(self, stay: Stay, commit: Sha) -> bool:
        return bool(stay["mergedSha"]) and self.holds(commit, Sha(stay["mergedSha"]))

    def _partly_beneath(self, stay: Stay, commit: Sha) -> bool:
        """Of several rebased commits somebody may have left the first ones."""
        told = (each for landing in self.landings for each in self._told(landing))
        return any(number == stay["prNumber"] and self.holds(commit, part) for part, number, _ in told)

    def changes_beyond(self, landing: Landing, stays: list[Stay]) -> set[str]:
        """Paths that it changed, and none of these pull requests did."""
        own = set[str]().union(*(self.paths_changed_by(stay, upon=landing.old) for stay in stays))
        return self._changes(landing.old, landing.new).keys() - own

    def paths_changed_by(self, stay: Stay, upon: Sha) -> set[str]:
        return {*self._changes(self._merge_base(upon, stay["prSha"]), stay["prSha"])}

    def removed_by(self, move: Move) -> set[Sha]:
        """Commits that somebody took off the target."""
        if move.old is None or move.new is None:
            return set()
        return self._beyond(move.old, move.new)

    def was_brought_by_others(self, commit: Sha) -> bool:
        moves = [move for each in self.transactions if not each.by_service and (move := each.of(self.target))]
        return any(move.old and move.new and commit in self._beyond(move.new, move.old) for move in moves)

    def brought_by(self, landing: Landing) -> set[Sha]:
        return self._beyond(landing.new, landing.old)

    def brings_head_of(self, landing: Landing, stay: Stay) -> bool:
        """With another that stands upon it, though the target held neither it nor what had been made of it."""
        head, made = Sha(stay["prSha"]), Sha(stay["mergedSha"])
        if self.holds(landing.old, head) or self.holds(landing.old, made):
            return False
        return any(self.holds(Sha(other["prSha"]), head) for other in self.stays_in(landing))

    def place_of(self, landing: Landing, stay: Stay) -> tuple[int, int]:
        """Where a pull request landed; those of one landing have places of their own."""
        numbers = [number for _, number, _ in reversed(self._told(landing))]
        return landing.place, numbers.index(stay["prNumber"]) if stay["prNumber"] in numbers else 0

    def _commits(self, landing: Landing) -> list[Sha]:
        return [commit for commit, _, _ in self._told(landing)]

    # The records

    def name(self, stay: str) -> str:
        known = self.stays.get(stay)
        return f"#{known['prNumber']} ({known['state']}, {known['reason']['code']})" if known else stay

    def stays_in(self, landing: Landing) -> list[Stay]:
        """Those whose pull requests the commits name; and one that merged directly is its own commit."""
        told = self._told(landing)
        commits, runs = {commit for commit, _, _ in told}, {run for _, _, run in told}
        numbers = {number for _, number, _ in told if number}
        own = [stay for stay in self.stays.values() if stay["mergedSha"] in commits]
        for number in numbers - {stay["prNumber"] for stay in own}:
            others = [stay for stay in self.stays.values() if stay["prNumber"] == number]
            own.append(next((stay for stay in others if stay["testRunId"] in runs), others[-1]))
        return own

    def run_with_tip(self, tip: Sha) -> Run | None:
        return next((run for run in self.runs.values() if run["testBranchSha"] == tip), None)

    # The answers

    def passed(self, commit: Sha) -> set[str]:
        """What was ever reported as a success for a commit."""
        return self._ci.passed[commit]

    def answers_to(self, path: str) -> list[Answer]:
        return [answer for answer in self._api.answers if answer.path == path]

    def preceded(self, one: Answer, other: Answer) -> bool:
        """Whether it was answered before the other was asked for; else either may have been carried out first."""
        return any(answer is one for answer in self._api.answers[: other.asked_after])

    def lanes_of(self, stay: Stay) -> frozenset[str]:
        """As they were last said to be; none where nobody was asked."""
        said: list[object] = [
            answer.body["impactedTargets"]
            for answer in self.answers_to("setImpactedTargets")
            if answer.body["pr"]["number"] == stay["prNumber"]
        ]
        return frozenset(map(str, cast("list[str]", said[-1]))) if said and said[-1] != "ALL" else frozenset()

    def told_stays(self) -> Iterator[tuple[int, int, Stay]]:
        """Each with its place among the answers, and the place from which on it was asked for."""
        for place, answer in enumerate(self._api.answers):
            if "stateChangedAt" in answer.told:
                yield place, answer.asked_after, answer.told

    def times_asked_to_submit(self, number: int) -> int:
        """By different keys: the same key asks for the same thing again."""
        asked = self._api.asked
        return len({key for path, key, body in asked if path == "submitPullRequest" and body["pr"]["number"] == number})
