"""Triggers for every error code: something that a client, its repository or the disk of the server can do."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import apsw
import httpx2
from msgspec import json

from mergeyard.api.app import build_app, build_handlers
from mergeyard.api.auth import Authenticator
from mergeyard.api.dispatch import Dispatcher
from mergeyard.api.request_body import MAX_BODY_BYTES, BodyReader
from mergeyard.api.routes import build_endpoints
from mergeyard.domain.access import Scope
from mergeyard.service.errors import Code
from mergeyard.service.submissions import ImpactedTargetsUploads
from tests.contract.api.harness import PUBLIC_URL, QUEUE, REPOSITORY, ApiHarness, http_client

ErrorTrigger = Callable[[ApiHarness], Awaitable[httpx2.Response]]

ERROR_TRIGGERS: dict[Code, ErrorTrigger] = {}
OTHER_THAN_USUAL = 10
"""A request for the current value writes nothing, so triggers use values above this one."""
_numbers = count(1)


def provokes(code: Code) -> Callable[[ErrorTrigger], ErrorTrigger]:
    def register(provocation: ErrorTrigger) -> ErrorTrigger:
        ERROR_TRIGGERS[code] = provocation
        return provocation

    return register


def unsubmitted_pull_request(api: ApiHarness, **changes: Any) -> dict[str, Any]:
    """Opens a pull request that is not submitted; returns it as a request names it."""
    number = next(_numbers)
    api.world.open(number)
    if changes:
        api.world.set_pull_request(number, **changes)
    return {"number": number}


# Request bodies and headers

BODIES: dict[Code, bytes] = {
    Code.INVALID_JSON: b"{",
    Code.INVALID_REQUEST: b"{}",
    Code.UNKNOWN_FIELD: json.encode(QUEUE | {"concurency": 5}),
    Code.INVALID_REPO: json.encode(QUEUE | {"repo": REPOSITORY | {"owner": ".."}}),
    Code.INVALID_BRANCH: json.encode(QUEUE | {"targetBranch": "a..b"}),
    Code.HOST_NOT_ALLOWED: json.encode(QUEUE | {"repo": REPOSITORY | {"host": "elsewhere.example"}}),
    Code.QUEUE_NOT_FOUND: json.encode(QUEUE | {"targetBranch": "another"}),
}


def _sending(body: bytes) -> ErrorTrigger:
    return lambda api: api.send("updateQueue", body)


ERROR_TRIGGERS.update({code: _sending(body) for code, body in BODIES.items()})


@provokes(Code.MISSING_TOKEN)
async def no_token(api: ApiHarness) -> httpx2.Response:
    return await api.client.post("/v1/getQueue", json=QUEUE)


@provokes(Code.INVALID_TOKEN)
async def a_forged_token(api: ApiHarness) -> httpx2.Response:
    return await api.post("getQueue", token="my_own")


@provokes(Code.INSUFFICIENT_SCOPE)
async def a_reader_that_writes(api: ApiHarness) -> httpx2.Response:
    return await api.post("updateQueue", token=await api.token(Scope.READ))


@provokes(Code.NOT_FOUND)
async def a_wrong_address(api: ApiHarness) -> httpx2.Response:
    return await api.send("getQueues", QUEUE)


@provokes(Code.METHOD_NOT_ALLOWED)
async def a_wrong_method(api: ApiHarness) -> httpx2.Response:
    return await api.get("/v1/getQueue")


@provokes(Code.UNSUPPORTED_MEDIA_TYPE)
async def a_compressed_body(api: ApiHarness) -> httpx2.Response:
    return await api.send("getQueue", QUEUE, headers={"content-encoding": "gzip"})


@provokes(Code.BODY_TOO_LARGE)
async def a_body_that_says_it_is_too_large(api: ApiHarness) -> httpx2.Response:
    return await api.send("getQueue", b"{}", headers={"content-length": str(MAX_BODY_BYTES + 1)})


@provokes(Code.REQUEST_TIMEOUT)
async def a_body_that_never_ends(api: ApiHarness) -> httpx2.Response:
    async def body() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    service = api.world.service
    authenticator = Authenticator(service.tokens, service.token_uses, service.refusal_log, service.wall_clock)
    dispatcher = Dispatcher(authenticator, service.idempotency, BodyReader(timeout_s=0.02))
    endpoints = build_endpoints(build_handlers(service, PUBLIC_URL))
    application = build_app([dispatcher.build_route(endpoint) for endpoint in endpoints])
    headers = {"x-api-token": api.secret, "content-type": "application/json", "accept": api.client.headers["accept"]}
    async with http_client(application) as client:
        return await client.post("/v1/getQueue", content=body(), headers=headers)


@provokes(Code.IDEMPOTENCY_KEY_REUSED)
async def a_key_for_two_requests(api: ApiHarness) -> httpx2.Response:
    key = f"key-{next(_numbers)}"
    await api.post("updateQueue", key=key, concurrency=5)
    return await api.post("updateQueue", key=key, concurrency=6)


# Queues


@provokes(Code.REPOSITORY_NOT_FOUND)
async def a_queue_for_no_repository(api: ApiHarness) -> httpx2.Response:
    return await api.post("createQueue", repo=REPOSITORY | {"name": "nothing"})


@provokes(Code.BRANCH_NOT_FOUND)
async def a_queue_for_no_branch(api: ApiHarness) -> httpx2.Response:
    return await api.post("createQueue", targetBranch="nothing")


@provokes(Code.QUEUE_ALREADY_EXISTS)
async def a_second_queue(api: ApiHarness) -> httpx2.Response:
    return await api.post("createQueue")


@provokes(Code.QUEUE_NOT_EMPTY)
async def deletion_of_a_queue_with_a_pull_request(api: ApiHarness) -> httpx2.Response:
    await api.ask("submitPullRequest", pr=unsubmitted_pull_request(api, draft=True))
    return await api.post("deleteQueue")


@provokes(Code.MODE_SWITCH_IN_PROGRESS)
async def two_switches_at_once(api: ApiHarness) -> httpx2.Response:
    pr = unsubmitted_pull_request(api)
    await api.ask("submitPullRequest", pr=pr)
    await api.ask("updateQueue", mode="parallel")
    refused = await api.post("updateQueue", mode="single")
    await api.ask("cancelPullRequest", pr=pr)
    await api.ask("updateQueue", mode="single")
    return refused


# Pull requests


@provokes(Code.PR_NOT_FOUND)
async def a_number_that_is_not_there(api: ApiHarness) -> httpx2.Response:
    return await api.post("submitPullRequest", pr={"number": 404_404})


@provokes(Code.PR_NOT_SUBMITTED)
async def one_that_was_never_submitted(api: ApiHarness) -> httpx2.Response:
    return await api.post("getSubmittedPullRequest", pr=unsubmitted_pull_request(api))


@provokes(Code.TEST_RUN_NOT_FOUND)
async def a_run_that_never_was(api: ApiHarness) -> httpx2.Response:
    return await api.post("getMergeQueueTestingDetails", testRunId="6f1d2c3b-4a59-8e7f-a012-3456789abcde")


@provokes(Code.PR_ALREADY_MERGED)
async def one_that_its_host_calls_merged(api: ApiHarness) -> httpx2.Response:
    return await api.post("submitPullRequest", pr=unsubmitted_pull_request(api, state="merged"))


@provokes(Code.PR_CLOSED)
async def one_that_is_closed(api: ApiHarness) -> httpx2.Response:
    return await api.post("submitPullRequest", pr=unsubmitted_pull_request(api, state="closed"))


@provokes(Code.SHA_MISMATCH)
async def another_head(api: ApiHarness) -> httpx2.Response:
    return await api.post("submitPullRequest", pr=unsubmitted_pull_request(api) | {"sha": "1" * 40})


@provokes(Code.PR_NOT_IN_QUEUE)
async def a_cancel_after_the_merge(api: ApiHarness) -> httpx2.Response:
    pr = unsubmitted_pull_request(api)
    await api.ask("submitPullRequest", pr=pr)
    await api.passes(pr["number"])
    return await api.post("cancelPullRequest", pr=pr)


@provokes(Code.MERGE_IN_PROGRESS)
async def a_cancel_during_the_merge(api: ApiHarness) -> httpx2.Response:
    async with merge_in_progress(api) as pr:
        return await api.call("cancelPullRequest", QUEUE | {"pr": pr})


@asynccontextmanager
async def merge_in_progress(api: ApiHarness) -> AsyncGenerator[dict[str, Any]]:
    """Holds the push at the Git host until the block ends."""
    pr, gate = unsubmitted_pull_request(api), api.world.folder / f"gate-{next(_numbers)}"
    os.mkfifo(gate)
    await api.ask("submitPullRequest", pr=pr)
    api.world.origin.install_hook("pre-receive", f'grep -q refs/heads/main && read -r _ < "{gate}"; exit 0')
    tip = api.world.run_of(pr["number"]).tip
    await api.call("reportCommitStatus", QUEUE | {"sha": tip, "context": "unit", "state": "success"})
    await api.world.queue_actor.wait_until(lambda queue: queue.landing is not None and queue.landing.is_intended)
    try:
        yield pr
    finally:
        await asyncio.to_thread(gate.write_text, "go\n")
        await api.world.wait_until_idle()
        api.world.origin.install_hook("pre-receive", "exit 0")


@provokes(Code.COMMIT_NOT_FOUND)
async def targets_for_a_commit_that_does_not_exist(api: ApiHarness) -> httpx2.Response:
    return await api.post(
        "setImpactedTargets", pr=unsubmitted_pull_request(api) | {"sha": "e" * 40}, impactedTargets=["a"]
    )


@provokes(Code.RATE_LIMITED)
async def more_targets_than_the_quota(api: ApiHarness) -> httpx2.Response:
    service = api.world.service
    usual, service.impacted_targets_uploads = (
        service.impacted_targets_uploads,
        ImpactedTargetsUploads(service.registry, service.repositories, quota_bytes=1),
    )
    try:
        return await api.post("setImpactedTargets", pr=unsubmitted_pull_request(api), impactedTargets=["a"])
    finally:
        service.impacted_targets_uploads = usual


# Webhooks


@provokes(Code.ADDRESS_NOT_ALLOWED)
async def a_webhook_into_our_own_network(api: ApiHarness) -> httpx2.Response:
    return await api.send("createWebhook", {"url": "https://private.example"})


@provokes(Code.WEBHOOK_NOT_FOUND)
async def a_missing_webhook(api: ApiHarness) -> httpx2.Response:
    return await api.send("deleteWebhook", {"id": "missing"})


@provokes(Code.TOKEN_NOT_FOUND)
async def a_missing_token(api: ApiHarness) -> httpx2.Response:
    return await api.send("revokeToken", {"id": "missing"})


@provokes(Code.EVENT_NOT_FOUND)
async def an_event_that_was_never_sent(api: ApiHarness) -> httpx2.Response:
    made = (await api.send("createWebhook", {"url": "https://there.example"})).json()
    return await api.send("resendWebhookEvent", {"id": made["id"], "eventId": "msg_never"})


# Faults of the store and of the Git host


@provokes(Code.STORAGE_UNAVAILABLE)
async def a_full_disk(api: ApiHarness) -> httpx2.Response:
    await api.world.wait_until_idle()
    api.world.store.failing_commits = 1
    response = await api.call("updateQueue", QUEUE | {"concurrency": OTHER_THAN_USUAL + next(_numbers)})
    api.world.store.failing_commits = 0
    return response


@provokes(Code.PROVIDER_UNAVAILABLE)
async def a_missing_repository(api: ApiHarness) -> httpx2.Response:
    pr = unsubmitted_pull_request(api)
    there = api.world.origin.path
    away = there.rename(there.with_suffix(".away"))
    try:
        return await api.post("submitPullRequest", pr=pr)
    finally:
        away.rename(there)


@provokes(Code.PROVIDER_ERROR)
async def a_pull_request_with_invalid_metadata(api: ApiHarness) -> httpx2.Response:
    pr, origin = unsubmitted_pull_request(api), api.world.origin
    origin.set_ref(f"refs/pull/{pr['number']}/meta", origin.blob("nonsense"))
    return await api.post("submitPullRequest", pr=pr)


@provokes(Code.INTERNAL_ERROR)
async def a_row_that_cannot_be_decoded(api: ApiHarness) -> httpx2.Response:
    pr = unsubmitted_pull_request(api, draft=True)
    await api.ask("submitPullRequest", pr=pr)
    await api.ask("cancelPullRequest", pr=pr)
    database: Any = apsw.Connection(str(api.world.folder / "data" / "mergeyard.db"))
    database.execute("UPDATE submissions SET body = x'00' WHERE number = ?", (pr["number"],))
    database.close()
    return await api.post("getSubmittedPullRequest", pr=pr)
