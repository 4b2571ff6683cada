"""Evidence about a server: the log of the Git host's refs, the server's records and its API responses."""

import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Protocol, cast

from msgspec import Struct, json
from msgspec.structs import replace

from mergeyard.domain.ids import Sha
from tests.support.api_client import ApiClient, ApiRefused, ApiResponse
from tests.support.ci import REQUIRED_CHECKS, Ci
from tests.support.host_log import TEST_BRANCH_PREFIX, HostLog, RefUpdate, Transaction
from tests.support.repositories import Origin

SubmissionJson = dict[str, Any]
RunJson = dict[str, Any]
ENDED = frozenset({"merged", "failed", "cancelled"})
MAX_STEPS = 100
"""Steps of a run."""
TEST_BRANCH_PATTERN = re.compile(rf"{TEST_BRANCH_PREFIX}.+/([0-9a-f-]{{36}})(?:-bisection)?")


class Landing(Struct, frozen=True):
    """An update of the target branch by the service; its run is the one whose test branch the same push deleted."""

    log_index: int
    old: Sha
    new: Sha
    run: RunJson | None
    by_forge: bool = False
    """The forge merged it and no branch was deleted: the commit message names the run."""

    def __str__(self) -> str:
        return f"{self.old[:8]}..{self.new[:8]}"


class RefLog(Protocol):
    """Updates of the Git host's refs."""

    def __iter__(self) -> Iterator[Transaction]: ...


class RecordedClient(Protocol):
    """An API client that records requests and responses."""

    queue: dict[str, Any]
    responses: list[ApiResponse]
    requests: list[tuple[str, str, dict[str, Any]]]

    def post(self, path: str, **members: Any) -> dict[str, Any]: ...


class CheckReporter(Protocol):
    """A CI that records which checks it ever reported as passed."""

    passed: defaultdict[Sha, set[str]]


