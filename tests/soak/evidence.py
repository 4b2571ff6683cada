"""Evidence of much traffic: every record is read once and indexed, so that the checks stay fast."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from threading import Lock

from mergeyard.domain.ids import Sha
from tests.soak.pull_requests import evaluate_commit
from tests.support.api_client import ApiClient, ApiResponse
from tests.support.ci import Ci
from tests.support.evidence import GitEvidence, Landing, RunJson, SubmissionJson
from tests.support.host_log import SERVICE_NAME, TEST_BRANCH_PREFIX, HostLog, Transaction, parse_update
from tests.support.repositories import Origin

TRAILERS = " ".join(f"%(trailers:key=Mergeyard-{name},valueonly,separator=)" for name in ("Pull-Request", "Run"))

CommitTrailers = tuple[Sha, int, str]


class IndexedEvidence(GitEvidence):
    """Use it only after everything was collected."""

    @cached_property
    def _history(self) -> list[CommitTrailers]:
        """The whole target branch, newest first."""
        lines = self._git.run("log", "--first-parent", f"--format=%H {TRAILERS}", self.target_ref).decode().splitlines()
        parts = (line.split(" ") for line in lines)
        return [(Sha(commit), int(number or 0), run) for commit, number, run in parts]

    @cached_property
    def _positions(self) -> dict[Sha, int]:
        return {commit: position for position, (commit, _, _) in enumerate(self._history)}

    def _read_commits(self, landing: Landing) -> list[CommitTrailers]:
        return self._history[self._positions[landing.new] : self._positions[landing.old]]

    def was_on_target(self, commit: Sha) -> bool:
        return commit in self._positions

    @cached_property
    def _paths(self) -> dict[tuple[str, Sha], set[str]]:
        return {}

    def paths_changed_by(self, submission: SubmissionJson, onto: Sha) -> set[str]:
        key = (submission["prSha"], onto)
        if key not in self._paths:
            self._paths[key] = super().paths_changed_by(submission, onto)
        return self._paths[key]

    @cached_property
    def _submissions_of(self) -> dict[int, list[SubmissionJson]]:
        submissions = defaultdict[int, list[SubmissionJson]](list)
        for submission in self.submissions.values():
            submissions[submission["prNumber"]].append(submission)
        return submissions

    def submissions_in(self, landing: Landing) -> list[SubmissionJson]:
        """There are no direct merges here: every commit names its pull request and its run."""
        return [self._submission_of(commit, number, run) for commit, number, run in self._read_commits(landing)]

    def _submission_of(self, commit: Sha, number: int, run: str) -> SubmissionJson:
        submissions = self._submissions_of[number]
        fitting = (
            submission
            for submission in submissions
            if submission["mergedSha"] == commit or submission["testRunId"] == run
        )
        return next(fitting, submissions[-1])

    @cached_property
    def _runs_by_tip(self) -> dict[str, RunJson]:
        return {run["testBranchSha"]: run for run in self.runs.values()}

    def run_with_tip(self, tip: Sha) -> RunJson | None:
        return self._runs_by_tip.get(tip)

    @cached_property
    def _answers(self) -> dict[str, list[ApiResponse]]:
        answers = defaultdict[str, list[ApiResponse]](list)
        for answer in self._api.responses:
            answers[answer.path].append(answer)
        return answers

    def responses_to(self, path: str) -> list[ApiResponse]:
        return self._answers.get(path, [])

    @cached_property
    def _submissions(self) -> Counter[int]:
        asked = {(key, body["pr"]["number"]) for path, key, body in self._api.requests if path == "submitPullRequest"}
        return Counter(number for _, number in asked)

    def submit_request_count(self, number: int) -> int:
        return self._submissions[number]


class IncrementalHostLog(HostLog):
    def __init__(self, origin: Origin, folder: Path) -> None:
        super().__init__(origin, folder)
        self._transactions: list[Transaction] = []
        self._lines = 0
        self._bytes = 0
        self._lock = Lock()

    def __len__(self) -> int:
        self._catch_up()
        return self._lines

    def __iter__(self) -> Iterator[Transaction]:
        return self.since(0)

    def since(self, known: int) -> Iterator[Transaction]:
        """The transactions after the first `known` ones."""
        self._catch_up()
        return iter(self._transactions[known:])

    def _catch_up(self) -> None:
        with self._lock, self._path.open("rb") as log:
            log.seek(self._bytes)
            whole = log.read().rpartition(b"\n")[0]
            if whole:
                self._bytes += len(whole) + 1
                for line in whole.decode().split("\n"):
                    self._append(line)

    def _append(self, line: str) -> None:
        who, *moves = line.split("|")
        parsed = tuple(parse_update(move) for move in moves if " refs/" in move)
        if parsed:
            self._transactions.append(Transaction(self._lines, who == SERVICE_NAME, parsed))
        self._lines += 1


class IncrementalCi(Ci):
    def __init__(self, origin: Origin, host_log: IncrementalHostLog, api: ApiClient) -> None:
        super().__init__(origin, host_log, api)
        self._tailed = host_log
        self._known = 0
        self._branches = dict[str, Sha]()

    def test_branches(self) -> dict[str, Sha]:
        for transaction in self._tailed.since(self._known):
            self._known += 1
            for move in transaction.updates:
                if move.new is None:
                    self._branches.pop(move.ref, None)
                elif move.ref.startswith(TEST_BRANCH_PREFIX):
                    self._branches[move.ref] = move.new
        return dict(self._branches)

    def evaluate(self, sha: Sha) -> str:
        return evaluate_commit(self._origin, sha)
