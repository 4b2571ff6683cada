"""Everything a queue lives with: a server, a bare repository with its log, a CI, and people with pull requests.

    premises = Premises.prepared(tmp_path)
    premises.create_queue(batch=True)
    number = premises.open_pr({"a.txt": "1"})
    premises.submit(number)
    premises.wait_for("merged", number)

Whoever waits lets the CI work meanwhile.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
from msgspec import json
from typer import Typer
from typer.testing import CliRunner

from mergeyard.cli import pr, token
from mergeyard.domain.ids import Sha
from tests.support.api import Api
from tests.support.ci import REQUIRED, Ci
from tests.support.evidence import ENDED, Evidence
from tests.support.host_log import TEST_BRANCHES, HostLog
from tests.support.patience import SECONDS, eventually
from tests.support.repositories import Files, Origin
from tests.support.server import Server

Found = TypeVar("Found")


class Premises:
    def __init__(self, server: Server, origin: Origin, host_log: HostLog) -> None:
        self.server = server
        self.origin = origin
        self.host_log = host_log
        secret = command(token.app, "create", "--name", "tests", "--scope", "admin", "--config", str(server.config))
        self.api = Api(server, secret.strip(), host_log)
        self.ci = Ci(origin, host_log, self.api)
        self.evidence = Evidence(origin, host_log, self.api, self.ci)
        self._branches = 0

    @classmethod
    def prepared(cls, folder: Path, files: Files | None = None, *, checks: str = "api") -> Self:
        """A running server, and a repository without a queue."""
        server = Server(folder, checks)
        origin = Origin.made(folder / "repos" / "acme" / "app.git")
        origin.commit("main", files or {"README": "1"})
        premises = cls(server, origin, HostLog(origin, folder / "host"))
        server.start()
        return premises

    def create_queue(self, **settings: Any) -> None:
        """On main, asking for what the CI reports."""
        self.api.post("createQueue", requiredStatuses=REQUIRED, **settings)

    # People

    def open_pr(self, files: Files, *, upon: str = "main", title: str | None = None) -> int:
        self._branches += 1
        branch = f"topic-{self._branches}"
        words = title or f"Change {', '.join(files)}"
        self.origin.branch(branch, upon=upon, files=files, message=words)
        return int(command(pr.app, "open", "--repo-path", self.origin.url, "--head", branch, "--base", "main"))

    def pr_command(self, name: str, number: int, *options: str) -> None:
        command(pr.app, name, "--repo-path", self.origin.url, str(number), *options)

    def submit(self, *numbers: int, **members: Any) -> dict[str, Any]:
        told = dict[str, Any]()
        for number in numbers:
            told = self.api.post("submitPullRequest", pr={"number": number}, **members)
        return told

    def cancel(self, number: int) -> dict[str, Any]:
        return self.api.post("cancelPullRequest", pr={"number": number})

    def restart_tests(self, number: int) -> dict[str, Any]:
        return self.api.post("restartTestsOnPullRequest", pr={"number": number})

    def upload_targets(self, number: int, *targets: str) -> None:
        self.api.post("setImpactedTargets", pr={"number": number}, impactedTargets=targets)

    def update_queue(self, **settings: Any) -> dict[str, Any]:
        return self.api.post("updateQueue", **settings)

    # What there is to see

    def pull(self, number: int) -> dict[str, Any]:
        return self.api.post("getSubmittedPullRequest", pr={"number": number}, includeTimeline=True)

    def state(self, number: int) -> str:
        return self.pull(number)["state"]

    def reason(self, number: int) -> str:
        return self.pull(number)["reason"]["code"]

    def reasons(self, number: int) -> list[str]:
        """Of all changes, oldest first."""
        return [moment["reason"] for moment in reversed(self.pull(number)["timeline"])]

    def run_of(self, number: int) -> dict[str, Any]:
        return self.api.post("getMergeQueueTestingDetails", testRunId=self.pull(number)["testRunId"])

    def branch_of(self, number: int) -> Sha:
        """The tip of the one test branch that begins with this pull request."""
        tips = [tip for ref, tip in self.ci.branches().items() if ref.startswith(f"{TEST_BRANCHES}pr-{number}/")]
        assert len(tips) == 1, tips
        return tips[0]

    def meta(self, number: int) -> dict[str, Any]:
        return json.decode(self.origin.run("cat-file", "blob", f"refs/pull/{number}/meta"))

    # Time passes

    def eventually(self, look: Callable[[], Found], seconds: float = SECONDS) -> Found:
        """Meanwhile the CI works, and a server that was killed is missed but not mourned."""

        def work_and_look() -> Found | None:
            self.ci.work()
            try:
                return look()
            except httpx.TransportError:
                return None

        found = eventually(work_and_look, seconds, but=self.describe)
        assert found
        return found

    def wait_for(self, state: str, *numbers: int) -> None:
        for number in numbers:
            self.eventually(lambda number=number: self.state(number) == state)

    def wait_for_end(self, *numbers: int) -> list[str]:
        self.eventually(lambda: all(self.state(number) in ENDED for number in numbers))
        return [self.state(number) for number in numbers]

    def wait_for_cleanliness(self) -> None:
        """Everybody's fate is decided, and no test branch is left."""
        self.eventually(lambda: not self.api.post("getQueue")["enqueuedPullRequests"])
        self.eventually(lambda: not any(ref.startswith(TEST_BRANCHES) for ref in self.origin.refs()))

    def describe(self) -> object:
        if not self.server.alive:
            return "the server is gone"
        enqueued = self.api.post("getQueue")["enqueuedPullRequests"]
        shown = [(pull["prNumber"], pull["state"], pull["reason"]) for pull in enqueued]
        return shown, self.ci.branches(), [entry for entry in self.server.told() if entry["level"] != "info"]

    def close(self) -> None:
        self.api.close()
        if self.server.alive:
            self.server.stop()


def command(app: Typer, *arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout
