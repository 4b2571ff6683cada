"""Records the examples of the API page: sends every request to a service with real git, and keeps the responses.

Times come from the manual clock. Random values are replaced, each by the same value in all examples, so that a second
recording gives the same text.
"""

import asyncio
import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import json

from mergeyard.adapters.signing import SshKey
from mergeyard.api.openapi import Example
from mergeyard.api.routes import TABLE
from mergeyard.ports.git import Identity
from tests.contract.api.harness import QUEUE, ApiHarness, api_without_queue
from tests.support.scenario import MINUTE, SECOND, ScenarioSetup

HOOK = "https://ci.example.com/hook"
PR = {"number": 123}
TARGETS = {122: ["//app:server"], 123: ["//app:server", "//lib:session"], 124: ["//docs"]}
SHOWN_METRIC = "mq_depth_current"
SIGNING_KEY = SshKey(Ed25519PrivateKey.from_private_bytes(bytes(32)))
SIGNED = ScenarioSetup(identity=Identity("Mergeyard", "queue@example.com", SIGNING_KEY))
SHORT_STATEMENT = b'{"_type":"https://in-toto.io/Statement/v1",...}'
"""In place of one that would fill a page."""


def _hex_digits(at: int) -> str:
    return sha256(str(at).encode()).hexdigest()


RANDOM_VALUES: dict[str, Callable[[int], str]] = {
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}": lambda at: str(uuid5(NAMESPACE_URL, str(at))),
    r"\b[0-9a-f]{40}\b": lambda at: _hex_digits(at)[:40],
    r'(?<="id":")[0-9a-f]{12}(?=")': lambda at: _hex_digits(at)[-12:],
    r"msg_[0-9a-f]{32}": lambda at: f"msg_{_hex_digits(at)[-32:]}",
    r"my_[0-9A-Za-z]{49}": lambda _: "my_" + 43 * "0" + "1q2w3e",
    r"whsec_[A-Za-z0-9+/=]+": lambda _: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
    r'(?<=")[0-9]{8,18}(?=")': lambda at: str(10**17 + at),
    r'(?<="payload":")[A-Za-z0-9+/=]+(?=")': lambda _: b64encode(SHORT_STATEMENT).decode(),
    r'(?<="sig":")[A-Za-z0-9+/=]+(?=")': lambda at: b64encode(bytes.fromhex(2 * _hex_digits(at))).decode(),
}
"""Patterns of ids, commits, secrets and cursors, and the value that replaces the first, second and so on that is found.
"""


def record_examples() -> dict[str, Example]:
    """By the name of the endpoint, in the order of the table."""
    with TemporaryDirectory() as folder:
        examples = asyncio.run(_record_all(Path(folder)))
    text = json.encode({name: examples[name] for name in TABLE}).decode()
    for pattern, replacement in RANDOM_VALUES.items():
        values = {value: replacement(at) for at, value in enumerate(dict.fromkeys(re.findall(pattern, text)), start=1)}
        text = re.sub(pattern, lambda value, values=values: values[value[0]], text)
    return json.decode(text, type=dict[str, Example])


class Recorder:
    def __init__(self, api: ApiHarness) -> None:
        self.api = api
        self.examples: dict[str, Example] = {}

    async def send(self, endpoint: str, **members: Any) -> dict[str, Any]:
        """Sends a request about the queue."""
        return await self.send_exactly(endpoint, QUEUE | members)

    async def send_exactly(self, endpoint: str, request: dict[str, Any]) -> dict[str, Any]:
        response = await self.api.send(endpoint, request)
        assert response.status_code == 200, (endpoint, response.text)
        self.examples[endpoint] = Example(request, response.json())
        return response.json()

    async def read_metrics(self) -> None:
        """Only the lines of one metric are shown."""
        lines = (await self.api.metrics()).text.splitlines(keepends=True)
        self.examples["getMergeQueueMetrics"] = Example(None, "".join(line for line in lines if SHOWN_METRIC in line))

    async def pass_time(self, milliseconds: int) -> None:
        await self.api.world.advance_time(milliseconds)


