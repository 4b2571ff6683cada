"""The environment of one queue on any server: a bare repository with its log, a CI, and users with pull requests.

While a test waits, the CI reports on new test branches.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx2
from msgspec import json
from typer import Typer
from typer.testing import CliRunner

from mergeyard.adapters.host_plain.editor import NewPullRequest, open_pull_request
from mergeyard.cli import db, token
from mergeyard.cli.pr import app
from mergeyard.domain.ids import Sha
from tests.support.api_client import ApiClient
from tests.support.ci import REQUIRED_CHECKS, Ci
from tests.support.evidence import ENDED, GitEvidence
from tests.support.forked_server import ForkedServer
from tests.support.host_log import TEST_BRANCH_PREFIX, HostLog
from tests.support.polling import TIMEOUT_S, eventually
from tests.support.repositories import Files, Origin
from tests.support.server import Server

Found = TypeVar("Found")


class QueueEnvironment:
    def __init__(self, origin: Origin, host_log: HostLog, api: ApiClient) -> None:
        self.origin = origin
        self.host_log = host_log
        self.api = api
        self.ci = Ci(origin, host_log, api)
        self.evidence = GitEvidence(origin, host_log, api, self.ci)
        self._branches = 0

    @property
    def target_branch(self) -> str:
        return self.api.queue["targetBranch"]

    def create_queue(self, **settings: Any) -> None:
        """Requires the checks that the CI reports."""
        self.api.post("createQueue", requiredStatuses=REQUIRED_CHECKS, **settings)

    # Actions of users

    def open_pr(self, files: Files, *, base: str | None = None, title: str | None = None) -> int:
        self._branches += 1
        branch = (
            f"topic-{self._branches}"
            if self.target_branch == "main"
            else f"topic-{self.target_branch}-{self._branches}"
        )
        message = title or f"Change {', '.join(files)}"
        self.origin.branch(branch, base=base or self.target_branch, files=files, message=message)
        return asyncio.run(open_pull_request(self.origin.path, NewPullRequest(head=branch, base=self.target_branch)))

    def pr_command(self, name: str, number: int, *options: str) -> None:
        run_command(app, name, "--repo-path", self.origin.url, str(number), *options)

    def submit(self, *numbers: int, **members: Any) -> dict[str, Any]:
        response = dict[str, Any]()
        for number in numbers:
            response = self.api.post("submitPullRequest", pr={"number": number}, **members)
        return response

    def submit_in_order(self, *numbers: int, **members: Any) -> None:
        """Submits one by one and waits until each is ready, because the one that is read first is queued first."""
        for number in numbers:
            self.submit(number, **members)
            self.eventually(lambda number=number: self.submission(number)["state"] != "not_ready")

    def cancel(self, number: int) -> dict[str, Any]:
        return self.api.post("cancelPullRequest", pr={"number": number})

    def restart_tests(self, number: int) -> dict[str, Any]:
        return self.api.post("restartTestsOnPullRequest", pr={"number": number})

    def upload_impacted_targets(self, number: int, *targets: str) -> None:
        self.api.post("setImpactedTargets", pr={"number": number}, impactedTargets=targets)

    def update_queue(self, **settings: Any) -> dict[str, Any]:
        return self.api.post("updateQueue", **settings)

    # State

    def submission(self, number: int) -> dict[str, Any]:
        return self.api.post("getSubmittedPullRequest", pr={"number": number}, includeTimeline=True)

    def state(self, number: int) -> str:
        return self.submission(number)["state"]

    def reason(self, number: int) -> str:
        return self.submission(number)["reason"]["code"]

    def reasons(self, number: int) -> list[str]:
        """The reasons of all state changes, oldest first."""
        return [transition["reason"] for transition in reversed(self.submission(number)["timeline"])]

    def run_of(self, number: int) -> dict[str, Any]:
        return self.api.post("getMergeQueueTestingDetails", testRunId=self.submission(number)["testRunId"])

    def test_branch_tip(self, number: int) -> Sha:
        """The tip of the only test branch whose first pull request is this one."""
        tips = [
            tip for ref, tip in self.ci.test_branches().items() if ref.startswith(f"{TEST_BRANCH_PREFIX}pr-{number}/")
        ]
        assert len(tips) == 1, tips
        return tips[0]

    def pull_request_meta(self, number: int) -> dict[str, Any]:
        return json.decode(self.origin.run("cat-file", "blob", f"refs/pull/{number}/meta"))

    def enqueued(self) -> list[dict[str, Any]]:
        return self.api.post("getQueue")["enqueuedPullRequests"]

    # Waiting

    def eventually(self, probe: Callable[[], Found | None], timeout_s: float = TIMEOUT_S) -> Found:
        """The CI works while waiting; connection errors of a killed server are ignored."""

        def work_and_look() -> Found | None:
            self.ci.report_new_branches()
            try:
                return probe()
            except httpx2.TransportError:
                return None

        return eventually(work_and_look, timeout_s, describe=self.describe)

    def wait_for(self, state: str, *numbers: int) -> None:
        for number in numbers:
            self.eventually(lambda number=number: self.state(number) == state)

    def wait_for_end(self, *numbers: int) -> list[str]:
        self.eventually(lambda: all(self.state(number) in ENDED for number in numbers))
        return [self.state(number) for number in numbers]

    def wait_until_clean(self) -> None:
        """Waits until the queue is empty and no test branch is left."""
        self.eventually(lambda: not self.enqueued())
        self.eventually(lambda: not any(ref.startswith(TEST_BRANCH_PREFIX) for ref in self.origin.refs()))

    def describe(self) -> object:
        queue = self.api.post("getQueue")
        enqueued = [(each["prNumber"], each["state"], each["reason"]) for each in queue["enqueuedPullRequests"]]
        return queue["state"], enqueued, self.ci.test_branches()


def run_command(app: Typer, *arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


class ServerEnvironment(QueueEnvironment):
    def __init__(self, server: Server, origin: Origin, host_log: HostLog) -> None:
        super().__init__(origin, host_log, ApiClient(server, new_token(server.config), host_log))
        self.server = server

    @classmethod
    def start(cls, folder: Path, files: Files | None = None, *, checks: str = "api", **settings: str) -> Self:
        """Starts a server with a repository that has no queue yet."""
        server = ForkedServer(folder, checks, **settings)
        origin = Origin.create(folder / "repos" / "acme" / "app.git")
        origin.commit("main", files or {"README": "1"})
        environment = cls(server, origin, HostLog(origin, folder / "host"))
        server.start()
        return environment

    def describe(self) -> object:
        if not self.server.alive:
            return "the server is not running"
        return super().describe(), [entry for entry in self.server.log_entries() if entry["level"] != "info"]

    def close(self) -> None:
        self.api.close()
        if self.server.alive:
            self.server.stop()


def new_token(config: Path) -> str:
    """Works also before the first start of the server."""
    run_command(db.app, "migrate", "--config", str(config))
    return run_command(token.app, "create", "--name", "tests", "--scope", "admin", "--config", str(config)).strip()
