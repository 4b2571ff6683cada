"""A repository whose checks the server runs itself; each check logs for which commit it passed."""

from pathlib import Path

from mergeyard.domain.ids import Sha
from tests.support.api_client import ApiClient
from tests.support.ci import REQUIRED_CHECKS, Ci
from tests.support.environment import QueueEnvironment
from tests.support.evidence import GitEvidence
from tests.support.host_log import HostLog
from tests.support.repositories import Origin

CHECK = "if ls | grep -q ^bad || test -e left -a -e right; then exit 1; fi; echo $MERGEYARD_COMMIT {name} >> {log}"
"""Fails for the same commits as the fake CI."""


def checks_config(log: Path) -> str:
    lines = (f'{name} = "{CHECK.format(name=name, log=log)}"\n' for name in REQUIRED_CHECKS)
    return "version = 1\n[checks]\n" + "".join(lines)


class LoggedChecks(Ci):
    """Used in place of a CI: it reports nothing and reads what the checks logged."""

    def __init__(self, origin: Origin, host_log: HostLog, api: ApiClient, log: Path) -> None:
        super().__init__(origin, host_log, api)
        self._log = log
        log.touch()

    def report_new_branches(self) -> None:
        for line in self._log.read_text().splitlines():
            commit, name = line.split()
            self.passed[Sha(commit)].add(name)


class LocalChecksEnvironment(QueueEnvironment):
    def __init__(self, origin: Origin, host_log: HostLog, api: ApiClient, log: Path) -> None:
        super().__init__(origin, host_log, api)
        self.ci = LoggedChecks(origin, host_log, api, log)
        self.evidence = GitEvidence(origin, host_log, api, self.ci)
