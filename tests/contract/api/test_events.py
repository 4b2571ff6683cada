"""`listEvents`: the events of a queue page by page, or as soon as they happen (long poll)."""

import asyncio
from pathlib import Path
from typing import Any

from mergeyard.api.queues import MAX_LONG_POLLS_PER_TOKEN
from mergeyard.domain.access import Scope
from mergeyard.domain.timestamps import Instant
from mergeyard.service.webhooks.events import WebhookEvent
from tests.contract.api.harness import QUEUE, ApiHarness, api_with_queue, code_of
from tests.support.asynchronous import asynchronous

SECONDS = 20
"""Real time; a passing test does not need it."""


def types(answer: dict[str, Any]) -> list[str]:
    return [event["type"].partition(".")[2] for event in answer["events"]]


async def begin_waiting(api: ApiHarness, **members: Any) -> asyncio.Task[Any]:
    """Returns the pending request once it waits."""
    waiting = asyncio.create_task(api.call("listEvents", QUEUE | members))
    while not api.world.queue_actor.has_waiters and not waiting.done():
        await asyncio.sleep(0)
    assert not waiting.done()
    return waiting


async def last_cursor(api: ApiHarness) -> str:
    return (await api.ask("listEvents", take=100))["next"]


@asynchronous
async def test_events_are_listed_oldest_first_page_by_page(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        await api.submit(1)
        first = await api.ask("listEvents", take=3)
        assert types(first) == ["created", "submitted", "queued"]
        assert first["next"] == first["events"][-1]["cursor"]
        rest = await api.ask("listEvents", after=first["next"])
        assert types(rest) == ["testing"]
        assert await api.ask("listEvents", after=int(rest["next"])) == {"events": [], "next": rest["next"]}


@asynchronous
async def test_an_unknown_cursor_starts_at_the_beginning(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        cursor = await last_cursor(api)
        assert (await api.ask("listEvents", after=cursor))["events"] == []
        whole = await api.ask("listEvents")
        for unknown in ("0", "1", "999999", "9" * 18):
            assert await api.ask("listEvents", after=unknown) == whole
        await api.ask("deleteQueue")
        await api.ask("createQueue")
        assert types(await api.ask("listEvents", after=cursor)) == ["created"]


@asynchronous
async def test_an_event_has_the_members_of_a_webhook_a_cursor_and_a_message(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        await api.submit(1)
        event = (await api.ask("listEvents"))["events"][-1]
        assert event.keys() == {*WebhookEvent.__struct_fields__, "cursor", "message"}
        assert (event["pr_number"], event["state"], event["target_branch"]) == (1, "testing", "main")
        assert (event["test_run_id"], event["test_branch"]) == (
            (await api.run(1))["id"],
            (await api.run(1))["testBranch"],
        )
        assert event["message"] == "A test run with this pull request started."


@asynchronous
async def test_a_long_poll_responds_as_soon_as_something_happens(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        waiting = await begin_waiting(api, after=await last_cursor(api), waitSeconds=30)
        await api.submit(1)
        assert types((await waiting).json())[0] == "submitted"
        assert not api.world.queue_actor.has_waiters


@asynchronous
async def test_a_long_poll_responds_at_once_if_events_exist(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        assert types((await api.call("listEvents", QUEUE | {"waitSeconds": 30})).json()) == ["created"]


@asynchronous
async def test_a_long_poll_without_events_responds_empty_after_its_time_and_leaves_no_waiter(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        after = await last_cursor(api)
        waiting = await begin_waiting(api, after=after, waitSeconds=20)
        begun = api.world.clock.now()
        api.world.clock.move_to(Instant(begun + 19_999))
        await api.world.queue_actor.resume()
        assert not waiting.done()
        api.world.clock.move_to(Instant(begun + 20_000))
        assert (await waiting).json() == {"events": [], "next": after}
        assert not api.world.queue_actor.has_waiters


@asynchronous
async def test_a_cancelled_long_poll_leaves_no_waiter(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        waiting = await begin_waiting(api, after=await last_cursor(api), waitSeconds=30)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await api.world.wait_until_idle()
        assert not api.world.queue_actor.has_waiters


@asynchronous
async def test_a_stopping_server_ends_all_long_polls(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        after = await last_cursor(api)
        waiting = await begin_waiting(api, after=after, waitSeconds=30)
        api.world.service.change_waiter.stop()
        assert (await asyncio.wait_for(waiting, SECONDS)).json() == {"events": [], "next": after}
        again = await api.call("listEvents", QUEUE | {"after": after, "waitSeconds": 30})
        assert again.json()["events"] == []


@asynchronous
async def test_a_long_poll_reports_that_the_queue_was_deleted(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        waiting = await begin_waiting(api, after=await last_cursor(api), waitSeconds=30)
        await api.ask("deleteQueue")
        assert types((await asyncio.wait_for(waiting, SECONDS)).json()) == ["deleted"]
        assert await api.refusal_code("listEvents") == "queue_not_found"


INVALID: list[dict[str, object]] = [
    {"after": -1}, {"after": "x"}, {"after": ""}, {"after": 10**18}, {"after": None}, {"after": True}, {"after": 1.5},
    {"waitSeconds": 31}, {"waitSeconds": -1}, {"waitSeconds": "1"}, {"take": 0}, {"take": 101},
]  # fmt: skip


@asynchronous
async def test_invalid_parameters_are_refused(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        for members in INVALID:
            assert await api.refusal_code("listEvents", **members) == "invalid_request", members


@asynchronous
async def test_one_token_cannot_wait_for_events_more_often_than_the_limit(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        after = await last_cursor(api)
        body = QUEUE | {"after": after, "waitSeconds": 30}
        polls = [asyncio.create_task(api.call("listEvents", body)) for _ in range(MAX_LONG_POLLS_PER_TOKEN + 1)]
        done, waiting = await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
        assert [code_of(each.result()) for each in done] == ["rate_limited"]
        assert (await api.call("listEvents", QUEUE | {"after": after})).status_code == 200
        other = asyncio.create_task(api.call("listEvents", body, token=await api.token(Scope.READ)))
        api.world.open(1)
        await api.submit(1)
        assert {(await each).status_code for each in (*waiting, other)} == {200}
        again = await begin_waiting(api, after=await last_cursor(api), waitSeconds=30)
        again.cancel()
