"""The page of the API is what the OpenAPI document says, and every example on it works on a real server."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, cast

import httpx
import pytest
from msgspec import json

from mergeyard.api.examples import EXAMPLES, RUN, SHA, WEBHOOK
from mergeyard.api.routes import TABLE
from tests.house.api_page import GROUPS, PAGE, page
from tests.support.patience import eventually
from tests.support.premises import new_token
from tests.support.quick_server import QuickServer
from tests.support.receiver import Receiver
from tests.support.repositories import Origin

NUMBER = EXAMPLES["submitPullRequest"].request["pr"]["number"]
EVENT = EXAMPLES["resendWebhookEvent"].request["eventId"]
SOMETIMES = {"usedDefaultPriorityName", "impactedTargets", "impactedTargetsForTestedPrs"}
"""Members that depend on what was asked for, or uploaded, before."""

Answer = dict[str, Any]


class Reader:
    """Somebody who sends the examples of the page, with the names that things have on their own server."""

    def __init__(self, url: str, token: str, receiver: Receiver) -> None:
        self.answered: dict[str, Answer] = {}
        self.names = {WEBHOOK["url"]: receiver.url, '"after":"41"': '"after":"0"'}
        self.metrics = ""
        self._client = httpx.Client(base_url=f"{url}/v1/", headers={"x-api-token": token}, timeout=20)

    def close(self) -> None:
        self._client.close()

    def send(self, endpoint: str) -> Answer:
        text = json.encode(EXAMPLES[endpoint].request).decode()
        for printed, own in self.names.items():
            text = text.replace(printed, own)
        response = self._client.post(endpoint, content=text, headers={"content-type": "application/json"})
        assert response.status_code == 200, (endpoint, response.text)
        self.answered[endpoint] = response.json()
        return self.answered[endpoint]

    def read_metrics(self) -> None:
        self.metrics = self._client.get("getMergeQueueMetrics").text

    def wait_for(self, state: str) -> Answer:
        def look() -> Answer | None:
            shown = self.send("getSubmittedPullRequest")
            return shown if shown["state"] == state else None

        return eventually(look, but=lambda: self.answered["getSubmittedPullRequest"])


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("api")
    server = QuickServer(folder, allow_private_webhooks=True)
    server.config.write_text(server.config.read_text().replace("git.local", "github.com"))
    with_pull_request(Origin.made(folder / "repos" / "acme" / "app.git"))
    server.start()
    try:
        with Receiver().open() as receiver, closing(Reader(server.url, new_token(server.config), receiver)) as reader:
            tell_the_story(reader)
            yield reader
    finally:
        server.stop()


def with_pull_request(origin: Origin) -> None:
    origin.commit("main", {".mergeyard.toml": 'version = 1\nrequired_statuses = ["unit"]\n'})
    origin.branch(f"refs/pull/{NUMBER}/head", upon="main", files={"sheep": "2"})
    meta = {"title": "Count the sheep twice", "author": "ada", "base": "main", "branch": "sheep", "state": "open"}
    blob = origin.run("hash-object", "-w", "--stdin", stdin=json.encode(meta)).decode().strip()
    origin.run("update-ref", f"refs/pull/{NUMBER}/meta", blob)


def tell_the_story(reader: Reader) -> None:
    """Every example once, in an order in which each can be answered."""
    for endpoint in ("createQueue", "listQueues", "createWebhook", "setImpactedTargets", "submitPullRequest"):
        reader.send(endpoint)
    reader.names[WEBHOOK["id"]] = reader.answered["createWebhook"]["id"]
    reader.wait_for("testing")
    for endpoint in ("getQueue", "listPullRequests", "getSubmittedPullRequests", "cancelPullRequest"):
        reader.send(endpoint)
    reader.send("submitPullRequest")
    reader.wait_for("testing")
    reader.send("restartTestsOnPullRequest")
    reader.names[RUN] = reader.wait_for("testing")["testRunId"]
    reader.names[SHA] = reader.send("getMergeQueueTestingDetails")["testBranchSha"]
    reader.send("reportCommitStatus")
    reader.wait_for("merged")
    for endpoint in ("getMergeQueueTestingDetails", "listMergeQueueTestingResults", "listEvents"):
        reader.send(endpoint)
    for endpoint in ("verifyLandings", "replayQueue"):
        reader.send(endpoint)
    (delivery,) = eventually(lambda: reader.send("listWebhookDeliveries")["deliveries"])
    reader.names[EVENT] = delivery["eventId"]
    for endpoint in ("resendWebhookEvent", "testWebhook", "listWebhooks", "updateWebhook", "deleteWebhook"):
        reader.send(endpoint)
    reader.read_metrics()
    for endpoint in ("updateQueue", "deleteQueue"):
        reader.send(endpoint)


def members(value: Any) -> Any:
    """The names of all members, as deep as they go; of a list, those of its first."""
    if isinstance(value, dict):
        parts = cast(Answer, value).items()
        return {name: members(part) for name, part in parts if name not in SOMETIMES}
    if isinstance(value, list):
        return [members(part) for part in cast(list[Any], value)[:1] if isinstance(part, dict)]
    return None


def test_the_page_is_what_make_api_page_writes():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make api-page`"


def test_every_endpoint_stands_in_one_group():
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(TABLE)


@pytest.mark.parametrize("endpoint", [name for name, row in TABLE.items() if row.get("method") != "GET"])
def test_the_example_of_an_endpoint_is_answered_as_the_page_shows(reader: Reader, endpoint: str):
    assert members(reader.answered[endpoint]) == members(EXAMPLES[endpoint].answer)


def test_the_metrics_look_as_the_page_shows(reader: Reader):
    shown = EXAMPLES["getMergeQueueMetrics"].answer
    assert [line for line in shown.splitlines() if line.startswith("#") and line not in reader.metrics] == []
