"""A repository whose checks the server runs itself; each check writes down for which commit it passed."""

from pathlib import Path

from mergeyard.domain.ids import Sha
from tests.support.api import Api
from tests.support.ci import REQUIRED, Ci
from tests.support.git_evidence import GitEvidence
from tests.support.host_log import HostLog
from tests.support.repositories import Origin
from tests.support.surroundings import Surroundings

CHECK = "if ls | grep -q ^bad || test -e left -a -e right; then exit 1; fi; echo $MERGEYARD_COMMIT {name} >> {log}"
"""As the CI would judge it."""


def config(log: Path) -> str:
    lines = (f'{name} = "{CHECK.format(name=name, log=log)}"\n' for name in REQUIRED)
    return "version = 1\n[checks]\n" + "".join(lines)


class Logbook(Ci):
    """Stands where a CI would: it reports nothing, and knows what the checks wrote down."""

    def __init__(self, origin: Origin, host_log: HostLog, api: Api, log: Path) -> None:
        super().__init__(origin, host_log, api)
        self._log = log
        log.touch()

    def work(self) -> None:
        for line in self._log.read_text().splitlines():
            commit, name = line.split()
            self.passed[Sha(commit)].add(name)


class OwnChecks(Surroundings):
    def __init__(self, origin: Origin, host_log: HostLog, api: Api, log: Path) -> None:
        super().__init__(origin, host_log, api)
        self.ci = Logbook(origin, host_log, api, log)
        self.evidence = GitEvidence(origin, host_log, api, self.ci)
