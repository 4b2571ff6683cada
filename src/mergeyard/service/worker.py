"""Worker: performs the pending tasks of leased queues, retries with backoff, and wakes queues at `wake_at`.

Every task is retried until the queue no longer asks for it. No list of tasks is stored: the worker derives the pending
tasks from the queue after every decision and after a restart.
"""

import asyncio
import random
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Literal, assert_never
from weakref import WeakKeyDictionary

import structlog
from msgspec.structs import replace

from mergeyard.domain import tasks as t
from mergeyard.domain.config import LandingMethod
from mergeyard.domain.events import Event, HostRefusing, LandingMissed
from mergeyard.domain.ids import QueueId
from mergeyard.domain.queue import Queue
from mergeyard.domain.timestamps import MINUTE, Instant, later
from mergeyard.engine.tasks import pending_tasks
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import RequestPurpose, requests_for
from mergeyard.ports.store import LeaseLost, Store, StoreUnavailable
from mergeyard.service.background import Background, retry_until_stored
from mergeyard.service.check_sources import ForgeCheckPoller
from mergeyard.service.errors import RequestRefused
from mergeyard.service.leases import Leases
from mergeyard.service.metrics import TASK_SECONDS, TASKS
from mergeyard.service.obstacles import TASK_ERRORS, Obstacles, TaskError
from mergeyard.service.pull_request_reader import PullRequestReader
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.repositories import Repositories, RepositoryContext
from mergeyard.service.tasks import build_run, land, observe, provider_merge, test_branches
from mergeyard.service.tasks.provider_merge import MergeNotVisible

log = structlog.get_logger()

MIN_DELAY_MS = 200
MAX_DELAY_MS = 5000
MAX_REFUSED_DELAY_MS = MINUTE
"""After a refusal: an administrator needs minutes, and hosts limit accounts that repeat what they refuse."""


@dataclass
class Attempt:
    """One attempt of a task, which records how far it came."""

    observation: int
    """How many attempts the Git host answered, with this one."""
    is_answered: bool = False
    """Whether the Git host answered, even if the result is not visible yet."""
    outcome: Literal["done", "failed", "refused"] = "failed"


