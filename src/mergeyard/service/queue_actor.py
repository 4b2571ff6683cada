"""Queue actor: the only object in this process that changes its queue.

Requests and events wait in an inbox. One decision takes all of them, and the queue, its journal and the stored
responses are committed in one transaction. Requests that arrive during the commit share the next decision. Neither a
client nor a listener sees a decision before it is stored, so a response that was sent survives a crash.

A decision has two halves, with the commit between them:

    decide and save    anything that raises here means that nothing was stored, so the commands may be decided again
    answer, log, tell  the decision is stored: whatever raises here is logged, and never leads to a second decision

The outcome of a commit is unknown when its response is lost (`StoreUnavailable`) or when this task is cancelled. Then
the commands fail and are not decided again here. The next decision learns the outcome: if the commit was stored, it
meets a version conflict and begins with the stored queue.
"""

import asyncio
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from time import perf_counter

import msgspec
import structlog
from msgspec import Struct

from mergeyard.domain.events import Event, ProcessingResumed
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey
from mergeyard.domain.queue import Decision, Queue
from mergeyard.domain.states import Refusal
from mergeyard.domain.timestamps import Instant
from mergeyard.engine.decide import decide
from mergeyard.ports.external import EMPTY_FORECAST, Clock
from mergeyard.ports.store import DuplicateRequest, LeaseLost, Store, StoreUnavailable, VersionConflict
from mergeyard.ports.writes import AppendEntries, DeleteQueue, Write
from mergeyard.service import audit_log, persistence
from mergeyard.service.callbacks import call_each
from mergeyard.service.errors import Code, RequestRefused, queue_not_found
from mergeyard.service.idempotency import IdempotentRequest, to_response_writes
from mergeyard.service.impacted_targets import EncodedTargets
from mergeyard.service.metrics import DECISION_EVENTS, DECISION_SECONDS, VERSION_CONFLICTS

log = structlog.get_logger()

Listener = Callable[["QueueActor", Queue | None], None]
"""Called after every committed decision with the previous queue; None: the listener has not seen this queue yet."""
Render = Callable[[Decision], bytes]
ComputeEvents = Callable[[Queue], Sequence[Event]]
"""Computes the events from the queue as it is right before the decision, or raises to refuse the request."""


class PendingCommand(Struct, eq=False):
    events: Sequence[Event] | ComputeEvents
    writes: tuple[Write, ...] = ()
    render: Render = lambda _: b""
    idempotent_request: IdempotentRequest | None = None
    lease_assertion: tuple[Write, ...] = ()
    """Committed before the other writes: fails the commit if this replica no longer holds the lease."""
    encoded_targets: EncodedTargets | None = None
    """The uploaded targets in stored form, so that a long list is not encoded a second time."""
    outcome: asyncio.Future[bytes] = msgspec.field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def fail(self, error: Exception) -> None:
        fail_future(self.outcome, error)

    def complete(self, response: bytes) -> None:
        if not self.outcome.done():
            self.outcome.set_result(response)


def fail_future(future: asyncio.Future[bytes] | asyncio.Future[None], error: Exception) -> None:
    if future.done():
        return
    if isinstance(error, StopIteration):  # asyncio refuses it, and the refusal would end the caller
        error = RuntimeError(f"unexpected {error!r}")
    future.set_exception(error)


def batchable_prefix(inbox: Sequence[PendingCommand]) -> int:
    """How many of the first commands one decision can take. A command with computed events is decided alone: events of
    another command in the same decision would change the queue that it read."""
    computed = next((at for at, command in enumerate(inbox) if callable(command.events)), len(inbox))
    return max(1, computed)


def find_refusals(events_by_command: Iterable[Sequence[Event]], decision: Decision) -> Iterator[Refusal | None]:
    """The first refusal of each command; None: accepted. `decision.refusals` is keyed by the position of an event among
    those of all commands."""
    start = 0
    for events in events_by_command:
        positions = range(start, start + len(events))
        yield next((decision.refusals[at] for at in positions if at in decision.refusals), None)
        start += len(events)


