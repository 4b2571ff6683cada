"""The server that is flooded: a process of its own with a queue at work, and with somebody who keeps it working."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from msgspec import json

from mergeyard.cli import token
from tests.contract.api.desk import QUEUE
from tests.fuzz.flood.known import PULLS, Known
from tests.support.premises import new_token
from tests.support.quick_server import QuickServer
from tests.support.repositories import Origin
from tests.support.surroundings import command

RULES = 'version = 1\nrequired_statuses = ["unit"]\n'
BRANCHES = {"createQueue": "one-without-a-queue", "deleteQueue": "one-with-a-queue"}
"""All others ask about main."""
SECONDS = 60
NOBODY_LISTENS = "http://127.0.0.1:9/hook"


class Target:
    def __init__(self, folder: Path, known: Known) -> None:
        self.server = QuickServer(folder, allow_private_webhooks=True)
        self.known = known
        self._origin = Origin.made(folder / "repos" / "acme" / "app.git")
        self._origin.commit("main", {".mergeyard.toml": RULES})
        for branch in BRANCHES.values():
            self._origin.branch(branch, upon="main")
        self.server.start()
        self.token = new_token(self.server.config)
        self.reader = self._token("--scope", "read")
        self.stranger = self._token("--scope", "admin", "--repo", "git.local/acme/elsewhere")
        self.client = httpx.Client(base_url=f"{self.server.url}/v1", timeout=SECONDS, trust_env=False)
        self._round = 0

    def _token(self, *options: str) -> str:
        return command(token.app, "create", "--name", "tests", *options, "--config", str(self.server.config)).strip()

    def close(self) -> None:
        self.client.close()
        self.server.stop()

    def ask(self, endpoint: str, **members: Any) -> Any:
        headers = {"x-api-token": self.token, "content-type": "application/json"}
        answer = self.client.post(f"/{endpoint}", content=json.encode(members), headers=headers)
        assert answer.status_code < 500, answer.text
        return answer.json()

    def begin_round(self) -> None:
        """What is tested passes, and pull requests are opened anew, so that there is always somebody to test."""
        self._round += 1
        if self._round > 1:
            self._report()
        for number in range(1, PULLS + 1):
            self._open(number)

    def set_to_work(self) -> None:
        """For whomever is asked next, whatever the one before did."""
        self.ask("createQueue", **QUEUE)
        self.ask("createQueue", **QUEUE | {"targetBranch": BRANCHES["deleteQueue"]})
        self.ask("deleteQueue", **QUEUE | {"targetBranch": BRANCHES["createQueue"]})
        self.ask("updateQueue", **QUEUE, state="RUNNING", concurrency=5, requiredStatuses=["unit"], mode="single")
        for number in range(1, PULLS + 1):
            self.ask("submitPullRequest", **QUEUE, pr={"number": number})
        for pull in self.ask("getQueue", **QUEUE)["enqueuedPullRequests"]:
            self.known.learn(pull)
        self._keep_some_webhooks()

    def _open(self, number: int) -> None:
        branch = f"topic-{number}-{self._round}"
        self._origin.branch(branch, upon="main", files={f"{number}.txt": f"{self._round}\n"})
        told = {
            "title": f"Change {number}",
            "author": "Ada",
            "base": "main",
            "branch": branch,
            "draft": number == PULLS,
        }
        self._origin.set(f"refs/pull/{number}/head", self._origin.tip(branch))
        self._origin.set(f"refs/pull/{number}/meta", self._origin.blob(json.encode(told | {"state": "open"})))

    def _report(self) -> None:
        for pull in self.ask("getQueue", **QUEUE)["enqueuedPullRequests"]:
            if pull["testRunId"]:
                run = self.ask("getMergeQueueTestingDetails", **QUEUE, testRunId=pull["testRunId"])
                self.known.learn(run)
                tip = run["testBranchSha"]
                self.ask("reportCommitStatus", repo=QUEUE["repo"], sha=tip, context="unit", state="success")

    def _keep_some_webhooks(self) -> None:
        for webhook in self.ask("listWebhooks")["webhooks"]:
            self.ask("deleteWebhook", id=webhook["id"])
        webhook = self.ask("createWebhook", url=NOBODY_LISTENS)["id"]
        self.known.learn_webhook(webhook, NOBODY_LISTENS)
        self.known.learn(self.ask("testWebhook", id=webhook))

    def memory(self) -> float:
        """In MiB: what of it is in memory now."""
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def check(self) -> None:
        """It lives, is ready to work, and had no trouble that it did not expect."""
        assert self.server.alive
        for address in ("/healthz", "/readyz"):
            answer = self.client.get(f"{self.server.url}{address}")
            assert answer.status_code == 200, answer.text
        complaints = self.server.complaints()
        assert not complaints, complaints[:3]


@contextmanager
def a_target(folder: Path, seed: int) -> Generator[Target]:
    target = Target(folder, Known(seed))
    try:
        yield target
    finally:
        target.close()
