"""A CI for the real server: it sees test branches, looks at what is in them, and reports by the API.

A tree with a file named `bad…` is red, and so is one that holds both `left` and `right`.
"""

from collections import defaultdict

import httpx

from mergeyard.domain.ids import Sha
from tests.support.api import Api
from tests.support.host_log import TEST_BRANCHES, HostLog
from tests.support.repositories import Origin

REQUIRED = ("unit", "lint")


class Ci:
    def __init__(self, origin: Origin, host_log: HostLog, api: Api) -> None:
        self.working = True
        self.passed: defaultdict[Sha, set[str]] = defaultdict(set)
        """What was ever sent as a success, answered or not."""
        self._origin = origin
        self._host_log = host_log
        self._api = api
        self._done = set[Sha]()

    def work(self) -> None:
        """Reports on every test branch that it has not reported on; nothing while the server is gone."""
        if not self.working:
            return
        for sha in self.branches().values():
            if sha not in self._done:
                self.report(sha, self.verdict(sha))

    def report(self, sha: Sha, state: str) -> None:
        try:
            for context in REQUIRED:
                self.send(sha, context, state)
        except httpx.TransportError:
            return
        self._done.add(sha)

    def send(self, sha: Sha, context: str, state: str) -> None:
        if state == "success":
            self.passed[sha].add(context)
        self._api.post("reportCommitStatus", sha=sha, context=context, state=state)

    def branches(self) -> dict[str, Sha]:
        """Test branches and where they stand, as the host's log tells it."""
        there = dict[str, Sha]()
        for transaction in self._host_log:
            for move in transaction.moves:
                if move.new is None:
                    there.pop(move.ref, None)
                elif move.ref.startswith(TEST_BRANCHES):
                    there[move.ref] = move.new
        return there

    def verdict(self, sha: Sha) -> str:
        paths = set(self._origin.modes(sha))
        broken = {"left", "right"} <= paths or any(path.startswith("bad") for path in paths)
        return "failure" if broken else "success"
