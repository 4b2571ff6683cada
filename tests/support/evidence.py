"""What can be said afterwards about a server: the host's log, its own records, and the answers that it gave."""

import re
from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.api import Answer, Api, Refused
from tests.support.ci import REQUIRED, Ci
from tests.support.host_log import TEST_BRANCHES, HostLog, Move, Transaction
from tests.support.repositories import Origin

Stay = dict[str, Any]
Run = dict[str, Any]
ENDED = frozenset({"merged", "failed", "cancelled"})
RUN_OF_BRANCH = re.compile(rf"{TEST_BRANCHES}.+/([0-9a-f-]{{36}})(?:-bisection)?")


class Landing(Struct, frozen=True):
    """A move of the target by the service; the run is that of the test branch that went with it."""

    place: int
    old: Sha
    new: Sha
    run: Run | None

    def __str__(self) -> str:
        return f"{self.old[:8]}..{self.new[:8]}"


class Evidence:
    required = frozenset(REQUIRED)

    def __init__(self, origin: Origin, host_log: HostLog, api: Api, ci: Ci) -> None:
        self.stays = dict[str, Stay]()
        self.runs = dict[str, Run]()
        self.transactions: tuple[Transaction, ...] = ()
        self.landings: tuple[Landing, ...] = ()
        self.target = f"refs/heads/{api.queue['targetBranch']}"
        self.targets_beside = set[str]()
        """Of other queues in the same repository."""
        self._git = origin
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
        for name in {found[1] for ref in self._test_branches() if (found := RUN_OF_BRANCH.fullmatch(ref))}:
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
                yield Landing(transaction.place, move.old, move.new, self._run_deleted_by(transaction))

    def _run_deleted_by(self, transaction: Transaction) -> Run | None:
        names = [RUN_OF_BRANCH.fullmatch(move.ref) for move in transaction.moves if move.new is None]
        return next((self.runs.get(name[1]) for name in names if name), None)

    def was_on_target(self, commit: Sha) -> bool:
        return any(commit in self._commits(landing) for landing in self.landings)

    # Git

    @property
    def tip(self) -> Sha:
        return self._git.tip(self.target)

    def tree(self, commit: str) -> Sha:
        return Sha(self._git.run("rev-parse", f"{commit}^{{tree}}").decode().strip())

    def holds(self, commit: Sha, ancestor: Sha) -> bool:
        return not self._git.run("rev-list", "--max-count=1", ancestor, f"^{commit}")

    def landed_as_tested(self, landing: Landing) -> bool:
        assert landing.run
        count = len(self._commits(landing)) + 1
        return self._trees(landing.new, count) == self._trees(landing.run["testBranchSha"], count)

    def is_composed(self, landing: Landing) -> bool:
        """The tested contents, upon a tip that moved only elsewhere; if those that moved it were tested along, all of
        what was tested."""
        assert landing.run
        tested = landing.run["testBranchSha"]
        if self.tree(landing.new) == self.tree(tested):
            return True
        beneath = f"{tested}~{len(self._commits(landing))}"
        brought = self._changes(beneath, tested)
        elsewhere = self._changes(beneath, landing.old)
        return brought == self._changes(landing.old, landing.new) and brought.keys().isdisjoint(elsewhere)

    def brings_just(self, landing: Landing, stay: Stay) -> bool:
        own = [commit for commit, number, _ in self._told(landing) if number == stay["prNumber"]]
        merged = self._git.run("merge-tree", "--write-tree", f"{own[-1]}^", stay["prSha"]).decode().strip()
        return merged == self.tree(own[0])

    def changes_beyond(self, landing: Landing, stays: list[Stay]) -> set[str]:
        """Paths that it changed, and none of these pull requests did."""
        own = set[str]().union(*(self.paths_changed_by(stay, upon=landing.old) for stay in stays))
        return self._changes(landing.old, landing.new).keys() - own

    def paths_changed_by(self, stay: Stay, upon: Sha) -> set[str]:
        base = self._git.run("merge-base", upon, stay["prSha"]).decode().strip()
        return {*self._changes(base, stay["prSha"])}

    def removed_by(self, move: Move) -> set[Sha]:
        """Commits that somebody took off the target."""
        if move.old is None or move.new is None:
            return set()
        return {*map(Sha, self._git.run("rev-list", move.old, f"^{move.new}").decode().split())}

    def brought_by(self, landing: Landing) -> set[Sha]:
        return {*map(Sha, self._git.run("rev-list", landing.new, f"^{landing.old}").decode().split())}

    def place_of(self, landing: Landing, stay: Stay) -> tuple[int, int]:
        """Where a pull request landed; those of one landing have places of their own."""
        numbers = [number for _, number, _ in reversed(self._told(landing))]
        return landing.place, numbers.index(stay["prNumber"]) if stay["prNumber"] in numbers else 0

    def _commits(self, landing: Landing) -> list[Sha]:
        return [commit for commit, _, _ in self._told(landing)]

    def _told(self, landing: Landing) -> list[tuple[Sha, int, str]]:
        """The commits of a landing, the last first, each with the pull request and the run that it names."""
        form = "%H %(trailers:key=Mergeyard-Pull-Request,valueonly,separator=)"
        form += " %(trailers:key=Mergeyard-Run,valueonly,separator=)"
        lines = self._git.run("log", "--first-parent", f"--format={form}", f"{landing.old}..{landing.new}")
        parts = (line.split(" ") for line in lines.decode().splitlines())
        return [(Sha(commit), int(number or 0), run) for commit, number, run in parts]

    def _trees(self, commit: str, count: int) -> list[str]:
        return self._git.run("log", "--first-parent", f"-{count}", "--format=%T", commit).decode().split()

    def _changes(self, old: str, new: str) -> dict[str, str]:
        """Every path that differs, with what it became."""
        lines = self._git.run("diff-tree", "-r", "--no-renames", old, new).decode().splitlines()
        return {path: facts.split(" ")[3] for facts, path in (line.split("\t") for line in lines)}

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

    def lanes_of(self, stay: Stay) -> frozenset[str]:
        """As they were last said to be; none where nobody was asked."""
        said: list[object] = [
            answer.body["impactedTargets"]
            for answer in self.answers_to("setImpactedTargets")
            if answer.body["pr"]["number"] == stay["prNumber"]
        ]
        return frozenset(map(str, cast("list[str]", said[-1]))) if said and said[-1] != "ALL" else frozenset()

    def told_stays(self) -> Iterator[Stay]:
        for answer in self._api.answers:
            if "stateChangedAt" in answer.told:
                yield answer.told

    def times_asked_to_submit(self, number: int) -> int:
        """By different keys: the same key asks for the same thing again."""
        asked = self._api.asked
        return len({key for path, key, body in asked if path == "submitPullRequest" and body["pr"]["number"] == number})
