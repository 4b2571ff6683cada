"""What one queue lives with, whoever serves it: a bare repository with its log, a CI, and people with pull requests.

Whoever waits lets the CI work meanwhile.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import httpx
from msgspec import json
from typer import Typer
from typer.testing import CliRunner

from mergeyard.adapters.host_plain.opening import Opening, open_pull
from mergeyard.cli import pr
from mergeyard.domain.ids import Sha
from tests.support.api import Api
from tests.support.ci import REQUIRED, Ci
from tests.support.evidence import ENDED
from tests.support.git_evidence import GitEvidence
from tests.support.host_log import TEST_BRANCHES, HostLog
from tests.support.patience import SECONDS, eventually
from tests.support.repositories import Files, Origin

Found = TypeVar("Found")


class Surroundings:
    def __init__(self, origin: Origin, host_log: HostLog, api: Api) -> None:
        self.origin = origin
        self.host_log = host_log
        self.api = api
        self.ci = Ci(origin, host_log, api)
        self.evidence = GitEvidence(origin, host_log, api, self.ci)
        self._branches = 0

    @property
    def target(self) -> str:
        return self.api.queue["targetBranch"]

    def create_queue(self, **settings: Any) -> None:
        """Asking for what the CI reports."""
        self.api.post("createQueue", requiredStatuses=REQUIRED, **settings)

    # People

    def open_pr(self, files: Files, *, upon: str | None = None, title: str | None = None) -> int:
        self._branches += 1
        branch = f"topic-{self._branches}" if self.target == "main" else f"topic-{self.target}-{self._branches}"
        words = title or f"Change {', '.join(files)}"
        self.origin.branch(branch, upon=upon or self.target, files=files, message=words)
        return asyncio.run(open_pull(self.origin.path, Opening(head=branch, base=self.target)))

    def pr_command(self, name: str, number: int, *options: str) -> None:
        command(pr.app, name, "--repo-path", self.origin.url, str(number), *options)

    def submit(self, *numbers: int, **members: Any) -> dict[str, Any]:
        told = dict[str, Any]()
        for number in numbers:
            told = self.api.post("submitPullRequest", pr={"number": number}, **members)
        return told

    def line_up(self, *numbers: int, **members: Any) -> None:
        """In this very order: whoever is looked at first would stand first."""
        for number in numbers:
            self.submit(number, **members)
            self.eventually(lambda number=number: self.pull(number)["state"] != "not_ready")

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

    def enqueued(self) -> list[dict[str, Any]]:
        return self.api.post("getQueue")["enqueuedPullRequests"]

    # Time passes

    def eventually(self, look: Callable[[], Found | None], seconds: float = SECONDS) -> Found:
        """Meanwhile the CI works, and a server that was killed is missed but not mourned."""

        def work_and_look() -> Found | None:
            self.ci.work()
            try:
                return look()
            except httpx.TransportError:
                return None

        return eventually(work_and_look, seconds, but=self.describe)

    def wait_for(self, state: str, *numbers: int) -> None:
        for number in numbers:
            self.eventually(lambda number=number: self.state(number) == state)

    def wait_for_end(self, *numbers: int) -> list[str]:
        self.eventually(lambda: all(self.state(number) in ENDED for number in numbers))
        return [self.state(number) for number in numbers]

    def wait_for_cleanliness(self) -> None:
        """Everybody's fate is decided, and no test branch is left."""
        self.eventually(lambda: not self.enqueued())
        self.eventually(lambda: not any(ref.startswith(TEST_BRANCHES) for ref in self.origin.refs()))

    def describe(self) -> object:
        queue = self.api.post("getQueue")
        shown = [(pull["prNumber"], pull["state"], pull["reason"]) for pull in queue["enqueuedPullRequests"]]
        return queue["state"], shown, self.ci.branches()


def command(app: Typer, *arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout
