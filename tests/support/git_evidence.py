"""The evidence about a real server: its bare repository is asked with git's own commands."""

from mergeyard.domain.ids import Sha
from tests.support.api import Api
from tests.support.ci import Ci
from tests.support.evidence import Evidence, Landing
from tests.support.host_log import HostLog
from tests.support.repositories import Origin


class GitEvidence(Evidence):
    def __init__(self, origin: Origin, host_log: HostLog, api: Api, ci: Ci) -> None:
        super().__init__(host_log, api, ci)
        self._git = origin

    @property
    def tip(self) -> Sha:
        return self._git.tip(self.target)

    def tree(self, commit: str) -> Sha:
        return Sha(self._git.run("rev-parse", f"{commit}^{{tree}}").decode().strip())

    def holds(self, commit: Sha, ancestor: Sha) -> bool:
        return not self._git.run("rev-list", "--max-count=1", ancestor, f"^{commit}")

    def _told(self, landing: Landing) -> list[tuple[Sha, int, str]]:
        form = "%H %(trailers:key=Mergeyard-Pull-Request,valueonly,separator=)"
        form += " %(trailers:key=Mergeyard-Run,valueonly,separator=)"
        lines = self._git.run("log", "--first-parent", f"--format={form}", f"{landing.old}..{landing.new}")
        parts = (line.split(" ") for line in lines.decode().splitlines())
        return [(Sha(commit), int(number or 0), run) for commit, number, run in parts]

    def _beneath(self, commit: str, count: int) -> str:
        return f"{commit}~{count}"

    def _beyond(self, commit: Sha, other: Sha) -> set[Sha]:
        return {*map(Sha, self._git.run("rev-list", commit, f"^{other}").decode().split())}

    def _with_parents(self, commit: Sha, parents: list[Sha]) -> str:
        named = [option for parent in (commit, *parents) for option in ("-p", parent)]
        return self._git.run("commit-tree", self.tree(commit), *named, "-m", "ground").decode().strip()

    def _merge_base(self, one: str, other: str) -> str:
        return self._git.run("merge-base", one, other).decode().strip()

    def _merged(self, onto: str, head: str) -> str:
        return self._git.run("merge-tree", "--write-tree", onto, head).decode().strip()

    def _trees(self, commit: str, count: int) -> list[str]:
        return self._git.run("log", "--first-parent", f"-{count}", "--format=%T", commit).decode().split()

    def _changes(self, old: str, new: str) -> dict[str, str]:
        lines = self._git.run("diff-tree", "-r", "--no-renames", old, new).decode().splitlines()
        parts = ((facts.split(" "), path) for facts, path in (line.split("\t") for line in lines))
        return {path: f"{facts[1]} {facts[3]}" for facts, path in parts}
