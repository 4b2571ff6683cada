"""Creates, reads, updates and deletes queues."""

import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog
from msgspec.structs import replace

from mergeyard.domain.access import Token
from mergeyard.domain.config import Config
from mergeyard.domain.events import CancelRequested, Event, SettingsSaved, StateRequested
from mergeyard.domain.ids import QueueId, QueueKey
from mergeyard.domain.journal import QueueCreated, QueueDeleted
from mergeyard.domain.queue import Decision, LandedCommit, Queue, TargetBranch
from mergeyard.domain.states import QueueState
from mergeyard.engine.decide import decide
from mergeyard.ports.forge import Host
from mergeyard.ports.store import AlreadyExists
from mergeyard.ports.writes import AppendEntries, CreateQueue
from mergeyard.service import audit_log, persistence
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.idempotency import IdempotentRequest, to_response_writes
from mergeyard.service.queue_actor import EventRefused, QueueActor
from mergeyard.service.queue_overview import OverviewReader
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.replica_bus import LeaseReleased, QueueSaved, ReplicaBus
from mergeyard.service.repositories import Repositories, RepositoryContext, read_required_statuses
from mergeyard.service.views import QueueView, view_queue

log = structlog.get_logger()

Present = Callable[[QueueView], bytes]


@dataclass(eq=False)
class Queues:
    registry: QueueRegistry
    repositories: Repositories
    replica_bus: ReplicaBus
    overviews: OverviewReader

    async def create(
        self, key: QueueKey, config: Config, actor: str, present: Present, idempotent_request: IdempotentRequest | None
    ) -> bytes:
        host = self.repositories.get_host(key.repo.host)
        if await self.registry.find(key) is not None:
            raise _queue_already_exists(key)
        _require_supported_landing(host, config)
        if not await host.has_repository(key.repo):
            raise RequestRefused(Code.REPOSITORY_NOT_FOUND, f"{key.repo} does not exist: check its owner and name.")
        now = self.registry.clock.now()
        blank = Queue(
            id=QueueId(str(uuid.uuid4())), target_branch=TargetBranch(name=key.branch), config=config, mode=config.mode
        )
        blank_actor = QueueActor(key, blank, 0, self.registry.store, self.registry.clock)
        context = RepositoryContext(blank_actor, host, await self.repositories.open_mirror(key.repo))
        initial = replace(blank, target_branch=await _read_target_branch(context))
        decision = decide(initial, (), now)
        body = present(QueueView(key=key, queue=decision.queue))
        created = audit_log.build_row(blank.id, QueueCreated(at=now, actor=actor))
        writes = (
            CreateQueue(blank.id, key, now),
            persistence.encode_changes(blank, decision.queue, 1, (), (), now),
            AppendEntries((created, *audit_log.build_decision_rows(initial, decision))),
        )
        try:
            await self.registry.store.commit(*writes, *to_response_writes(idempotent_request, body, now))
        except AlreadyExists:
            raise _queue_already_exists(key) from None
        self.registry.add_created(QueueActor(key, decision.queue, 1, self.registry.store, self.registry.clock))
        self.replica_bus.publish(QueueSaved(key.repo, blank.id, 1))
        self.replica_bus.publish(LeaseReleased())
        log.info("queue_created", **audit_log.describe_action(key, actor))
        return body

    async def update(
        self,
        key: QueueKey,
        settings: Mapping[str, Any],
        state: QueueState | None,
        actor: str,
        present: Present,
        idempotent_request: IdempotentRequest | None,
        state_reason: str = "",
    ) -> bytes:
        """Applies settings and state together, or neither. When the response says that the queue is paused, a push that
        was in progress has ended."""
        queue_actor = await self.registry.get(key)

        def compute_events(queue: Queue) -> list[Event]:
            config = replace(queue.config, **settings)
            if queue.is_switching_modes and config.mode is not queue.config.mode:
                detail = f"The queue for {key} is still changing its mode: wait until that is complete, then try again."
                raise RequestRefused(Code.MODE_SWITCH_IN_PROGRESS, detail)
            _require_supported_landing(self.repositories.get_host(key.repo.host), config)
            saved: list[Event] = [SettingsSaved(config=config, actor=actor)] if settings else []
            if state is None:
                return saved
            return [*saved, StateRequested(state=state, actor=actor, state_reason=state_reason)]

        def render(decision: Decision) -> bytes:
            return present(QueueView(key=key, queue=decision.queue))

        try:
            response = await queue_actor.submit_computed(compute_events, render, idempotent_request)
        except EventRefused as error:
            raise RequestRefused(Code.MODE_SWITCH_IN_PROGRESS, str(error)) from None
        if state is QueueState.PAUSED:
            await self.wait_for_landing(key)
        return response

    async def wait_for_landing(self, key: QueueKey) -> None:
        """Waits until the landing that may be pushed right now has ended. Later ones see the paused state."""
        queue_actor = await self.registry.find(key)
        landing = queue_actor and queue_actor.queue.landing
        if queue_actor and landing and landing.is_intended:
            number = landing.number
            await queue_actor.wait_until(lambda queue: queue.landing is None or queue.landing.number != number)

    async def read(self, key: QueueKey) -> QueueView:
        queue_actor = await self.registry.get(key)
        overviews = await self.overviews.read([queue_actor])
        view = view_queue(key, queue_actor.queue, self.registry.clock.now(), queue_actor.forecast)
        return replace(view, overview=overviews[queue_actor.id])

    async def list_visible(self, token: Token) -> list[QueueView]:
        queue_actors = await self.registry.list_visible(token)
        overviews = await self.overviews.read(queue_actors)
        return [
            QueueView(key=queue_actor.key, queue=queue_actor.queue, overview=overviews[queue_actor.id])
            for queue_actor in queue_actors
        ]

    async def delete(
        self, key: QueueKey, actor: str, response: bytes, idempotent_request: IdempotentRequest | None
    ) -> bytes:
        queue_actor = await self.registry.get(key)
        if key.repo.host not in self.repositories.hosts:
            await _cancel_all(queue_actor, actor)
        now = self.registry.clock.now()
        deleted = audit_log.build_row(queue_actor.id, QueueDeleted(at=now, actor=actor))
        await queue_actor.delete_if_empty(
            now, AppendEntries((deleted,)), *to_response_writes(idempotent_request, response, now)
        )
        self.registry.evict(queue_actor)
        log.info("queue_deleted", **audit_log.describe_action(key, actor))
        return response


