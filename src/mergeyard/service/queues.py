"""What operators do with queues: create, read, change, delete."""

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from mergeyard.domain.config import Config, LandingMethod
from mergeyard.domain.decision import Decision
from mergeyard.domain.events import Event, SettingsSaved, StateRequested
from mergeyard.domain.ids import QueueId
from mergeyard.domain.journal import QueueCreated, QueueDeleted
from mergeyard.domain.landing import Landed
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.states import QueueState
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.domain.tokens import Token
from mergeyard.engine.decide import decide
from mergeyard.ports.host import Host
from mergeyard.ports.store import AppendEntries, CreateQueue, DeleteQueue, Taken
from mergeyard.service import journaling, shelving
from mergeyard.service.errors import Code, Refused
from mergeyard.service.performing.looking import required_statuses
from mergeyard.service.repeating import Repeat
from mergeyard.service.site import Site, Sites
from mergeyard.service.turn import Keeper, Rejected
from mergeyard.service.views import QueueView, view_queue
from mergeyard.service.yard import Yard

Present = Callable[[QueueView], bytes]


class Queues:
    def __init__(self, yard: Yard, sites: Sites) -> None:
        self._yard = yard
        self._sites = sites

    async def create(self, key: QueueKey, config: Config, actor: str, present: Present, repeat: Repeat | None) -> bytes:
        host = self._sites.host(key.repo.host)
        if self._yard.find(key) is not None:
            raise _already_exists(key)
        _check_landing(host, config)
        if not await host.knows(key.repo):
            raise Refused(Code.REPOSITORY_NOT_FOUND, f"{key.repo} is not there: check its owner and name.")
        now = self._yard.clock.now()
        blank = Queue(
            id=QueueId(str(uuid.uuid4())), target=TargetBranch(name=key.branch), config=config, mode=config.mode
        )
        keeper = Keeper(key, blank, 0, self._yard.store, self._yard.clock)
        begun = replace(blank, target=await self._first_look(Site(keeper, host, await self._sites.mirror(key.repo))))
        decision = decide(begun, (), now)
        body = present(QueueView(key=key, queue=decision.queue))
        created = journaling.entry_about_queue(blank.id, QueueCreated(at=now, actor=actor))
        writes = (
            CreateQueue(blank.id, key, now),
            shelving.changes(blank, decision.queue, 1, (), ()),
            AppendEntries((created, *journaling.entries(begun, decision))),
        )
        try:
            await self._yard.store.commit(*writes, *(() if repeat is None else (repeat.kept(body, now),)))
        except Taken:
            raise _already_exists(key) from None
        self._yard.take_in(Keeper(key, decision.queue, 1, self._yard.store, self._yard.clock))
        return body

    async def update(
        self,
        key: QueueKey,
        settings: Mapping[str, Any],
        state: QueueState | None,
        actor: str,
        present: Present,
        repeat: Repeat | None,
    ) -> bytes:
        """All or nothing. Whoever is told that the queue is paused can rely on it: nothing is being pushed any more."""
        keeper = self._yard.keeper(key)

        def consider(queue: Queue) -> list[Event]:
            config = replace(queue.config, **settings)
            if queue.switching and config.mode is not queue.config.mode:
                words = f"The queue for {key} is still changing its mode: wait until it is done, then change it again."
                raise Refused(Code.MODE_SWITCH_IN_PROGRESS, words)
            _check_landing(self._sites.host(key.repo.host), config)
            saved: list[Event] = [SettingsSaved(config=config, actor=actor)] if settings else []
            return saved if state is None else [*saved, StateRequested(state=state, actor=actor)]

        def render(decision: Decision) -> bytes:
            return present(QueueView(key=key, queue=decision.queue))

        pausing = state is QueueState.PAUSED
        try:
            answer = await keeper.tell_considering(consider, render, None if pausing else repeat)
        except Rejected as rejected:
            raise Refused(Code.MODE_SWITCH_IN_PROGRESS, str(rejected)) from None
        if pausing:
            await _outcome_of_landing(keeper)
            await self._keep_answer(repeat, answer)
        return answer

    async def _keep_answer(self, repeat: Repeat | None, answer: bytes) -> None:
        """Not before it may be given: whoever asks again after a crash waits again."""
        if repeat is not None:
            await self._yard.store.commit(repeat.kept(answer, self._yard.clock.now()))

    def show(self, key: QueueKey) -> QueueView:
        keeper = self._yard.keeper(key)
        return view_queue(key, keeper.queue, self._yard.clock.now())

    def seen_by(self, token: Token) -> Iterable[QueueView]:
        for keeper in self._yard:
            if token.sees(keeper.key.repo):
                yield QueueView(key=keeper.key, queue=keeper.queue)

    async def delete(self, key: QueueKey, actor: str, answer: bytes, repeat: Repeat | None) -> bytes:
        keeper = self._yard.keeper(key)
        now = self._yard.clock.now()
        deleted = journaling.entry_about_queue(keeper.id, QueueDeleted(at=now, actor=actor))
        kept = () if repeat is None else (repeat.kept(answer, now),)
        await keeper.retire(DeleteQueue(keeper.id, now), AppendEntries((deleted,)), *kept)
        self._yard.let_go(keeper)
        return answer

    async def _first_look(self, site: Site) -> TargetBranch:
        branch = site.keeper.key.branch
        tip = (await site.mirror.fetch([site.target_ref])).get(site.target_ref)
        if tip is None:
            words = f"{site.repo} has no branch {branch}: push it first, or name another."
            raise Refused(Code.BRANCH_NOT_FOUND, words)
        required = await required_statuses(site, tip)
        return TargetBranch(name=branch, tip=tip, history=(Landed(tip, None),), required=required)


async def _outcome_of_landing(keeper: Keeper) -> None:
    landing = keeper.queue.landing
    if landing is not None and landing.intended:
        number = landing.number
        await keeper.until(lambda queue: queue.landing is None or queue.landing.number != number)


def _check_landing(host: Host, config: Config) -> None:
    if config.landing is LandingMethod.TESTED_COMMIT and not host.lands_tested_commits:
        words = f"{host.name} cannot move two refs in one conditional update: set `landing` to `provider_merge`."
        raise Refused(Code.INVALID_REQUEST, words)


def _already_exists(key: QueueKey) -> Refused:
    return Refused(Code.QUEUE_ALREADY_EXISTS, f"There is a queue for {key} already: change it with updateQueue.")