class Evidence(ABC):
    required = frozenset(REQUIRED_CHECKS)
    clocks_agree = True
    """If false, times of different replicas cannot be compared."""

    def __init__(self, host_log: RefLog, api: RecordedClient, ci: CheckReporter) -> None:
        self.submissions = dict[str, SubmissionJson]()
        self.runs = dict[str, RunJson]()
        self.transactions: tuple[Transaction, ...] = ()
        self.landings: tuple[Landing, ...] = ()
        self.target_ref = f"refs/heads/{api.queue['targetBranch']}"
        self.other_queues: list[Evidence] = []
        """Evidence about the other queues of the same repository."""
        self._host_log = host_log
        self._api = api
        self._ci = ci

    def collect(self) -> None:
        """Reads the records. Call it also before a queue is deleted, because its records are deleted too."""
        listed = {submission["id"]: submission for submission in self._list_submissions()}
        self.submissions |= listed
        for number in {submission["prNumber"] for submission in listed.values()}:
            last = self._api.post("getSubmittedPullRequest", pr={"number": number}, includeTimeline=True)
            self.submissions[last["id"]] = last
        for name in sorted(
            {found[1] for ref in self._test_branches() if (found := TEST_BRANCH_PATTERN.fullmatch(ref))}
        ):
            try:
                self.runs[name] = self._api.post("getMergeQueueTestingDetails", testRunId=name)
            except ApiRefused as error:
                if error.code != "test_run_not_found":
                    raise
        self.transactions = tuple(self._host_log)
        self.landings = tuple(self._find_landings())

    def _list_submissions(self) -> Iterator[SubmissionJson]:
        page = self._api.post("listPullRequests", take=100)
        yield from page["pullRequests"]
        while "nextCursor" in page:
            page = self._api.post("listPullRequests", take=100, cursor=page["nextCursor"])
            yield from page["pullRequests"]

    def _test_branches(self) -> set[str]:
        return {update.ref for transaction in self._host_log for update in transaction.updates}

    # The Git host

    def _find_landings(self) -> Iterator[Landing]:
        for transaction in self.transactions:
            update = transaction.update_of(self.target_ref)
            if transaction.by_service and update and update.old and update.new:
                landing = Landing(transaction.index, update.old, update.new, self._run_of_deleted_branch(transaction))
                yield landing if landing.run else self._with_run_of_forge_merge(landing)

    def _with_run_of_forge_merge(self, landing: Landing) -> Landing:
        runs = [self.runs[run] for _, _, run in self._read_commits(landing) if run in self.runs]
        return replace(landing, run=runs[0], by_forge=True) if runs else landing

    def _run_of_deleted_branch(self, transaction: Transaction) -> RunJson | None:
        names = [TEST_BRANCH_PATTERN.fullmatch(update.ref) for update in transaction.updates if update.new is None]
        return next((self.runs.get(name[1]) for name in names if name), None)

    def was_on_target(self, commit: Sha) -> bool:
        return any(commit in self._commits(landing) for landing in self.landings)

    # The repository

    @property
    @abstractmethod
    def tip(self) -> Sha:
        """The current tip of the target branch."""

    @abstractmethod
    def tree(self, commit: str) -> Sha: ...

    @abstractmethod
    def contains(self, commit: Sha, ancestor: Sha) -> bool: ...

    @abstractmethod
    def _read_commits(self, landing: Landing) -> list[tuple[Sha, int, str]]:
        """The commits of a landing, last first, each with the pull request and the run in its trailers."""

    @abstractmethod
    def origin_of(self, commit: Sha | None) -> tuple[int, str]:
        """The pull request and its head in the trailers of a commit that squashed or rebased it."""

    @abstractmethod
    def head_branch_ref(self, number: int) -> str:
        """The head branch of a pull request; empty if there is no such pull request."""

    @abstractmethod
    def _first_parent_ancestor(self, commit: str, count: int) -> str:
        """The ancestor that is `count` first parents away."""

    @abstractmethod
    def _commits_missing_in(self, commit: Sha, other: Sha) -> set[Sha]:
        """Commits that one contains and the other does not."""

    @abstractmethod
    def _with_parents(self, commit: Sha, parents: list[Sha]) -> str:
        """A commit with the same tree and these additional parents."""

    @abstractmethod
    def _merge_base(self, one: str, other: str) -> str: ...

    @abstractmethod
    def _merged_tree(self, onto: str, head: str) -> str:
        """The tree of the merge of head into onto; empty if they conflict."""

    @abstractmethod
    def _trees(self, commit: str, count: int) -> list[str]:
        """The trees of `count` commits along first parents."""

    @abstractmethod
    def _changes(self, old: str, new: str) -> dict[str, str]:
        """Every path that differs, with its new mode and blob."""

    # Comparisons

    def landed_as_tested(self, landing: Landing) -> bool:
        assert landing.run
        if landing.by_forge:
            return self.tree(landing.new) in self._trees(landing.run["testBranchSha"], MAX_STEPS)
        count = len(self._commits(landing)) + 1
        return self._trees(landing.new, count) == self._trees(landing.run["testBranchSha"], count)

    def is_reported_as_mismatch(self, landing: Landing) -> bool:
        """A forge can merge onto a commit that was pushed at the same moment: then the queue reports it and pauses."""
        return any(submission["reason"]["code"] == "tree_mismatch" for submission in self.submissions_in(landing))

    def is_rebased(self, landing: Landing) -> bool:
        """The tested changes on a tip that moved in other files only, or by pull requests of the same stack."""
        assert landing.run
        tested = self._tested_step(landing) if landing.by_forge else landing.run["testBranchSha"]
        if self.tree(landing.new) == self.tree(tested):
            return True
        if self._has_untested_external_push(Sha(tested), landing):
            return False
        numbers = {number for _, number, _ in self._read_commits(landing)}
        own = [step for step, number, _ in reversed(self._stack(tested, landing)) if number in numbers]
        tested_changes = self._combined_changes(*((self._first_parent_ancestor(step, 1), step) for step in own))
        return tested_changes == self._combined_changes((landing.old, landing.new))

    def _stack(self, tested: str, landing: Landing) -> list[tuple[Sha, int, str]]:
        return self._read_commits(replace(landing, old=Sha(self._merge_base(landing.old, tested)), new=Sha(tested)))

    def _combined_changes(self, *steps: tuple[str, str]) -> dict[str, tuple[str, str]]:
        """Every path that differs after these steps, with its old and new mode and blob."""
        before, after = dict[str, str](), dict[str, str]()
        for old, new in steps:
            before = self._changes(new, old) | before
            after |= self._changes(old, new)
        return {path: (before[path], after[path]) for path in before if before[path] != after[path]}

    def _has_untested_external_push(self, tested: Sha, landing: Landing) -> bool:
        """Whether the target branch contained an external push that the tested commit did not contain."""
        before = (each for each in self.transactions if not each.by_service and each.index < landing.log_index)
        updates = (update for each in before if (update := each.update_of(self.target_ref)))
        pushed = (
            update.new for update in updates if update.old and update.new and not self.contains(update.old, update.new)
        )
        return any(self.contains(landing.old, new) and not self.contains(tested, new) for new in pushed)

    def _tested_step(self, landing: Landing) -> str:
        """The step of this pull request in the tested stack: a forge merges pull requests one by one."""
        assert landing.run
        tested, (_, number, _) = landing.run["testBranchSha"], self._read_commits(landing)[0]
        return next((step for step, other, _ in self._stack(tested, landing) if other == number), tested)

    def brings_only(self, landing: Landing, submission: SubmissionJson) -> bool:
        own = [commit for commit, number, _ in self._read_commits(landing) if number == submission["prNumber"]]
        parent, head = Sha(self._first_parent_ancestor(own[-1], 1)), Sha(submission["prSha"])
        bases = [
            self._merge_base_commit(parent, head, counts)
            for counts in (_counts_never, self._has_landed_before, self._has_partly_landed_before)
        ]
        # Of several heads that landed, some can be reverted since: then only the others count.
        bases += self._whole_bases(parent, submission)
        return any(self._merged_tree(base, head) == self.tree(own[0]) for base in bases)

    def brings_whole(self, landing: Landing, submission: SubmissionJson) -> bool:
        """Whether the commits of this pull request make of their parent what git's own merge makes of it, or add the
        change that its reviewers saw. Where another pull request landed that it contains, what came after that one."""
        own = [commit for commit, number, _ in self._read_commits(landing) if number == submission["prNumber"]]
        if not own:
            return True
        onto, head, last = Sha(self._first_parent_ancestor(own[-1], 1)), Sha(submission["prSha"]), own[0]
        whole = (base for base in self._whole_bases(onto, submission) if self._merged_tree(base, head))
        if any(self._merged_tree(base, head) == self.tree(last) for base in whole):
            return True
        seen = (Sha(self._merge_base(onto, head)), head)
        return self._combined_changes(seen) == self._combined_changes((onto, last))

    def _whole_bases(self, onto: Sha, submission: SubmissionJson) -> list[str]:
        """What the whole change can be merged onto: the commit itself and, if this queue merged others that the pull
        request contains as other commits, one that has them in its history."""
        ahead = self.find_contained_ahead(onto, submission)
        return [onto, self._with_parents(onto, ahead)] if ahead else [onto]

    def find_contained_ahead(self, onto: Sha, submission: SubmissionJson) -> list[Sha]:
        """Heads in the history of a pull request that this queue merged as other commits, and that are still contained:
        merged alone, each changes nothing. One that was reverted since is not contained."""
        inside = self._commits_missing_in(Sha(submission["prSha"]), onto)
        landed = [other for other in self.submissions.values() if other["prSha"] in inside and other["mergedSha"]]
        heads = dict.fromkeys(Sha(other["prSha"]) for other in landed if self._is_merged_in(other, onto))
        heads.pop(Sha(submission["prSha"]), None)
        return [head for head in heads if self._merged_tree(onto, head) == self.tree(onto)]

    def _is_merged_in(self, submission: SubmissionJson, commit: Sha) -> bool:
        return self.contains(commit, Sha(submission["mergedSha"]))

    def _merge_base_commit(self, onto: Sha, head: Sha, counts: Callable[[SubmissionJson, Sha], bool]) -> str:
        """The commit to merge the head into, with squashed and rebased heads as additional parents.

        A squashed or rebased commit does not contain its original head. A pull request that contains commits of that
        head brings only what came after them. A head of one commit contains none of them.
        """
        if not self._commits_missing_in(head, onto) - {head}:
            return onto
        others = {other["prSha"] for other in self.submissions.values() if counts(other, onto)}
        common = {Sha(self._merge_base(head, other)) for other in others} - {head}
        missing = [commit for commit in sorted(common) if not self.contains(onto, commit)]
        return self._with_parents(onto, missing) if missing else onto

    def _has_landed_before(self, submission: SubmissionJson, commit: Sha) -> bool:
        return bool(submission["mergedSha"]) and self._is_merged_in(submission, commit)

    def _has_partly_landed_before(self, submission: SubmissionJson, commit: Sha) -> bool:
        """A removal from the target branch can leave the first of several rebased commits."""
        commits = (each for landing in self.landings for each in self._read_commits(landing))
        return any(number == submission["prNumber"] and self.contains(commit, part) for part, number, _ in commits)

    def merged_by_hand_as_tested(self) -> list[str]:
        """The names of pull requests whose tested commit others put on the target branch."""
        brought = self.tested_commits_brought_by_others()
        return [self.name(each["id"]) for each in self.submissions.values() if each["mergedSha"] in brought]

    def tested_commits_brought_by_others(self) -> set[Sha]:
        """Commits that the service had pushed to another branch; to the target branch of any queue."""
        targets = [queue.target_ref for queue in (self, *self.other_queues)]
        others = [each for each in self.transactions if not each.by_service]
        moves = [move for each in others for target in targets if (move := each.update_of(target))]
        brought = set[Sha]().union(
            *(self._commits_missing_in(each.new, each.old) for each in moves if each.new and each.old)
        )
        own = {update.new for each in self.transactions if each.by_service for update in each.updates}
        return {commit for commit in brought if commit in own}

    def unexplained_changes(self, landing: Landing, submissions: list[SubmissionJson]) -> set[str]:
        """Paths that the landing changed but none of these pull requests did."""
        own = set[str]().union(*(self.paths_changed_by(submission, onto=landing.old) for submission in submissions))
        return self._changes(landing.old, landing.new).keys() - own

    def paths_changed_by(self, submission: SubmissionJson, onto: Sha) -> set[str]:
        return {*self._changes(self._merge_base(onto, submission["prSha"]), submission["prSha"])}

    def removed_by(self, update: RefUpdate) -> set[Sha]:
        """Commits that this update removed from the target branch."""
        if update.old is None or update.new is None:
            return set()
        return self._commits_missing_in(update.old, update.new)

    def removed_by_others(self) -> set[Sha]:
        """Removed commits, with the heads of the pull requests that they came from."""
        moves = [each.update_of(self.target_ref) for each in self.transactions if not each.by_service]
        return set[Sha]().union(*(self._removed_with_heads(move) for move in moves if move))

    def _removed_with_heads(self, move: RefUpdate) -> set[Sha]:
        return self._with_heads(self.removed_by(move), move)

    def _with_heads(self, removed: set[Sha], move: RefUpdate) -> set[Sha]:
        heads = [
            Sha(submission["prSha"]) for submission in self.submissions.values() if submission["mergedSha"] in removed
        ]
        return removed.union(*(self._commits_missing_in(head, move.new) for head in heads if move.new))

    def brought_by(self, landing: Landing) -> set[Sha]:
        return self._commits_missing_in(landing.new, landing.old)

    def brings_head_of(self, landing: Landing, submission: SubmissionJson) -> bool:
        """Whether a pull request stacked on it brings its head, which the target branch did not contain in any form. If
        the branch still has the first of several rebased commits, the others do not come back."""
        head, merged = Sha(submission["prSha"]), Sha(submission["mergedSha"])
        if self.contains(landing.old, head) or self.contains(landing.old, merged):
            return False
        if self._has_partly_landed_before(submission, landing.old):
            return False
        return any(self.contains(Sha(other["prSha"]), head) for other in self.submissions_in(landing))

    def landing_position(self, landing: Landing, submission: SubmissionJson) -> tuple[int, int]:
        """The position of a pull request in landing order, also within one landing."""
        numbers = [number for _, number, _ in reversed(self._read_commits(landing))]
        return landing.log_index, numbers.index(submission["prNumber"]) if submission["prNumber"] in numbers else 0

    def _commits(self, landing: Landing) -> list[Sha]:
        return [commit for commit, _, _ in self._read_commits(landing)]

    # The records

    def name(self, submission_id: str) -> str:
        known = self.submissions.get(submission_id)
        return f"#{known['prNumber']} ({known['state']}, {known['reason']['code']})" if known else submission_id

    def submissions_in(self, landing: Landing) -> list[SubmissionJson]:
        """Submissions that were merged as one of the commits, or that the commits name."""
        read = self._read_commits(landing)
        commits, runs = {commit for commit, _, _ in read}, {run for _, _, run in read}
        numbers = {number for _, number, _ in read if number}
        own = [submission for submission in self.submissions.values() if submission["mergedSha"] in commits]
        for number in numbers - {submission["prNumber"] for submission in own}:
            others = [submission for submission in self.submissions.values() if submission["prNumber"] == number]
            own.append(next((submission for submission in others if submission["testRunId"] in runs), others[-1]))
        return own

    def run_with_tip(self, tip: Sha) -> RunJson | None:
        return next((run for run in self.runs.values() if run["testBranchSha"] == tip), None)

    # The API responses

    def passed(self, commit: Sha) -> set[str]:
        """Checks that were ever reported as passed for a commit."""
        return self._ci.passed[commit]

    def responses_to(self, path: str) -> list[ApiResponse]:
        return [response for response in self._api.responses if response.path == path]

    def preceded(self, one: ApiResponse, other: ApiResponse) -> bool:
        """Whether one response arrived before the other was requested; otherwise their order is unknown."""
        return any(response is one for response in self._api.responses[: other.responses_before_request])

    def impacted_targets_of(self, submission: SubmissionJson) -> frozenset[str]:
        """The last uploaded impacted targets; empty if none were uploaded."""
        uploads: list[object] = [
            response.body["impactedTargets"]
            for response in self.responses_to("setImpactedTargets")
            if response.body["pr"]["number"] == submission["prNumber"]
        ]
        return frozenset(map(str, cast("list[str]", uploads[-1]))) if uploads and uploads[-1] != "ALL" else frozenset()

    def observed_submissions(self) -> Iterator[tuple[int, int, SubmissionJson]]:
        """Submissions in responses, each with the index of the response and the index at the time of the request."""
        for index, response in enumerate(self._api.responses):
            if "stateChangedAt" in response.content:
                yield index, response.responses_before_request, response.content

    def submit_request_count(self, number: int) -> int:
        """Submit requests with different idempotency keys."""
        requests = self._api.requests
        return len(
            {key for path, key, body in requests if path == "submitPullRequest" and body["pr"]["number"] == number}
        )


