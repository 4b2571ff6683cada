"""The history of a target as far as it was read, and where landings stand in it."""

from collections.abc import Iterable, Sequence

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Commit
from mergeyard.service.verifying.claims import claim_of, commits_of
from mergeyard.service.verifying.recorded import Recorded


class History:
    def __init__(self, line: Sequence[Commit], beside: Iterable[Commit], bottom: Sha | None) -> None:
        self.line = line
        self.places = {commit.sha: place for place, commit in enumerate(line)}
        self._commits = {commit.sha: commit for commit in (*beside, *line)}
        self._bottom = bottom

    def holds(self, commit: Sha | None) -> bool:
        return commit in self._commits

    def __getitem__(self, commit: Sha) -> Commit:
        return self._commits[commit]

    def commits_of(self, commit: Sha) -> tuple[Commit, ...]:
        """All that one landing made, the last first."""
        return commits_of(commit, self._commits)

    def brought_by(self, landing: Recorded) -> tuple[Commit, ...]:
        """All that a landing put on the target; a head that landed as it was brings commits that we never wrote."""
        if landing.commit is None or not self.holds(landing.commit):
            return ()
        exam = landing.stay.exam
        if exam is None or landing.commit != landing.stay.pull.head:
            return self.commits_of(landing.commit)
        return self.between(exam.tip, landing.commit) or self.commits_of(landing.commit)

    def beneath(self, landing: Recorded) -> Sha | None:
        """What a landing stands on; None when that cannot be told."""
        if landing.commit is None or not self.holds(landing.commit):
            return None
        last = self._commits[landing.commit]
        if landing.run is None or landing.run.method is not MergeMethod.REBASE:
            return last.parents[0] if last.parents else None
        lowest = self.commits_of(last.sha)[-1].parents
        if claim_of(last) is None or not lowest:
            return None
        return lowest[0] if lowest[0] in self._commits or lowest[0] == self._bottom else None

    def between(self, below: Sha, above: Sha) -> tuple[Commit, ...]:
        """From this one down to that one, along first parents; none when it does not lead there, as far as is known."""
        way, at = list[Commit](), above
        while at != below:
            commit = self._commits.get(at)
            if commit is None or not commit.parents:
                return ()
            way.append(commit)
            at = commit.parents[0]
        return tuple(way)
