"""A fake CI for the real server: it finds test branches, evaluates their files and reports through the API.

A tree fails if it has a file named `bad…`, or both `left` and `right`.
"""

from collections import defaultdict

import httpx2

from mergeyard.domain.ids import Sha
from tests.support.api_client import ApiClient
from tests.support.host_log import TEST_BRANCH_PREFIX, HostLog
from tests.support.repositories import Origin

REQUIRED_CHECKS = ("unit", "lint")


class Ci:
    def __init__(self, origin: Origin, host_log: HostLog, api: ApiClient) -> None:
        self.enabled = True
        self.passed: defaultdict[Sha, set[str]] = defaultdict(set)
        """Checks that were ever reported as successful, acknowledged or not."""
        self._origin = origin
        self._host_log = host_log
        self._api = api
        self._done = set[Sha]()

    def report_new_branches(self) -> None:
        """Reports on every test branch that has no report yet; does nothing while the server is down."""
        if not self.enabled:
            return
        for sha in self.test_branches().values():
            if sha not in self._done:
                self.report(sha, self.evaluate(sha))

    def report(self, sha: Sha, state: str) -> None:
        try:
            for context in REQUIRED_CHECKS:
                self.send(sha, context, state)
        except httpx2.TransportError:
            return
        self._done.add(sha)

    def send(self, sha: Sha, context: str, state: str) -> None:
        if state == "success":
            self.passed[sha].add(context)
        self._api.post("reportCommitStatus", sha=sha, context=context, state=state)

    def test_branches(self) -> dict[str, Sha]:
        """Test branches and their tips, according to the host's log."""
        tips = dict[str, Sha]()
        for transaction in self._host_log:
            for update in transaction.updates:
                if update.new is None:
                    tips.pop(update.ref, None)
                elif update.ref.startswith(TEST_BRANCH_PREFIX):
                    tips[update.ref] = update.new
        return tips

    def evaluate(self, sha: Sha) -> str:
        paths = set(self._origin.modes(sha))
        broken = {"left", "right"} <= paths or any(path.startswith("bad") for path in paths)
        return "failure" if broken else "success"
