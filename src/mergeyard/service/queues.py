"""What operators do with queues: create, read, change, delete."""

import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from mergeyard.domain.config import Config
from mergeyard.domain.decision import Decision
from mergeyard.domain.events import CancelRequested, Event, SettingsSaved, StateRequested
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
from mergeyard.ports.store import Taken
from mergeyard.ports.writes import AppendEntries, CreateQueue
from mergeyard.service import journaling, shelving
from mergeyard.service.errors import Code, Refused
from mergeyard.service.others import DutiesFree, Others, QueueSaved
from mergeyard.service.performing.looking import required_statuses
from mergeyard.service.repeating import Repeat, kept
from mergeyard.service.site import Site, Sites
from mergeyard.service.turn import Keeper, Rejected
from mergeyard.service.views import QueueView, view_queue
from mergeyard.service.yard import Yard

Present = Callable[[QueueView], bytes]


class Queues:
    def __init__(self, yard: Yard, sites: Sites, others: Others) -> None:
        self._yard = yard
        self._sites = sites
        self._others = others

    async def create(self, key: QueueKey, config: Config, actor: str, present: Present, repeat: Repeat | None) -> bytes:
        host = self._sites.host(key.repo.host)
        if await self._yard.find(key) is not None:
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
            shelving.changes(blank, decision.queue, 1, (), (), now),
            AppendEntries((created, *journaling.entries(begun, decision))),
        )
        try:
            await self._yard.store.commit(*writes, *kept(repeat, body, now))
        except Taken:
            raise _already_exists(key) from None
        self._yard.welcome(Keeper(key, decision.queue, 1, self._yard.store, self._yard.clock))
        self._others.tell(QueueSaved(key.repo, blank.id, 1))
        self._others.tell(DutiesFree())
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
        keeper = await self._yard.keeper(key)

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

        try:
            answer = await keeper.tell_considering(consider, render, repeat)
        except Rejected as rejected:
            raise Refused(Code.MODE_SWITCH_IN_PROGRESS, str(rejected)) from None
        if state is QueueState.PAUSED:
            await self.rest(key)
        return answer

    async def rest(self, key: QueueKey) -> None:
        """Until nothing is being pushed that was decided before now."""
        keeper = await self._yard.find(key)
        landing = None if keeper is None else keeper.queue.landing
        if keeper is not None and landing is not None and landing.intended:
            number = landing.number
            await keeper.until(lambda queue: queue.landing is None or queue.landing.number != number)

    async def show(self, key: QueueKey) -> QueueView:
        keeper = await self._yard.keeper(key)
        return view_queue(key, keeper.queue, self._yard.clock.now(), keeper.forecast)

    async def seen_by(self, token: Token) -> list[QueueView]:
        return [QueueView(key=keeper.key, queue=keeper.queue) for keeper in await self._yard.seen_by(token)]

    async def delete(self, key: QueueKey, actor: str, answer: bytes, repeat: Repeat | None) -> bytes:
        keeper = await self._yard.keeper(key)
        if key.repo.host not in self._sites.hosts:
            await _empty(keeper, actor)
        now = self._yard.clock.now()
        deleted = journaling.entry_about_queue(keeper.id, QueueDeleted(at=now, actor=actor))
        await keeper.retire(now, AppendEntries((deleted,)), *kept(repeat, answer, now))
        self._yard.let_go(keeper)
        return answer

    async def _first_look(self, site: Site) -> TargetBranch:
        branch = site.keeper.key.branch
        tip = await site.tip()
        if tip is None:
            words = f"{site.repo} has no branch {branch}: push it first, or name another."
            raise Refused(Code.BRANCH_NOT_FOUND, words)
        required = await required_statuses(site, tip)
        return TargetBranch(name=branch, tip=tip, history=(Landed(tip, None),), required=required)


async def _empty(keeper: Keeper, actor: str) -> None:
    """Whoever waits for a host that is configured no more waits for nothing."""
    numbers = [stay.number for stay in keeper.queue.submissions.values()]
    with suppress(Rejected):  # by those whose merge may be on its way
        await keeper.tell(*(CancelRequested(number=number, actor=actor) for number in numbers))


def _check_landing(host: Host, config: Config) -> None:
    words = host.refuses(config.merge_method, config.landing)
    if words is not None:
        raise Refused(Code.INVALID_REQUEST, words)


def _already_exists(key: QueueKey) -> Refused:
    return Refused(Code.QUEUE_ALREADY_EXISTS, f"There is a queue for {key} already: change it with updateQueue.")
