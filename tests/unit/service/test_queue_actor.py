"""The queue actor: each command is applied once and answered once, whatever raises after the commit."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.typing import EventDict

from mergeyard.domain.events import CancelRequested, Event, StateRequested
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, Repo
from mergeyard.domain.journal import QueueChanged
from mergeyard.domain.queue import Queue, TargetBranch
from mergeyard.domain.states import QueueState
from mergeyard.ports.store import StoreUnavailable
from mergeyard.ports.writes import CreateQueue
from mergeyard.service import persistence
from mergeyard.service.queue_actor import EventRefused, QueueActor
from mergeyard.service.registry import QueueRegistry
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.faulty_store import FaultyStore
from tests.support.log_capture import capture_warnings, without_logs

MAIN = QueueKey(Repo("git.local", "acme", "app"), "main")
QUEUE = QueueId("q1")
BLANK = Queue(id=QUEUE, target_branch=TargetBranch(name="main"))


def pause(reason: str) -> StateRequested:
    return StateRequested(state=QueueState.PAUSED, state_reason=reason)


class ActorFixture:
    def __init__(self, store: FaultyStore) -> None:
        self.store = store
        self.registry = QueueRegistry(store, ManualClock())
        self.actor = self.registry.add(QueueActor(MAIN, BLANK, 1, store, ManualClock()))

    async def submit_together(self, *reasons: str) -> list[bytes | BaseException]:
        """The answers to pauses with these reasons, which share a decision."""
        submits = (self.actor.submit(pause(reason), render=lambda _: b"done") for reason in reasons)
        return await asyncio.gather(*submits, return_exceptions=True)

    async def read_reasons(self) -> list[str]:
        """The reasons in the stored journal: a command that was applied twice is there twice."""
        entries = await self.store.entries(QUEUE, 0, 100)
        records = [persistence.decode_record(entry.body) for entry in entries]
        return [record.detail for record in records if isinstance(record, QueueChanged)]

    async def answers_soon(self, *events: Event) -> bytes:
        async with asyncio.timeout(10):
            return await self.actor.submit(*events, render=lambda _: b"done")


@asynccontextmanager
async def open_actor(folder: Path) -> AsyncGenerator[ActorFixture]:
    store = FaultyStore(folder / "mergeyard.db")
    await store.open()
    now = ManualClock().now()
    await store.commit(CreateQueue(QUEUE, MAIN, now), persistence.encode_changes(BLANK, BLANK, 1, (), (), now))
    with without_logs():
        try:
            yield ActorFixture(store)
        finally:
            await store.close()


def raise_bug(*_: object) -> Any:
    raise ValueError("a bug")


def raise_stop_iteration(*_: object) -> Any:
    return next(iter(()))


@contextmanager
def logs_that_raise() -> Generator[None]:
    """Every log line raises, also the one that reports this."""

    def fail(_logger: object, _method: str, event: EventDict) -> EventDict:
        raise OSError(f"the log is full: {event['event']}")

    before = structlog.get_config()
    structlog.configure(processors=[fail], wrapper_class=structlog.make_filtering_bound_logger(0))
    try:
        yield
    finally:
        structlog.configure(**before)


@asynchronous
async def test_a_log_that_raises_after_the_commit_applies_no_command_twice(tmp_path: Path):
    async with open_actor(tmp_path) as fixture:
        with logs_that_raise():
            assert await fixture.submit_together("a", "b") == [b"done", b"done"]
            assert await fixture.answers_soon(pause("c")) == b"done"
        assert await fixture.read_reasons() == ["a", "b", "c"]


@asynchronous
async def test_a_listener_that_raises_stops_neither_the_others_nor_the_queue(tmp_path: Path):
    async with open_actor(tmp_path) as fixture:
        seen = list[str]()

        def note(actor: QueueActor, _: Queue | None) -> None:
            seen.append(actor.queue.state_reason)

        fixture.registry.listeners += (raise_bug, note)
        with capture_warnings() as entries:
            assert await fixture.submit_together("a", "b") == [b"done", b"done"]
            assert await fixture.answers_soon(pause("c")) == b"done"
        assert seen == ["b", "c"]
        assert await fixture.read_reasons() == ["a", "b", "c"]
        assert [(entry["event"], entry["queue"]) for entry in entries] == [("queue_listener_failed", str(MAIN))] * 2


@asynchronous
async def test_a_listener_that_raises_hides_no_queue_from_the_others(tmp_path: Path):
    async with open_actor(tmp_path) as fixture:
        seen = list[QueueActor]()

        def note(actor: QueueActor, _: Queue | None) -> None:
            seen.append(actor)

        fixture.registry.listeners += (raise_bug, note)
        fixture.registry.add_created(fixture.actor)
        assert seen == [fixture.actor]
        fixture.registry.on_evicted += (raise_bug, seen.append)
        fixture.registry.evict(fixture.actor)
        assert seen == [fixture.actor] * 2


@pytest.mark.parametrize(("condition", "error"), [(raise_bug, ValueError), (raise_stop_iteration, RuntimeError)])
@asynchronous
async def test_a_waiter_whose_condition_raises_alone_gets_the_exception(
    condition: Any, error: type[Exception], tmp_path: Path
):
    async with open_actor(tmp_path) as fixture:
        waiter = asyncio.create_task(fixture.actor.wait_until(lambda queue: queue.is_paused and condition()))
        other = asyncio.create_task(fixture.actor.wait_until(lambda queue: queue.is_paused))
        await asyncio.sleep(0)
        assert await fixture.answers_soon(pause("a")) == b"done"
        with pytest.raises(error):
            await waiter
        await other
        assert await fixture.answers_soon(pause("b")) == b"done"
        assert not fixture.actor.has_waiters


@asynchronous
async def test_commands_whose_commit_lost_its_response_fail_and_are_applied_once(tmp_path: Path):
    async with open_actor(tmp_path) as fixture:
        fixture.store.commits_before_lost_response = 0
        answers = await fixture.submit_together("a", "b")
        assert [type(answer) for answer in answers] == [StoreUnavailable] * 2
        assert await fixture.answers_soon(pause("c")) == b"done"
        assert await fixture.read_reasons() == ["a", "b", "c"]


@asynchronous
async def test_an_unknown_error_of_a_commit_that_was_stored_applies_no_command_twice(tmp_path: Path):
    async with open_actor(tmp_path) as fixture:
        fixture.store.error_after_commit = ValueError("the connection could not be released")
        answers = await fixture.submit_together("a", "b")
        assert [type(answer) for answer in answers] == [StoreUnavailable] * 2
        assert await fixture.answers_soon(pause("c")) == b"done"
        assert await fixture.read_reasons() == ["a", "b", "c"]


@asynchronous
async def test_a_command_that_cannot_be_stored_fails_alone(tmp_path: Path):
    async with open_actor(tmp_path) as fixture:

        def refuse_b(writes: Any) -> None:
            if any(b'"b"' in entry.body for write in writes for entry in getattr(write, "entries", ())):
                raise ValueError("b cannot be stored")

        fixture.store.before_commit = refuse_b
        first, second, third = await fixture.submit_together("a", "b", "c")
        assert (first, type(second), third) == (b"done", ValueError, b"done")
        assert await fixture.read_reasons() == ["a", "c"]


@asynchronous
async def test_a_response_that_cannot_be_rendered_fails_its_own_command(tmp_path: Path):
    async with open_actor(tmp_path) as fixture:
        outcomes = await asyncio.gather(
            fixture.actor.submit(pause("a"), render=raise_stop_iteration),
            fixture.actor.submit(pause("b"), render=lambda _: b"done"),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [RuntimeError, bytes]
        assert await fixture.read_reasons() == ["b"]


@asynchronous
async def test_commands_whose_decision_is_cancelled_during_the_commit_are_answered_and_applied_once(tmp_path: Path):
    async with open_actor(tmp_path) as fixture:

        def cancel_once(_: object) -> None:
            fixture.store.before_commit = None
            task = asyncio.current_task()
            assert task is not None
            task.cancel()

        fixture.store.before_commit = cancel_once
        async with asyncio.timeout(10):
            answers = await fixture.submit_together("a", "b")
        assert [type(answer) for answer in answers] == [StoreUnavailable] * 2
        assert await fixture.answers_soon(pause("c")) == b"done"
        assert await fixture.read_reasons() == ["a", "b", "c"]


@asynchronous
async def test_a_caller_that_is_cancelled_during_the_commit_changes_nothing_for_the_others(tmp_path: Path):
    async with open_actor(tmp_path) as fixture:
        caller = asyncio.create_task(fixture.actor.submit(pause("a")))

        def cancel_caller(_: object) -> None:
            caller.cancel()

        fixture.store.before_commit = cancel_caller
        answers = await fixture.submit_together("b", "c")
        assert answers == [b"done", b"done"]
        assert caller.cancelled()
        assert await fixture.read_reasons() == ["a", "b", "c"]


@asynchronous
async def test_a_refused_command_stores_nothing_and_the_others_of_its_decision_are_answered(tmp_path: Path):
    async with open_actor(tmp_path) as fixture:
        unknown = CancelRequested(number=PullRequestNumber(9), actor="")
        refused, answered = await asyncio.gather(
            fixture.actor.submit(unknown), fixture.answers_soon(pause("a")), return_exceptions=True
        )
        assert (type(refused), answered) == (EventRefused, b"done")