class EventRefused(Exception):
    """The engine refused an event of the request; nothing of the request was stored."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


class StoredDecision(Struct, frozen=True):
    """What a commit stored, and how each command is answered now."""

    decision: Decision
    event_count: int
    took_s: float
    answers: tuple[tuple[PendingCommand, bytes | Refusal], ...]

    def answer(self) -> None:
        for command, answer in self.answers:
            if isinstance(answer, Refusal):
                command.fail(EventRefused(answer))
            else:
                command.complete(answer)

    def log(self, key: QueueKey) -> None:
        if self.decision.journal:
            audit_log.log_decision(key, self.decision)
        DECISION_EVENTS.inc(self.event_count)
        DECISION_SECONDS.observe(self.took_s)


class InFlightSubmission(Struct, eq=False):
    number: PullRequestNumber
    is_dirty: bool = False
    """A notice about the pull request arrived in the meantime."""


class QueueActor:
    def __init__(self, key: QueueKey, queue: Queue, version: int, store: Store, clock: Clock) -> None:
        self.key = key
        self.queue = queue
        self.version = version
        self.decided_version = 0
        """The version on which the engine last decided here. A version that another replica stored since then may need
        a decision."""
        self.wake_at: Instant | None = None
        """When the engine must be asked again even if no event arrives."""
        self.forecast = EMPTY_FORECAST
        """Expected merge times; empty without a forecaster."""
        self.listeners: list[Listener] = []
        self.is_closed = False
        self._store = store
        self._clock = clock
        self._inbox: list[PendingCommand] = []
        self._processing: asyncio.Task[None] | None = None
        self._commit_lock = asyncio.Lock()
        self._waiters: dict[asyncio.Future[None], Callable[[Queue], bool]] = {}
        self._in_flight_submissions: list[InFlightSubmission] = []

    @property
    def id(self) -> QueueId:
        return self.queue.id

    @property
    def store(self) -> Store:
        """Where the queue is stored, for those who read its past."""
        return self._store

    @property
    def has_waiters(self) -> bool:
        """Whether a request or an open page waits for a change of this queue."""
        return bool(self._waiters)

    def has_other_runs_than(self, before: Queue | None) -> bool:
        return before is None or before.runs is not self.queue.runs

    def note_dirty(self, number: PullRequestNumber) -> bool:
        """Returns whether the queue holds the pull request. If a submission of it is in flight, marks that submission
        dirty, so that the pull request is read again once the queue holds it."""
        if self.queue.submission_of(number) is not None:
            return True
        self.mark_in_flight_dirty(number)
        return False

    @contextmanager
    def track_submission(self, number: PullRequestNumber) -> Generator[InFlightSubmission]:
        """Enter it before the pull request is read, leave it when the submission is stored."""
        submission = InFlightSubmission(number)
        self._in_flight_submissions.append(submission)
        try:
            yield submission
        finally:
            self._in_flight_submissions.remove(submission)

    def mark_in_flight_dirty(self, number: PullRequestNumber) -> None:
        for submission in self._in_flight_submissions:
            submission.is_dirty |= submission.number == number

    async def submit(
        self,
        *events: Event,
        writes: tuple[Write, ...] = (),
        render: Render = lambda _: b"",
        idempotent_request: IdempotentRequest | None = None,
        lease_assertion: tuple[Write, ...] = (),
        encoded_targets: EncodedTargets | None = None,
    ) -> bytes:
        """Returns the rendered response once the decision is stored."""
        return await self._enqueue(
            PendingCommand(events, writes, render, idempotent_request, lease_assertion, encoded_targets)
        )

    async def submit_computed(
        self, compute_events: ComputeEvents, render: Render, idempotent_request: IdempotentRequest | None
    ) -> bytes:
        """For events that depend on the current queue. They are computed in a decision of their own, so no other
        request changes the queue in between."""
        return await self._enqueue(PendingCommand(compute_events, (), render, idempotent_request))

    async def wait_until(self, settled: Callable[[Queue], bool]) -> None:
        """Waits for the first stored queue for which `settled` is true, or until the actor closes. What `settled`
        raises is raised here."""
        if not settled(self.queue):
            reached = asyncio.get_running_loop().create_future()
            self._waiters[reached] = settled
            try:
                await reached
            finally:
                del self._waiters[reached]

    async def resume(self) -> None:
        """Begins to process the queue after a restart or takeover, and announces it to all listeners."""
        await self.submit(ProcessingResumed())
        self.announce()

    def announce(self) -> None:
        """Shows this queue to all listeners as one that they have not seen yet."""
        self._notify_listeners(None)

    async def catch_up(self, version: int) -> None:
        """Loads what other replicas stored, at least up to `version`, and announces it like a decision of its own."""
        before = self.queue
        async with self._commit_lock:
            if self.version < version:
                await self._reload()
        if self.queue is not before:
            self._publish(before)

    async def delete_if_empty(self, at: Instant, *writes: Write) -> None:
        """Deletes the queue if it is empty. No decision follows this one."""
        while True:
            await self.wait_idle()
            self._require_empty()
            self.is_closed = True
            try:
                return await self._store.commit(DeleteQueue(self.id, self.version, at), *writes)
            except VersionConflict:
                self.is_closed = False
                await self.catch_up(self.version + 1)
            except BaseException:
                self.is_closed = False
                raise

    async def wait_idle(self) -> None:
        """Waits until no decision is in progress."""
        while self._processing is not None:
            await asyncio.shield(self._processing)

    def close(self) -> None:
        """Refuses further events and releases all waiters."""
        self.is_closed = True
        self._release_waiters()

    async def _enqueue(self, command: PendingCommand) -> bytes:
        if self.is_closed:
            raise queue_not_found(self.key)
        self._inbox.append(command)
        if self._processing is None:
            self._processing = asyncio.create_task(self._process_inbox())
        return await command.outcome

    def _require_empty(self) -> None:
        if self.is_closed:
            raise queue_not_found(self.key)
        if count := len(self.queue.submissions):
            message = f"The queue for {self.key} holds {count} pull request{'s' if count > 1 else ''}"
            raise RequestRefused(Code.QUEUE_NOT_EMPTY, f"{message}: remove them or let them merge first.")

    async def _process_inbox(self) -> None:
        commands = list[PendingCommand]()
        try:
            while self._inbox:
                count = batchable_prefix(self._inbox)
                commands = self._inbox[:count]
                del self._inbox[:count]
                await self._process(commands)
        finally:
            # Whatever ended this loop, the next command starts another one. No caller waits for an answer that cannot
            # come any more: those that have theirs ignore this.
            self._processing = None
            unanswered = [*commands, *self._inbox]
            self._inbox.clear()
            for command in unanswered:
                command.fail(StoreUnavailable("The decision was interrupted before its outcome was known."))

    async def _process(self, commands: list[PendingCommand]) -> None:
        before = self.queue
        try:
            async with self._commit_lock:
                stored = await self._decide_and_save(commands)
        except Exception as error:
            await self._fail_or_retry_alone(commands, before, error)
            return
        # Stored: from here on nothing may raise, or the commands would be decided a second time.
        stored.answer()
        self._log(stored)
        self._publish(before)

    async def _fail_or_retry_alone(self, commands: list[PendingCommand], before: Queue, error: Exception) -> None:
        """Nothing was stored: each command is retried alone, so that only the one that causes the error fails. While
        the store is unavailable all fail at once, so that none waits for the retries of others; and the outcome of
        their commit can be unknown, so that a retry could apply them a second time."""
        if self.queue is not before:  # what another replica stored was loaded
            self._publish(before)
        fails_all = len(commands) == 1 or isinstance(error, StoreUnavailable)
        for command in commands:
            if fails_all:
                command.fail(error)
            else:
                await self._process([command])

    async def _decide_and_save(self, commands: list[PendingCommand]) -> StoredDecision:
        """After a version conflict nothing is stored yet: decides again on the queue that another replica stored."""
        while True:
            try:
                return await self._try_to_save(commands)
            except VersionConflict:
                VERSION_CONFLICTS.inc()
                await self._reload()

    async def _try_to_save(self, commands: list[PendingCommand]) -> StoredDecision:
        """Raises only if nothing was stored, or if the outcome is unknown. So nothing but assignments follows the
        commit here."""
        before = self.queue
        now = self._clock.now()
        started = perf_counter()
        events = [command.events(before) if callable(command.events) else command.events for command in commands]
        decision = decide(before, list(chain.from_iterable(events)), now)
        refusals = list(find_refusals(events, decision))
        accepted = [command for command, refusal in zip(commands, refusals, strict=True) if refusal is None]
        responses = [command.render(decision) for command in accepted]
        remaining_responses = iter(responses)
        answers = tuple(
            (command, next(remaining_responses) if refusal is None else refusal)
            for command, refusal in zip(commands, refusals, strict=True)
        )
        event_count = sum(map(len, events))
        writes = list[Write]()
        for command, response in zip(accepted, responses, strict=True):
            writes += (*command.writes, *to_response_writes(command.idempotent_request, response, now))
        if decision.queue is not before:
            writes += self._encode_decision(before, decision, accepted, now)
        if writes:
            # A dict drops duplicates: commands of one decision mostly assert the same lease.
            assertions = {assertion: None for command in accepted for assertion in command.lease_assertion}
            await self._commit(*assertions, *writes)
        if decision.queue is not before:
            self.version += 1
            self.queue = decision.queue
        self.decided_version = self.version
        self.wake_at = decision.wake_at
        return StoredDecision(decision, event_count, perf_counter() - started, answers)

    async def _commit(self, *writes: Write) -> None:
        try:
            await self._store.commit(*writes)
        except (StoreUnavailable, VersionConflict, LeaseLost, DuplicateRequest):
            raise
        except Exception as error:
            # No store documents such an error, so it does not say whether the writes were stored. After a commit that
            # was stored, a retry would meet a version conflict, and then apply the commands a second time.
            if await self._is_stored_version_known():
                raise
            raise StoreUnavailable("It is unknown whether the decision was stored.") from error

    async def _is_stored_version_known(self) -> bool:
        try:
            return (await self._store.load(self.id)).version == self.version
        except Exception:
            return False

    def _encode_decision(
        self, before: Queue, decision: Decision, accepted: Sequence[PendingCommand], now: Instant
    ) -> list[Write]:
        uploaded = [command.encoded_targets for command in accepted if command.encoded_targets is not None]
        concluded, finished = decision.concluded_submissions, decision.finished_runs
        saved = persistence.encode_changes(before, decision.queue, self.version + 1, concluded, finished, now, uploaded)
        journal = audit_log.build_decision_rows(before, decision)
        return [saved, AppendEntries(journal)] if journal else [saved]

    def _publish(self, before: Queue) -> None:
        self._release_waiters()
        self._notify_listeners(before)

    def _release_waiters(self) -> None:
        """A condition that raises gives its own waiter the exception, and no other."""
        for reached, settled in self._waiters.items():
            if reached.done():
                continue
            try:
                is_reached = self.is_closed or settled(self.queue)
            except Exception as error:
                fail_future(reached, error)
                continue
            if is_reached:
                reached.set_result(None)

    def _notify_listeners(self, before: Queue | None) -> None:
        call_each(self.listeners, self, before, event="queue_listener_failed", queue=str(self.key))

    def _log(self, stored: StoredDecision) -> None:
        call_each([stored.log], self.key, event="decision_not_logged", queue=str(self.key))

    async def _reload(self) -> None:
        changes = await self._store.changes(self.id, self.version)
        if changes is not None:
            self.queue, self.version = persistence.apply_changes(self.queue, changes), changes.version
            return
        try:
            loaded = await self._store.load(self.id)
        except LookupError:
            self.close()
            raise queue_not_found(self.key) from None
        self.queue, self.version = persistence.decode_queue_and_refresh_all(loaded), loaded.version