@dataclass(eq=False)
class Worker:
    repositories: Repositories
    reader: PullRequestReader
    store: Store
    forge_checks: ForgeCheckPoller
    clock: Clock
    background: Background
    leases: Leases
    obstacles: Obstacles
    _running: dict[tuple[QueueId, t.Task], asyncio.Task[None]] = field(default_factory=dict, init=False)
    _missed_landings: WeakKeyDictionary[QueueActor, tuple[t.Land, int]] = field(
        default_factory=WeakKeyDictionary[QueueActor, tuple[t.Land, int]], init=False
    )
    """The last landing of each queue, and how often in a row it found another tip than expected."""
    _landing_reads: WeakKeyDictionary[QueueActor, tuple[int, Instant]] = field(
        default_factory=WeakKeyDictionary[QueueActor, tuple[int, Instant]], init=False
    )
    """The last landing of each queue whose pull requests this process read, and when the read began."""

    def on_change(self, queue_actor: QueueActor, _: Queue | None) -> None:
        for task in pending_tasks(queue_actor.queue):
            if (queue_actor.id, task) not in self._running:
                started = self.background.start(self._run_until_done(queue_actor, task))
                if started is not None:
                    self._running[queue_actor.id, task] = started

    def on_lease_lost(self, queue_actor: QueueActor) -> None:
        """Cancels tasks at any point: the replica that takes over reads from the Git host what they have done."""
        for key in [key for key in self._running if key[0] == queue_actor.id]:
            self._running.pop(key).cancel()

    async def _run_until_done(self, queue_actor: QueueActor, task: t.Task) -> None:
        """Every further attempt waits longer. An attempt to which the Git host gave no answer counts for the delay, but
        not as an observation."""
        try:
            attempts = observations = self._count_misses(queue_actor, task)
            longest_delay_ms = MAX_DELAY_MS
            while self._is_pending(queue_actor, task):
                if attempts:
                    await self.clock.sleep(_retry_delay_ms(attempts, longest_delay_ms))
                attempts += 1
                attempt = Attempt(observation=observations + 1)
                await self._attempt(queue_actor, task, attempt)
                observations += attempt.is_answered
                longest_delay_ms = MAX_REFUSED_DELAY_MS if attempt.outcome == "refused" else MAX_DELAY_MS
        finally:
            self.obstacles.forget(queue_actor, task)
            if self._running.get((queue_actor.id, task)) is asyncio.current_task():
                del self._running[queue_actor.id, task]

    def _is_pending(self, queue_actor: QueueActor, task: t.Task) -> bool:
        if queue_actor.is_closed or not self.leases.has_lease(queue_actor.key.repo):
            return False
        return task in pending_tasks(queue_actor.queue)

    def _count_misses(self, queue_actor: QueueActor, task: t.Task) -> int:
        """How often in a row this landing missed. The engine orders every retry as a new task with another number,
        so the delay between them is kept here."""
        before, misses = self._missed_landings.get(queue_actor, (None, 0))
        return misses if isinstance(task, t.Land) and before == replace(task, landing=0) else 0

    def _record_miss(self, queue_actor: QueueActor, task: t.Land, events: tuple[Event, ...]) -> None:
        has_missed = any(isinstance(event, LandingMissed) for event in events)
        misses = 1 + self._count_misses(queue_actor, task) if has_missed else 0
        self._missed_landings[queue_actor] = (replace(task, landing=0), misses)

    async def _attempt(self, queue_actor: QueueActor, task: t.Task, attempt: "Attempt") -> None:
        """Never raises: the task is still pending, and only this loop retries it."""
        name = type(task).__name__
        started = perf_counter()
        try:
            await self._try(queue_actor, task, attempt)
        except LeaseLost as error:
            log.warning("task_result_dropped", queue=str(queue_actor.key), task=name, error=str(error))
        except StoreUnavailable as error:
            log.error("store_unavailable", queue=str(queue_actor.key), task=name, error=str(error))
        except Exception as error:
            log.error("task_failed", queue=str(queue_actor.key), task=name, error=str(error), exc_info=error)
        TASKS.labels(name, attempt.outcome).inc()
        TASK_SECONDS.labels(name).observe(perf_counter() - started)

    async def _try(self, queue_actor: QueueActor, task: t.Task, attempt: "Attempt") -> None:
        try:
            events = await self._collect_events(queue_actor, task, attempt.observation)
        except TASK_ERRORS as error:
            attempt.is_answered = isinstance(error, MergeNotVisible)
            await self._report_obstacle(queue_actor, task, attempt, error)
            return
        attempt.is_answered = True
        try:
            await self._store_result(queue_actor, task, events)
            attempt.outcome = "done"
        except LeaseLost as error:
            log.warning("task_result_dropped", queue=str(queue_actor.key), task=type(task).__name__, error=str(error))
            await retry_until_stored(self.clock, lambda: queue_actor.catch_up(queue_actor.version + 1))
        except RequestRefused:
            if not queue_actor.is_closed:
                raise
        await self._clean_up(queue_actor, task)

    async def _report_obstacle(
        self, queue_actor: QueueActor, task: t.Task, attempt: "Attempt", error: TaskError
    ) -> None:
        if queue_actor.is_closed:
            await self._clean_up(queue_actor, task)
            return
        number = task.number if isinstance(task, t.ReadPullRequest) else None
        event = self.obstacles.record(queue_actor, task, error, number, task=type(task).__name__)
        if isinstance(event, HostRefusing):
            attempt.outcome = "refused"
        await retry_until_stored(self.clock, partial(self._submit, queue_actor, event))

    async def _store_result(self, queue_actor: QueueActor, task: t.Task, events: tuple[Event, ...]) -> None:
        submit = partial(self._submit, queue_actor, *events)
        if not isinstance(task, t.Land):
            await submit()
            return
        # Its result cannot be observed again, so it is submitted until it is stored.
        self._record_miss(queue_actor, task, events)
        await retry_until_stored(self.clock, submit)

    async def _submit(self, queue_actor: QueueActor, *events: Event) -> None:
        await queue_actor.submit(*events, lease_assertion=self.leases.lease_assertion(queue_actor.key.repo))

    async def _collect_events(self, queue_actor: QueueActor, task: t.Task, observation: int) -> tuple[Event, ...]:
        context = await self.repositories.open_context(queue_actor)
        if task not in pending_tasks(queue_actor.queue):
            return ()  # opening the mirror took time, and the task is no longer pending
        with requests_for(_find_purpose(queue_actor.queue, task)):
            events = await self._perform(context, task, observation)
        return (*self.obstacles.clear(queue_actor, task), *events)

    async def _clean_up(self, queue_actor: QueueActor, task: t.Task) -> None:
        if not isinstance(task, t.BuildRun):
            return
        try:
            await test_branches.delete_branch_of_discarded_run(
                await self.repositories.open_context(queue_actor), task.run
            )
        except (*TASK_ERRORS, StoreUnavailable) as error:
            # BranchCleanup deletes the branch later.
            log.warning("test_branch_not_deleted", queue=str(queue_actor.key), run=task.run, error=str(error))

    def _is_read_outdated(self, queue_actor: QueueActor, task: t.Land) -> bool:
        """Whether the pull requests of a decided landing were read long ago, or by another process: before an outage,
        a crash or a change of the leader."""
        landing, began_at = self._landing_reads.get(queue_actor, (None, Instant(0)))
        is_recent = began_at <= self.clock.now() <= began_at + observe.MAX_READ_AGE_MS
        return landing != task.landing or not is_recent

    async def _perform(self, context: RepositoryContext, task: t.Task, observation: int) -> tuple[Event, ...]:
        match task:
            case t.ReadTargetBranch():
                return await observe.read_target_branch(context, self.store, task)
            case t.ReadPullRequest():
                return await observe.read_pull_request(context, self.reader, self.store, task)
            case t.ReadChecks():
                return await observe.read_checks(context, self.forge_checks, self.store, task)
            case t.BuildRun():
                return await build_run.build_run(context, self.store, task)
            case t.DeleteBranch():
                return await test_branches.delete_test_branch(context, task)
            case t.RebaseLanding():
                return await land.rebase_landing(context, task)
            case t.ReadPullRequests():
                self._landing_reads[context.queue_actor] = task.landing, self.clock.now()
                return await observe.read_landing_pull_requests(context, self.reader, task)
            case t.Land(landing_method=LandingMethod.PROVIDER_MERGE):
                return await provider_merge.merge_one_by_one(context, task, self.clock, observation)
            case t.Land():
                return await land.land(
                    context, task, self.clock, lambda: self._is_read_outdated(context.queue_actor, task)
                )
            case _:
                assert_never(task)