async def _read_target_branch(context: RepositoryContext) -> TargetBranch:
    branch = context.queue_actor.key.branch
    tip = await context.fetch_target_tip()
    if tip is None:
        detail = f"{context.repo} has no branch {branch}: push it first, or choose another branch."
        raise RequestRefused(Code.BRANCH_NOT_FOUND, detail)
    required = await read_required_statuses(context, tip)
    return TargetBranch(name=branch, tip=tip, history=(LandedCommit(tip, None),), required_statuses=required)


async def _cancel_all(queue_actor: QueueActor, actor: str) -> None:
    """For a Git host that is no longer configured: its pull requests could never merge, and a queue with pull requests
    cannot be deleted."""
    numbers = [submission.number for submission in queue_actor.queue.submissions.values()]
    with suppress(EventRefused):  # A pull request whose merge may be in progress cannot be canceled.
        await queue_actor.submit(*(CancelRequested(number=number, actor=actor) for number in numbers))


def _require_supported_landing(host: Host, config: Config) -> None:
    detail = host.unsupported_reason(config)
    if detail is not None:
        raise RequestRefused(Code.INVALID_REQUEST, detail)


def _queue_already_exists(key: QueueKey) -> RequestRefused:
    return RequestRefused(Code.QUEUE_ALREADY_EXISTS, f"A queue for {key} already exists: change its settings.")
