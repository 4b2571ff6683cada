"""Values from earlier responses: runs, commits, cursors, webhooks. Requests with random ones would all be refused."""

from collections.abc import Generator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, cast

import httpx2
from msgspec import json
from schemathesis import Case

from mergeyard.cli import token
from tests.contract.api.harness import QUEUE, REPOSITORY
from tests.support.environment import new_token, run_command
from tests.support.forked_server import ForkedServer
from tests.support.repositories import Origin

MAX_VALUES = 20
NAMED_AS = {
    "testRunId": "testRunId",
    "verifiedByTestRun": "testRunId",
    "nextCursor": "cursor",
    "next": "after",
    "cursor": "after",
    "testBranchSha": "sha",
    "prSha": "sha",
    "eventId": "eventId",
}
"""Members of responses, and the members of requests in which their values can be used."""
PULL_REQUEST_COUNT = 8


class KnownValues:
    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self._values: dict[str, list[Any]] = {}

    def learn(self, answer: Any) -> None:
        if isinstance(answer, list):
            for item in cast(list[Any], answer):
                self.learn(item)
        elif isinstance(answer, dict):
            for name, value in cast(dict[str, Any], answer).items():
                self._add(NAMED_AS.get(name), value)
                self.learn(value)

    def learn_webhook(self, webhook: str, url: str) -> None:
        """Replaces the known webhook: there is only one at a time."""
        self._values |= {"id": [webhook], "url": [url], "eventId": []}

    def _add(self, name: str | None, value: Any) -> None:
        if name is None or not isinstance(value, str):
            return
        values = self._values.setdefault(name, [])
        if value not in values:
            values.append(value)
            del values[:-MAX_VALUES]

    def use_known_values(self, case: Case[Any], branch: str) -> None:
        """Replaces most valid names with known ones; invalid ones stay."""
        if not isinstance(case.body, dict):
            return
        case.body = deepcopy(case.body)  # examples of the OpenAPI document are shared objects
        members = cast(dict[str, Any], case.body)
        self._replace(members)
        repo: Any = members.get("repo")
        if isinstance(repo, dict) and all(isinstance(cast(Any, repo).get(name), str) for name in REPOSITORY):
            members["repo"] = REPOSITORY
        if isinstance(members.get("targetBranch"), str):
            members["targetBranch"] = branch
        if isinstance(members.get("waitSeconds"), int):
            members["waitSeconds"] = min(members["waitSeconds"], 0)
        if isinstance(members.get("pr"), dict):
            pull = cast(dict[str, Any], members["pr"])
            self._replace(pull)
            if isinstance(pull.get("number"), int):
                pull["number"] %= PULL_REQUEST_COUNT + 2

    def _replace(self, members: dict[str, Any]) -> None:
        for name in members.keys() & self._values.keys():
            if self._values[name] and isinstance(members[name], str | int) and self._chance.random() < 0.7:
                members[name] = self._chance.choice(self._values[name])


CONFIG = 'version = 1\nrequired_statuses = ["unit"]\n'
BRANCHES = {"createQueue": "one-without-a-queue", "deleteQueue": "one-with-a-queue"}
"""All other endpoints are called for main."""
TIMEOUT_S = 60
UNUSED_URL = "http://127.0.0.1:9/hook"


class Target:
    def __init__(self, folder: Path, known: KnownValues) -> None:
        self.server = ForkedServer(folder, allow_private_webhooks=True)
        self.known = known
        self._origin = Origin.create(folder / "repos" / "acme" / "app.git")
        self._origin.commit("main", {".mergeyard.toml": CONFIG})
        for branch in BRANCHES.values():
            self._origin.branch(branch, base="main")
        self.server.start()
        self.token = new_token(self.server.config)
        self.reader = self._token("--scope", "read")
        self.stranger = self._token("--scope", "admin", "--repo", "git.local/acme/elsewhere")
        self.client = httpx2.Client(base_url=f"{self.server.url}/v1", timeout=TIMEOUT_S, trust_env=False)
        self._round = 0

    def _token(self, *options: str) -> str:
        return run_command(
            token.app, "create", "--name", "tests", *options, "--config", str(self.server.config)
        ).strip()

    def close(self) -> None:
        self.client.close()
        self.server.stop()

    def post(self, endpoint: str, **members: Any) -> Any:
        headers = {"x-api-token": self.token, "content-type": "application/json"}
        response = self.client.post(f"/{endpoint}", content=json.encode(members), headers=headers)
        assert response.status_code < 500, response.text
        return response.json()

    def begin_round(self) -> None:
        """All running tests pass, and pull requests are opened again, so that there are always some to test."""
        self._round += 1
        if self._round > 1:
            self._report_success()
        for number in range(1, PULL_REQUEST_COUNT + 1):
            self._open(number)

    def restore(self) -> None:
        """Restores the queues and the submissions, whatever the last requests did."""
        self.post("createQueue", **QUEUE)
        self.post("createQueue", **QUEUE | {"targetBranch": BRANCHES["deleteQueue"]})
        self.post("deleteQueue", **QUEUE | {"targetBranch": BRANCHES["createQueue"]})
        self.post("updateQueue", **QUEUE, state="RUNNING", concurrency=5, requiredStatuses=["unit"], mode="single")
        for number in range(1, PULL_REQUEST_COUNT + 1):
            self.post("submitPullRequest", **QUEUE, pr={"number": number})
        for pull in self.post("getQueue", **QUEUE)["enqueuedPullRequests"]:
            self.known.learn(pull)
        self._reset_webhooks()

    def _open(self, number: int) -> None:
        branch = f"topic-{number}-{self._round}"
        self._origin.branch(branch, base="main", files={f"{number}.txt": f"{self._round}\n"})
        metadata = {
            "title": f"Change {number}",
            "author": "Ada",
            "base": "main",
            "branch": branch,
            "draft": number == PULL_REQUEST_COUNT,
        }
        self._origin.set_ref(f"refs/pull/{number}/head", self._origin.tip(branch))
        self._origin.set_ref(f"refs/pull/{number}/meta", self._origin.blob(json.encode(metadata | {"state": "open"})))

    def _report_success(self) -> None:
        for pull in self.post("getQueue", **QUEUE)["enqueuedPullRequests"]:
            if pull["testRunId"]:
                run = self.post("getMergeQueueTestingDetails", **QUEUE, testRunId=pull["testRunId"])
                self.known.learn(run)
                tip = run["testBranchSha"]
                self.post("reportCommitStatus", repo=QUEUE["repo"], sha=tip, context="unit", state="success")

    def _reset_webhooks(self) -> None:
        for webhook in self.post("listWebhooks")["webhooks"]:
            self.post("deleteWebhook", id=webhook["id"])
        webhook = self.post("createWebhook", url=UNUSED_URL)["id"]
        self.known.learn_webhook(webhook, UNUSED_URL)
        self.known.learn(self.post("testWebhook", id=webhook))

    def memory(self) -> float:
        """Resident memory of the server in MiB."""
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def check(self) -> None:
        """The server is alive and ready, and logged no error."""
        assert self.server.alive
        for address in ("/healthz", "/readyz"):
            response = self.client.get(f"{self.server.url}{address}")
            assert response.status_code == 200, response.text
        complaints = self.server.logged_errors()
        assert not complaints, complaints[:3]


@contextmanager
def a_target(folder: Path, seed: int) -> Generator[Target]:
    target = Target(folder, KnownValues(seed))
    try:
        yield target
    finally:
        target.close()
