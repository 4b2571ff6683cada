"""`listEvents`: what happened in a queue, page by page, or as soon as it happens."""

import asyncio
from pathlib import Path
from typing import Any

from mergeyard.domain.instants import Instant
from mergeyard.service.telling.events import Event
from tests.contract.api.desk import QUEUE, Desk, a_desk
from tests.support.asynchronous import asynchronous

SECONDS = 20
"""Of real time; nobody needs them unless something is wrong."""


def types(answer: dict[str, Any]) -> list[str]:
    return [event["type"].partition(".")[2] for event in answer["events"]]


async def begin_waiting(desk: Desk, **members: Any) -> asyncio.Task[Any]:
    """Gives the request that waits, once it does."""
    waiting = asyncio.create_task(desk.call("listEvents", QUEUE | members))
    while not desk.world.keeper.awaited and not waiting.done():
        await asyncio.sleep(0)
    assert not waiting.done()
    return waiting


async def last_cursor(desk: Desk) -> str:
    return (await desk.ask("listEvents", take=100))["next"]


@asynchronous
async def test_everything_that_happened_is_told_oldest_first_page_by_page(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        await desk.submit(1)
        first = await desk.ask("listEvents", take=3)
        assert types(first) == ["created", "submitted", "queued"]
        assert first["next"] == first["events"][-1]["cursor"]
        rest = await desk.ask("listEvents", after=first["next"])
        assert types(rest) == ["testing"]
        assert await desk.ask("listEvents", after=int(rest["next"])) == {"events": [], "next": rest["next"]}


@asynchronous
async def test_what_is_no_cursor_of_the_queue_means_the_beginning(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        cursor = await last_cursor(desk)
        assert (await desk.ask("listEvents", after=cursor))["events"] == []
        whole = await desk.ask("listEvents")
        for unknown in ("0", "1", "999999", "9" * 18):
            assert await desk.ask("listEvents", after=unknown) == whole
        await desk.ask("deleteQueue")
        await desk.ask("createQueue")
        assert types(await desk.ask("listEvents", after=cursor)) == ["created"]


@asynchronous
async def test_an_event_has_the_members_of_a_webhook_a_cursor_and_words(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        await desk.submit(1)
        event = (await desk.ask("listEvents"))["events"][-1]
        assert event.keys() == {*Event.__struct_fields__, "cursor", "message"}
        assert (event["pr_number"], event["state"], event["target_branch"]) == (1, "testing", "main")
        assert (event["test_run_id"], event["test_branch"]) == (
            (await desk.run(1))["id"],
            (await desk.run(1))["testBranch"],
        )
        assert event["message"] == "A test run with it has started."


@asynchronous
async def test_who_waits_is_answered_as_soon_as_something_happens(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        waiting = await begin_waiting(desk, after=await last_cursor(desk), waitSeconds=30)
        await desk.submit(1)
        assert types((await waiting).json())[0] == "submitted"
        assert not desk.world.keeper.awaited


@asynchronous
async def test_who_waits_for_what_is_there_already_does_not_wait(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        assert types((await desk.call("listEvents", QUEUE | {"waitSeconds": 30})).json()) == ["created"]


@asynchronous
async def test_who_waits_in_vain_is_told_so_when_the_time_is_over_and_nobody_waits_for_them(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        after = await last_cursor(desk)
        waiting = await begin_waiting(desk, after=after, waitSeconds=20)
        begun = desk.world.clock.now()
        desk.world.clock.move_to(Instant(begun + 19_999))
        await desk.world.keeper.wake()
        assert not waiting.done()
        desk.world.clock.move_to(Instant(begun + 20_000))
        assert (await waiting).json() == {"events": [], "next": after}
        assert not desk.world.keeper.awaited


@asynchronous
async def test_who_gives_up_waiting_is_waited_for_by_nobody(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        waiting = await begin_waiting(desk, after=await last_cursor(desk), waitSeconds=30)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await desk.world.rest()
        assert not desk.world.keeper.awaited


@asynchronous
async def test_a_server_that_ends_lets_everybody_go(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        after = await last_cursor(desk)
        waiting = await begin_waiting(desk, after=after, waitSeconds=30)
        desk.world.service.live.end()
        assert (await asyncio.wait_for(waiting, SECONDS)).json() == {"events": [], "next": after}
        again = await desk.call("listEvents", QUEUE | {"after": after, "waitSeconds": 30})
        assert again.json()["events"] == []


@asynchronous
async def test_who_waits_hears_that_the_queue_is_deleted(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        waiting = await begin_waiting(desk, after=await last_cursor(desk), waitSeconds=30)
        await desk.ask("deleteQueue")
        assert types((await asyncio.wait_for(waiting, SECONDS)).json()) == ["deleted"]
        assert await desk.refuses("listEvents") == "queue_not_found"


NONSENSE: list[dict[str, object]] = [
    {"after": -1}, {"after": "x"}, {"after": ""}, {"after": 10**18}, {"after": None}, {"after": True}, {"after": 1.5},
    {"waitSeconds": 31}, {"waitSeconds": -1}, {"waitSeconds": "1"}, {"take": 0}, {"take": 101},
]  # fmt: skip


@asynchronous
async def test_what_makes_no_sense_is_refused(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        for members in NONSENSE:
            assert await desk.refuses("listEvents", **members) == "invalid_request", members