def _counts_never(submission: SubmissionJson, commit: Sha) -> bool:  # noqa: ARG001
    return False


class GitEvidence(Evidence):
    def __init__(self, origin: Origin, host_log: HostLog, api: ApiClient, ci: Ci) -> None:
        super().__init__(host_log, api, ci)
        self._git = origin

    @property
    def tip(self) -> Sha:
        return self._git.tip(self.target_ref)

    def tree(self, commit: str) -> Sha:
        return Sha(self._git.run("rev-parse", f"{commit}^{{tree}}").decode().strip())

    def contains(self, commit: Sha, ancestor: Sha) -> bool:
        return not self._git.run("rev-list", "--max-count=1", ancestor, f"^{commit}")

    def _read_commits(self, landing: Landing) -> list[tuple[Sha, int, str]]:
        form = "%H %(trailers:key=Mergeyard-Pull-Request,valueonly,separator=)"
        form += " %(trailers:key=Mergeyard-Run,valueonly,separator=)"
        lines = self._git.run("log", "--first-parent", f"--format={form}", f"{landing.old}..{landing.new}")
        parts = (line.split(" ") for line in lines.decode().splitlines())
        return [(Sha(commit), int(number or 0), run) for commit, number, run in parts]

    def origin_of(self, commit: Sha | None) -> tuple[int, str]:
        form = " ".join(f"%(trailers:key=Mergeyard-{name},valueonly,separator=)" for name in ("Pull-Request", "Head"))
        number, _, head = self._git.run("log", "-1", f"--format={form}", commit or "").decode().strip().partition(" ")
        return int(number or 0), head

    def head_branch_ref(self, number: int) -> str:
        """From the metadata of plain Git."""
        meta = self._git.ref(f"refs/pull/{number}/meta")
        branch = None if meta is None else json.decode(self._git.run("cat-file", "blob", meta)).get("branch")
        return f"refs/heads/{branch}" if branch else ""

    def _first_parent_ancestor(self, commit: str, count: int) -> str:
        return f"{commit}~{count}"

    def _commits_missing_in(self, commit: Sha, other: Sha) -> set[Sha]:
        return {*map(Sha, self._git.run("rev-list", commit, f"^{other}").decode().split())}

    def _with_parents(self, commit: Sha, parents: list[Sha]) -> str:
        options = [option for parent in (commit, *parents) for option in ("-p", parent)]
        return self._git.run("commit-tree", self.tree(commit), *options, "-m", "merge base").decode().strip()

    def _merge_base(self, one: str, other: str) -> str:
        return self._git.run("merge-base", one, other).decode().strip()

    def _merged_tree(self, onto: str, head: str) -> str:
        return self._git.merged_tree(onto, head) or ""

    def _trees(self, commit: str, count: int) -> list[str]:
        return self._git.run("log", "--first-parent", f"-{count}", "--format=%T", commit).decode().split()

    def _changes(self, old: str, new: str) -> dict[str, str]:
        lines = self._git.run("diff-tree", "-r", "--no-renames", old, new).decode().splitlines()
        parts = ((metadata.split(" "), path) for metadata, path in (line.split("\t") for line in lines))
        return {path: f"{metadata[1]} {metadata[3]}" for metadata, path in parts}