async def _record_all(folder: Path) -> dict[str, Example]:
    async with api_without_queue(folder, SIGNED) as api:
        recorder = Recorder(api)
        await _create(recorder)
        await _test_and_merge(recorder)
        await _read_history(recorder)
        await _manage_webhook(recorder)
        await _manage_token(recorder)
        await recorder.send("updateQueue", state="PAUSED", concurrency=20)
        await recorder.send("deleteQueue")
        return recorder.examples


async def _create(recorder: Recorder) -> None:
    """A queue, and one merge from which it can estimate when the next one follows."""
    api = recorder.api
    await recorder.send("createQueue", mode="parallel", concurrency=10)
    webhook = {"url": HOOK, "events": ["pull_request.failed", "pull_request.merged"], "queues": [QUEUE]}
    await recorder.send_exactly("createWebhook", webhook)
    for number, targets in TARGETS.items():
        api.world.open(number)
        api.world.set_pull_request(number, title="Fix the session timeout", author="ada")
        await api.ask("setImpactedTargets", pr={"number": number}, impactedTargets=targets)
    await api.submit(122)
    await recorder.pass_time(14 * MINUTE)
    await api.passes(122)


async def _test_and_merge(recorder: Recorder) -> None:
    api = recorder.api
    await recorder.send("setImpactedTargets", pr=PR, impactedTargets=TARGETS[123])
    await recorder.send("submitPullRequest", pr=PR, priority="high")
    await api.submit(124)
    await recorder.pass_time(4 * SECOND)
    await api.report("pending", 123, url="https://ci.example.com/1")
    await recorder.send("previewPullRequestAction", pr=PR, action="restart")
    await recorder.send("previewCommitMessage", pr=PR)
    await recorder.send("restartTestsOnPullRequest", pr=PR)
    await recorder.pass_time(4 * SECOND)
    await api.report("pending", 123, url="https://ci.example.com/2")
    run = (await recorder.send("getSubmittedPullRequest", pr=PR))["testRunId"]
    tip = (await recorder.send("getMergeQueueTestingDetails", testRunId=run))["testBranchSha"]
    await recorder.send("getSubmittedPullRequests", prs=[PR, {"number": 125}])
    await recorder.send("listPullRequests", state="testing", take=1)
    await recorder.send("listOpenPullRequests")
    await recorder.send("getQueue")
    await recorder.send_exactly("listQueues", {})
    await recorder.read_metrics()
    await recorder.send("cancelPullRequest", pr={"number": 124})
    await recorder.pass_time(14 * MINUTE)
    status = {"repo": QUEUE["repo"], "sha": tip, "context": "unit", "state": "success"}
    await recorder.send_exactly("reportCommitStatus", status | {"url": "https://ci.example.com/2"})


async def _read_history(recorder: Recorder) -> None:
    start = "2023-11-14T22:27:00Z"
    await recorder.send("listMergeQueueTestingResults", since=start, take=1)
    last = (await recorder.api.ask("listEvents", take=100))["events"][-2]["cursor"]
    await recorder.send("listEvents", after=last, waitSeconds=20)
    await recorder.send("verifyLandings", last=1)
    await recorder.send("getProvenance", pr=PR)
    await recorder.send("replayQueue", since=start, concurrency=1)


async def _manage_token(recorder: Recorder) -> None:
    token = {"name": "ci", "scopes": ["read", "status"], "repositories": [QUEUE["repo"]]}
    created = await recorder.send_exactly("createToken", token | {"expiresAt": "2024-02-12T00:00:00Z"})
    await recorder.send_exactly("getCurrentToken", {})
    await recorder.send_exactly("listTokens", {})
    await recorder.send_exactly("revokeToken", {"id": created["id"]})


async def _manage_webhook(recorder: Recorder) -> None:
    webhook = recorder.examples["createWebhook"].response["id"]
    deliveries = (await recorder.send_exactly("listWebhookDeliveries", {"id": webhook, "take": 1}))["deliveries"]
    await recorder.send_exactly("resendWebhookEvent", {"id": webhook, "eventId": deliveries[0]["eventId"]})
    await recorder.send_exactly("testWebhook", {"id": webhook})
    await recorder.send_exactly("listWebhooks", {})
    await recorder.send_exactly("updateWebhook", {"id": webhook, "enabled": False})
    await recorder.send_exactly("deleteWebhook", {"id": webhook})
