"""Evidence of much traffic: every record is read once and found by its name, so judging stays quick."""

from collections import Counter, defaultdict
from functools import cached_property

from mergeyard.domain.ids import Sha
from tests.support.api import Answer
from tests.support.evidence import Landing, Run, Stay
from tests.support.git_evidence import GitEvidence

TRAILERS = " ".join(f"%(trailers:key=Mergeyard-{name},valueonly,separator=)" for name in ("Pull-Request", "Run"))

Told = tuple[Sha, int, str]


class IndexedEvidence(GitEvidence):
    """To be asked only after all was collected."""

    @cached_property
    def _history(self) -> list[Told]:
        """The whole target, the last first."""
        lines = self._git.run("log", "--first-parent", f"--format=%H {TRAILERS}", self.target).decode().splitlines()
        parts = (line.split(" ") for line in lines)
        return [(Sha(commit), int(number or 0), run) for commit, number, run in parts]

    @cached_property
    def _places(self) -> dict[Sha, int]:
        return {commit: place for place, (commit, _, _) in enumerate(self._history)}

    def _told(self, landing: Landing) -> list[Told]:
        return self._history[self._places[landing.new] : self._places[landing.old]]

    def was_on_target(self, commit: Sha) -> bool:
        return commit in self._places

    @cached_property
    def _paths(self) -> dict[tuple[str, Sha], set[str]]:
        return {}

    def paths_changed_by(self, stay: Stay, upon: Sha) -> set[str]:
        asked = (stay["prSha"], upon)
        if asked not in self._paths:
            self._paths[asked] = super().paths_changed_by(stay, upon)
        return self._paths[asked]

    @cached_property
    def _stays_of(self) -> dict[int, list[Stay]]:
        stays = defaultdict[int, list[Stay]](list)
        for stay in self.stays.values():
            stays[stay["prNumber"]].append(stay)
        return stays

    def stays_in(self, landing: Landing) -> list[Stay]:
        """Nobody is merged directly here: every commit names its pull request and its run."""
        return [self._stay_of(commit, number, run) for commit, number, run in self._told(landing)]

    def _stay_of(self, commit: Sha, number: int, run: str) -> Stay:
        stays = self._stays_of[number]
        fitting = (stay for stay in stays if stay["mergedSha"] == commit or stay["testRunId"] == run)
        return next(fitting, stays[-1])

    @cached_property
    def _runs_by_tip(self) -> dict[str, Run]:
        return {run["testBranchSha"]: run for run in self.runs.values()}

    def run_with_tip(self, tip: Sha) -> Run | None:
        return self._runs_by_tip.get(tip)

    @cached_property
    def _answers(self) -> dict[str, list[Answer]]:
        answers = defaultdict[str, list[Answer]](list)
        for answer in self._api.answers:
            answers[answer.path].append(answer)
        return answers

    def answers_to(self, path: str) -> list[Answer]:
        return self._answers.get(path, [])

    @cached_property
    def _submissions(self) -> Counter[int]:
        asked = {(key, body["pr"]["number"]) for path, key, body in self._api.asked if path == "submitPullRequest"}
        return Counter(number for _, number in asked)

    def times_asked_to_submit(self, number: int) -> int:
        return self._submissions[number]
