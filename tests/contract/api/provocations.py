"""How to be refused: for every code something that a client, its repository or our disk may really do."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import apsw
import httpx
from msgspec import json

from mergeyard.api import assembly
from mergeyard.api.doorkeeping import ServiceDoor
from mergeyard.api.handlers import handlers
from mergeyard.api.receiving import LIMIT, Reception
from mergeyard.api.routes import endpoints
from mergeyard.domain.tokens import Scope
from mergeyard.service.errors import Code
from mergeyard.service.uploads import Uploads
from tests.contract.api.desk import PUBLIC_URL, QUEUE, REPOSITORY, Desk, a_client

Provocation = Callable[[Desk], Awaitable[httpx.Response]]

PROVOCATIONS: dict[Code, Provocation] = {}
OTHER_THAN_USUAL = 10
"""Who asks for what is there already writes nothing."""
_numbers = count(1)


def provokes(code: Code) -> Callable[[Provocation], Provocation]:
    def kept(provocation: Provocation) -> Provocation:
        PROVOCATIONS[code] = provocation
        return provocation

    return kept


def fresh(desk: Desk, **changes: Any) -> dict[str, Any]:
    """A pull request that nobody has submitted, as a request names it."""
    number = next(_numbers)
    desk.world.open(number)
    if changes:
        desk.world.set_pull(number, **changes)
    return {"number": number}


# What is sent

BODIES: dict[Code, bytes] = {
    Code.INVALID_JSON: b"{",
    Code.DUPLICATE_KEY: b'{"a":1,"a":1}',
    Code.JSON_TOO_DEEP: b'{"a":' * 33 + b"1" + b"}" * 33,
    Code.JSON_TOO_COMPLEX: b'{"a":[' + b"[]," * 10_000 + b"[]]}",
    Code.INVALID_STRING: b'{"a":"\\ud800"}',
    Code.INVALID_REQUEST: b"{}",
    Code.UNKNOWN_FIELD: json.encode(QUEUE | {"concurency": 5}),
    Code.INVALID_REPO: json.encode(QUEUE | {"repo": REPOSITORY | {"owner": ".."}}),
    Code.INVALID_BRANCH: json.encode(QUEUE | {"targetBranch": "a..b"}),
    Code.HOST_NOT_ALLOWED: json.encode(QUEUE | {"repo": REPOSITORY | {"host": "elsewhere.example"}}),
    Code.QUEUE_NOT_FOUND: json.encode(QUEUE | {"targetBranch": "another"}),
}


def _sending(body: bytes) -> Provocation:
    return lambda desk: desk.send("updateQueue", body)


PROVOCATIONS.update({code: _sending(body) for code, body in BODIES.items()})


@provokes(Code.MISSING_TOKEN)
async def no_token(desk: Desk) -> httpx.Response:
    return await desk.client.post("/v1/getQueue", json=QUEUE)


@provokes(Code.INVALID_TOKEN)
async def a_forged_token(desk: Desk) -> httpx.Response:
    return await desk.post("getQueue", token="my_own")


@provokes(Code.INSUFFICIENT_SCOPE)
async def a_reader_that_writes(desk: Desk) -> httpx.Response:
    return await desk.post("updateQueue", token=await desk.token(Scope.READ))


@provokes(Code.NOT_FOUND)
async def a_wrong_address(desk: Desk) -> httpx.Response:
    return await desk.send("getQueues", QUEUE)


@provokes(Code.METHOD_NOT_ALLOWED)
async def a_wrong_method(desk: Desk) -> httpx.Response:
    return await desk.get("/v1/getQueue")


@provokes(Code.UNSUPPORTED_MEDIA_TYPE)
async def a_compressed_body(desk: Desk) -> httpx.Response:
    return await desk.send("getQueue", QUEUE, headers={"content-encoding": "gzip"})


@provokes(Code.BODY_TOO_LARGE)
async def a_body_that_says_it_is_too_large(desk: Desk) -> httpx.Response:
    return await desk.send("getQueue", b"{}", headers={"content-length": str(LIMIT + 1)})


@provokes(Code.URI_TOO_LONG)
async def a_long_query(desk: Desk) -> httpx.Response:
    return await desk.metrics("?repo=" + "a" * 9000)


@provokes(Code.HEADERS_TOO_LARGE)
async def a_large_header(desk: Desk) -> httpx.Response:
    return await desk.send("getQueue", QUEUE, headers={"x-much": "a" * 66_000})


@provokes(Code.REQUEST_TIMEOUT)
async def a_body_that_never_ends(desk: Desk) -> httpx.Response:
    async def body() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    service = desk.world.service
    impatient = assembly.application(
        endpoints(handlers(service, PUBLIC_URL)),
        ServiceDoor(service),
        ready=service.ready,
        own_metrics=assembly.open_metrics(bytes),
        reception=Reception(seconds=0.02),
    )
    headers = {"x-api-token": desk.secret, "content-type": "application/json", "accept": desk.client.headers["accept"]}
    async with a_client(impatient) as client:
        return await client.post("/v1/getQueue", content=body(), headers=headers)


@provokes(Code.IDEMPOTENCY_KEY_REUSED)
async def a_key_for_two_requests(desk: Desk) -> httpx.Response:
    key = f"key-{next(_numbers)}"
    await desk.post("updateQueue", key=key, concurrency=5)
    return await desk.post("updateQueue", key=key, concurrency=6)


# What is asked of queues


@provokes(Code.REPOSITORY_NOT_FOUND)
async def a_queue_for_no_repository(desk: Desk) -> httpx.Response:
    return await desk.post("createQueue", repo=REPOSITORY | {"name": "nothing"})


@provokes(Code.BRANCH_NOT_FOUND)
async def a_queue_for_no_branch(desk: Desk) -> httpx.Response:
    return await desk.post("createQueue", targetBranch="nothing")


@provokes(Code.QUEUE_ALREADY_EXISTS)
async def a_second_queue(desk: Desk) -> httpx.Response:
    return await desk.post("createQueue")


@provokes(Code.QUEUE_NOT_EMPTY)
async def the_end_of_a_queue_that_holds_somebody(desk: Desk) -> httpx.Response:
    await desk.ask("submitPullRequest", pr=fresh(desk, draft=True))
    return await desk.post("deleteQueue")


@provokes(Code.MODE_SWITCH_IN_PROGRESS)
async def two_switches_at_once(desk: Desk) -> httpx.Response:
    pr = fresh(desk)
    await desk.ask("submitPullRequest", pr=pr)
    await desk.ask("updateQueue", mode="parallel")
    refused = await desk.post("updateQueue", mode="single")
    await desk.ask("cancelPullRequest", pr=pr)
    await desk.ask("updateQueue", mode="single")
    return refused


# What is asked of pull requests


@provokes(Code.PR_NOT_FOUND)
async def a_number_that_is_not_there(desk: Desk) -> httpx.Response:
    return await desk.post("submitPullRequest", pr={"number": 404_404})


@provokes(Code.PR_NOT_SUBMITTED)
async def one_that_was_never_submitted(desk: Desk) -> httpx.Response:
    return await desk.post("getSubmittedPullRequest", pr=fresh(desk))


@provokes(Code.TEST_RUN_NOT_FOUND)
async def a_run_that_never_was(desk: Desk) -> httpx.Response:
    return await desk.post("getMergeQueueTestingDetails", testRunId="6f1d2c3b-4a59-8e7f-a012-3456789abcde")


@provokes(Code.PR_ALREADY_MERGED)
async def one_that_its_host_calls_merged(desk: Desk) -> httpx.Response:
    return await desk.post("submitPullRequest", pr=fresh(desk, state="merged"))


@provokes(Code.PR_CLOSED)
async def one_that_is_closed(desk: Desk) -> httpx.Response:
    return await desk.post("submitPullRequest", pr=fresh(desk, state="closed"))


@provokes(Code.SHA_MISMATCH)
async def another_head(desk: Desk) -> httpx.Response:
    return await desk.post("submitPullRequest", pr=fresh(desk) | {"sha": "1" * 40})


@provokes(Code.TESTS_NOT_RUNNING)
async def a_restart_of_nothing(desk: Desk) -> httpx.Response:
    pr = fresh(desk, draft=True)
    await desk.ask("submitPullRequest", pr=pr)
    return await desk.post("restartTestsOnPullRequest", pr=pr)


@provokes(Code.PR_NOT_IN_QUEUE)
async def a_cancel_after_the_merge(desk: Desk) -> httpx.Response:
    pr = fresh(desk)
    await desk.ask("submitPullRequest", pr=pr)
    await desk.passes(pr["number"])
    return await desk.post("cancelPullRequest", pr=pr)


@provokes(Code.MERGE_IN_PROGRESS)
async def a_cancel_during_the_merge(desk: Desk) -> httpx.Response:
    async with a_merge_under_way(desk) as pr:
        return await desk.call("cancelPullRequest", QUEUE | {"pr": pr})


@asynccontextmanager
async def a_merge_under_way(desk: Desk) -> AsyncGenerator[dict[str, Any]]:
    """The host takes its time over the push, until we let it go on."""
    pr, gate = fresh(desk), desk.world.folder / f"gate-{next(_numbers)}"
    os.mkfifo(gate)
    await desk.ask("submitPullRequest", pr=pr)
    desk.world.origin.hook("pre-receive", f'grep -q refs/heads/main && read -r _ < "{gate}"; exit 0')
    tip = desk.world.run_of(pr["number"]).tip
    await desk.call("reportCommitStatus", QUEUE | {"sha": tip, "context": "unit", "state": "success"})
    await desk.world.keeper.until(lambda queue: queue.landing is not None and queue.landing.intended)
    try:
        yield pr
    finally:
        await asyncio.to_thread(gate.write_text, "go\n")
        await desk.world.rest()
        desk.world.origin.hook("pre-receive", "exit 0")


@provokes(Code.COMMIT_NOT_FOUND)
async def targets_for_a_commit_that_does_not_exist(desk: Desk) -> httpx.Response:
    return await desk.post("setImpactedTargets", pr=fresh(desk) | {"sha": "e" * 40}, impactedTargets=["a"])


@provokes(Code.RATE_LIMITED)
async def more_targets_than_the_quota(desk: Desk) -> httpx.Response:
    service = desk.world.service
    usual, service.uploads = service.uploads, Uploads(service.yard, service.sites, quota_bytes=1)
    try:
        return await desk.post("setImpactedTargets", pr=fresh(desk), impactedTargets=["a"])
    finally:
        service.uploads = usual


# What is asked of webhooks


@provokes(Code.ADDRESS_NOT_ALLOWED)
async def a_webhook_into_our_own_network(desk: Desk) -> httpx.Response:
    return await desk.send("createWebhook", {"url": "https://private.example"})


@provokes(Code.WEBHOOK_NOT_FOUND)
async def a_webhook_that_nobody_made(desk: Desk) -> httpx.Response:
    return await desk.send("deleteWebhook", {"id": "nobody"})


@provokes(Code.EVENT_NOT_FOUND)
async def an_event_that_was_never_sent(desk: Desk) -> httpx.Response:
    made = (await desk.send("createWebhook", {"url": "https://there.example"})).json()
    return await desk.send("resendWebhookEvent", {"id": made["id"], "eventId": "msg_never"})


# What goes wrong behind the door


@provokes(Code.STORAGE_UNAVAILABLE)
async def a_full_disk(desk: Desk) -> httpx.Response:
    await desk.world.rest()
    desk.world.store.failures = 1
    response = await desk.call("updateQueue", QUEUE | {"concurrency": OTHER_THAN_USUAL + next(_numbers)})
    desk.world.store.failures = 0
    return response


@provokes(Code.PROVIDER_UNAVAILABLE)
async def a_repository_that_vanished(desk: Desk) -> httpx.Response:
    pr = fresh(desk)
    there = desk.world.origin.path
    away = there.rename(there.with_suffix(".away"))
    try:
        return await desk.post("submitPullRequest", pr=pr)
    finally:
        away.rename(there)


@provokes(Code.PROVIDER_ERROR)
async def a_pull_request_that_tells_nonsense(desk: Desk) -> httpx.Response:
    pr, origin = fresh(desk), desk.world.origin
    origin.set(f"refs/pull/{pr['number']}/meta", origin.blob("nonsense"))
    return await desk.post("submitPullRequest", pr=pr)


@provokes(Code.INTERNAL_ERROR)
async def a_row_that_means_nothing(desk: Desk) -> httpx.Response:
    pr = fresh(desk, draft=True)
    await desk.ask("submitPullRequest", pr=pr)
    await desk.ask("cancelPullRequest", pr=pr)
    database: Any = apsw.Connection(str(desk.world.folder / "data" / "mergeyard.db"))
    database.execute("UPDATE stays SET body = x'00' WHERE number = ?", (pr["number"],))
    database.close()
    return await desk.post("getSubmittedPullRequest", pr=pr)
