"""The API page agrees with the OpenAPI document, and every example on it works on a real server."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, cast

import httpx
import pytest
from msgspec import json

from mergeyard.api.examples import EXAMPLES, RUN, SHA, WEBHOOK
from mergeyard.api.routes import TABLE
from tests.project.api_page import GROUPS, PAGE, render_page
from tests.support.environment import new_token
from tests.support.forked_server import ForkedServer
from tests.support.polling import eventually
from tests.support.repositories import Origin
from tests.support.webhooks import WebhookReceiver

NUMBER = EXAMPLES["submitPullRequest"].request["pr"]["number"]
EVENT = EXAMPLES["resendWebhookEvent"].request["eventId"]
CONDITIONAL_MEMBERS = {"usedDefaultPriorityName", "impactedTargets", "impactedTargetsForTestedPrs"}
"""Members that depend on earlier requests or uploads."""

Response = dict[str, Any]


class ExampleClient:
    """Sends the examples of the page, with the identifiers of this server in place of the printed ones."""

    def __init__(self, url: str, token: str, receiver: WebhookReceiver) -> None:
        self.responses: dict[str, Response] = {}
        self.identifiers = {WEBHOOK["url"]: receiver.url, '"after":"41"': '"after":"0"'}
        self.metrics = ""
        self._client = httpx.Client(base_url=f"{url}/v1/", headers={"x-api-token": token}, timeout=20)

    def close(self) -> None:
        self._client.close()

    def send(self, endpoint: str) -> Response:
        text = json.encode(EXAMPLES[endpoint].request).decode()
        for printed, own in self.identifiers.items():
            text = text.replace(printed, own)
        response = self._client.post(endpoint, content=text, headers={"content-type": "application/json"})
        assert response.status_code == 200, (endpoint, response.text)
        self.responses[endpoint] = response.json()
        return self.responses[endpoint]

    def read_metrics(self) -> None:
        self.metrics = self._client.get("getMergeQueueMetrics").text

    def wait_for(self, state: str) -> Response:
        def read() -> Response | None:
            response = self.send("getSubmittedPullRequest")
            return response if response["state"] == state else None

        return eventually(read, describe=lambda: self.responses["getSubmittedPullRequest"])


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleClient]:
    folder = tmp_path_factory.mktemp("api")
    server = ForkedServer(folder, allow_private_webhooks=True)
    server.config.write_text(server.config.read_text().replace("git.local", "github.com"))
    add_pull_request(Origin.create(folder / "repos" / "acme" / "app.git"))
    server.start()
    try:
        with (
            WebhookReceiver().serve() as receiver,
            closing(ExampleClient(server.url, new_token(server.config), receiver)) as client,
        ):
            send_all_examples(client)
            yield client
    finally:
        server.stop()


def add_pull_request(origin: Origin) -> None:
    origin.commit("main", {".mergeyard.toml": 'version = 1\nrequired_statuses = ["unit"]\n'})
    origin.branch(f"refs/pull/{NUMBER}/head", base="main", files={"sheep": "2"})
    meta = {"title": "Fix the session timeout", "author": "ada", "base": "main", "branch": "sheep", "state": "open"}
    blob = origin.run("hash-object", "-w", "--stdin", stdin=json.encode(meta)).decode().strip()
    origin.run("update-ref", f"refs/pull/{NUMBER}/meta", blob)


def send_all_examples(client: ExampleClient) -> None:
    """Sends every example once, in an order in which each succeeds."""
    for endpoint in ("createQueue", "listQueues", "createWebhook", "setImpactedTargets", "submitPullRequest"):
        client.send(endpoint)
    client.identifiers[WEBHOOK["id"]] = client.responses["createWebhook"]["id"]
    client.wait_for("testing")
    for endpoint in ("getQueue", "listPullRequests", "getSubmittedPullRequests", "cancelPullRequest"):
        client.send(endpoint)
    client.send("submitPullRequest")
    client.wait_for("testing")
    client.send("restartTestsOnPullRequest")
    client.identifiers[RUN] = client.wait_for("testing")["testRunId"]
    client.identifiers[SHA] = client.send("getMergeQueueTestingDetails")["testBranchSha"]
    client.send("reportCommitStatus")
    client.wait_for("merged")
    for endpoint in ("getMergeQueueTestingDetails", "listMergeQueueTestingResults", "listEvents"):
        client.send(endpoint)
    for endpoint in ("verifyLandings", "replayQueue"):
        client.send(endpoint)
    (delivery,) = eventually(lambda: client.send("listWebhookDeliveries")["deliveries"])
    client.identifiers[EVENT] = delivery["eventId"]
    for endpoint in ("resendWebhookEvent", "testWebhook", "listWebhooks", "updateWebhook", "deleteWebhook"):
        client.send(endpoint)
    client.read_metrics()
    for endpoint in ("updateQueue", "deleteQueue"):
        client.send(endpoint)


def members(value: Any) -> Any:
    """The names of all members, recursively; of a list, those of its first element."""
    if isinstance(value, dict):
        parts = cast(Response, value).items()
        return {name: members(part) for name, part in parts if name not in CONDITIONAL_MEMBERS}
    if isinstance(value, list):
        return [members(part) for part in cast(list[Any], value)[:1] if isinstance(part, dict)]
    return None


def test_page_is_up_to_date_with_make_api_page():
    assert PAGE.read_text(encoding="utf-8") == render_page(), "run `make api-page`"


def test_every_endpoint_is_in_exactly_one_group():
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(TABLE)


@pytest.mark.parametrize("endpoint", [name for name, row in TABLE.items() if row.get("method") != "GET"])
def test_example_returns_the_members_that_the_page_shows(client: ExampleClient, endpoint: str):
    assert members(client.responses[endpoint]) == members(EXAMPLES[endpoint].response)


def test_metrics_have_the_lines_that_the_page_shows(client: ExampleClient):
    printed = EXAMPLES["getMergeQueueMetrics"].response
    assert [line for line in printed.splitlines() if line.startswith("#") and line not in client.metrics] == []
