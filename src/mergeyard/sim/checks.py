"""A CI that is only a picture of one: what is red is a property of the files, plus chance where a world wants it."""

from collections.abc import Callable, Collection

from mergeyard.domain.ids import Sha
from mergeyard.domain.states import CheckState
from mergeyard.sim.repository import Content, Files, Repository


class Truth:
    """Which contents break the tests: alone, in company, or until something else repairs them."""

    def __init__(self) -> None:
        self.bad: set[Content] = set()
        self.bad_together: set[frozenset[Content]] = set()
        self.repairs: dict[Content, Content] = {}
        """A bad content, and the one whose presence makes up for it."""

    def green(self, files: Files) -> bool:
        contents = set(files.values())
        broken = {bad for bad in self.bad & contents if self.repairs.get(bad) not in contents}
        return not broken and not any(pair <= contents for pair in self.bad_together)


class Checks:
    """The results of one host, by commit and name. A commit's result is made up once and then stays."""

    def __init__(self, repository: Repository, truth: Truth, flakes: Callable[[], bool]) -> None:
        self.repository = repository
        self.truth = truth
        self.flakes = flakes
        self.results: dict[Sha, dict[str, CheckState]] = {}

    def report(self, commit: Sha, names: Collection[str]) -> None:
        green = self.truth.green(self.repository.commits[commit].files)
        for name in names:
            failed = not green or self.flakes()
            self.results.setdefault(commit, {}).setdefault(name, CheckState.FAILED if failed else CheckState.PASSED)

    def seen(self, commit: Sha) -> dict[str, CheckState]:
        return dict(self.results.get(commit, {}))

    def passed(self, commit: Sha) -> frozenset[str]:
        return frozenset(name for name, state in self.seen(commit).items() if state is CheckState.PASSED)