def _find_purpose(queue: Queue, task: t.Task) -> RequestPurpose:
    """Only what can merge now may spend the last requests: reads of pull requests that only wait can cost all of
    them."""
    match task:
        case t.ReadPullRequest():
            submission = queue.submission_of(task.number)
            can_merge_now = submission is not None and submission.id in queue.submission_ids_under_test
        case t.ReadTargetBranch():
            can_merge_now = bool(queue.submission_ids_under_test)
        case _:
            can_merge_now = True
    if can_merge_now:
        return RequestPurpose.MERGING
    return RequestPurpose.WAITING


def _retry_delay_ms(attempt: int, longest_ms: int) -> int:
    """Exponential backoff with jitter, so that tasks that failed together do not retry together."""
    longest = min(longest_ms, MIN_DELAY_MS * 2 ** min(attempt, 10))
    return random.randint(longest // 2, longest)


WAKEUP_RETRY_DELAY_MS = 1000


@dataclass(eq=False)
class Wakeups:
    clock: Clock
    _timers: dict[QueueActor, tuple[Instant, asyncio.Task[None]]] = field(default_factory=dict, init=False)

    def on_change(self, queue_actor: QueueActor, _: Queue | None) -> None:
        """Never postpones a timer: an early wakeup only costs a decision that changes nothing."""
        if queue_actor.wake_at is not None:
            self._schedule(queue_actor, queue_actor.wake_at)

    def on_lease_lost(self, queue_actor: QueueActor) -> None:
        _, timer = self._timers.pop(queue_actor, (None, None))
        if timer is not None:
            timer.cancel()

    def stop(self) -> None:
        for queue_actor in tuple(self._timers):
            self.on_lease_lost(queue_actor)

    def _schedule(self, queue_actor: QueueActor, at: Instant) -> None:
        due, timer = self._timers.get(queue_actor, (None, None))
        if due is not None and timer is not None and not timer.done():
            if due <= at:
                return
            timer.cancel()
        self._timers[queue_actor] = (at, asyncio.create_task(self._wake(queue_actor, at)))

    async def _wake(self, queue_actor: QueueActor, at: Instant) -> None:
        await self.clock.sleep(max(0, at - self.clock.now()))
        del self._timers[queue_actor]
        if queue_actor.is_closed:
            return
        try:
            await queue_actor.submit()
        except Exception as error:
            log.error("wakeup_failed", queue=str(queue_actor.key), error=str(error))
            self._schedule(queue_actor, later(self.clock.now(), WAKEUP_RETRY_DELAY_MS))
