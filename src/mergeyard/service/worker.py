"""Does the work that the facts of a queue ask for, sees every task through, and tells the engine what happened.

There is no list of things to do: what is outstanding is read off the queue after every turn and after a restart.
"""

import asyncio
import random
from time import perf_counter
from typing import assert_never
from weakref import WeakKeyDictionary

import structlog
from msgspec.structs import replace

from mergeyard.domain import tasks as t
from mergeyard.domain.config import LandingMethod
from mergeyard.domain.events import ChecksSeen, Event, HostFound, HostLost, LandingMissed
from mergeyard.domain.ids import QueueId
from mergeyard.domain.queue import Queue
from mergeyard.engine.work import work
from mergeyard.ports.clock import Clock
from mergeyard.ports.git import GitTrouble
from mergeyard.ports.host import HostTrouble
from mergeyard.ports.store import Relieved, Store, StoreTrouble
from mergeyard.service.background import Background, insist
from mergeyard.service.duties import Duties
from mergeyard.service.errors import Refused
from mergeyard.service.forge_checks import ForgeChecks
from mergeyard.service.measuring import TASK_SECONDS, TASKS
from mergeyard.service.performing import building, clearing, composing, landing, looking, merging
from mergeyard.service.performing.merging_by_forge import Unseen
from mergeyard.service.sight import Sight
from mergeyard.service.site import Site, Sites
from mergeyard.service.statuses import checks
from mergeyard.service.turn import Keeper

log = structlog.get_logger()

SHORTEST_WAIT = 200
LONGEST_WAIT = 5000


class Worker:
    def __init__(
        self,
        sites: Sites,
        sight: Sight,
        store: Store,
        checks: ForgeChecks,
        clock: Clock,
        background: Background,
        duties: Duties,
    ) -> None:
        self._sites = sites
        self._sight = sight
        self._store = store
        self._checks = checks
        self._clock = clock
        self._background = background
        self._duties = duties
        self._under_way: dict[tuple[QueueId, t.Task], asyncio.Task[None]] = {}
        self._missed = WeakKeyDictionary[Keeper, tuple[t.Land, int]]()

    def follow(self, keeper: Keeper, _: Queue | None) -> None:
        for task in work(keeper.queue):
            if (keeper.id, task) not in self._under_way:
                begun = self._background.start(self._see_through(keeper, task))
                if begun is not None:
                    self._under_way[keeper.id, task] = begun

    def leave(self, keeper: Keeper) -> None:
        """Wherever it is: whoever takes over reads from the host how far it came."""
        for place in [place for place in self._under_way if place[0] == keeper.id]:
            self._under_way.pop(place).cancel()

    async def _see_through(self, keeper: Keeper, task: t.Task) -> None:
        """Until it is outstanding no more; every further attempt waits longer. Whoever got no answer has not looked."""
        try:
            attempt = looks = self._misses(keeper, task)
            while not keeper.closed and self._duties.covers(keeper.key.repo) and task in work(keeper.queue):
                if attempt:
                    await self._clock.sleep(_wait(attempt))
                attempt += 1
                looks += await self._attempt(keeper, task, looks + 1)
        finally:
            if self._under_way.get((keeper.id, task)) is asyncio.current_task():
                del self._under_way[keeper.id, task]

    def _misses(self, keeper: Keeper, task: t.Task) -> int:
        """How often in a row this landing was missed: each attempt is a task of its own, but none may come at once."""
        before, missed = self._missed.get(keeper, (None, 0))
        return missed if isinstance(task, t.Land) and before == _nameless(task) else 0

    def _note_miss(self, keeper: Keeper, task: t.Task, events: tuple[Event, ...]) -> None:
        if isinstance(task, t.Land):
            missed = 1 + self._misses(keeper, task)
            self._missed.pop(keeper, None)
            if any(isinstance(event, LandingMissed) for event in events):
                self._missed[keeper] = (_nameless(task), missed)

    async def _attempt(self, keeper: Keeper, task: t.Task, look: int) -> bool:
        """Whether the host answered, be it that there is nothing to see yet."""
        name, outcome, begun, answered = type(task).__name__, "trouble", perf_counter(), False
        try:
            events = await self._events(keeper, task, look)
            self._note_miss(keeper, task, events)
            answered = True
            await self._tell(keeper, task, events)
            await self._clear_up(keeper, task)
            outcome = "done"
        except Relieved as relieved:
            log.warning("a task was done too late", queue=str(keeper.key), task=name, words=str(relieved))
            await insist(self._clock, lambda: keeper.catch_up(keeper.version + 1))
            await self._clear_up(keeper, task)
        except (GitTrouble, HostTrouble, Refused) as trouble:
            if keeper.closed:
                await self._clear_up(keeper, task)
                return answered
            answered = isinstance(trouble, Unseen)
            log.warning("the host is in trouble", queue=str(keeper.key), task=name, words=str(trouble))
            await insist(self._clock, lambda: self._lose_host(keeper))
        except StoreTrouble as trouble:
            log.error("the store is in trouble", queue=str(keeper.key), words=str(trouble))
        except Exception as error:  # whatever it is: the facts still ask for it, and nobody else would try again
            log.error("a task failed", queue=str(keeper.key), task=name, exc_info=error)
        TASKS.labels(name, outcome).inc()
        TASK_SECONDS.labels(name).observe(perf_counter() - begun)
        return answered

    async def _tell(self, keeper: Keeper, task: t.Task, events: tuple[Event, ...]) -> None:
        """Nobody may see a second time what became of a landing, so that is told until it is stored."""

        async def tell() -> None:
            await keeper.tell_on_duty(*events, proof=self._duties.proof(keeper.key.repo))

        await (insist(self._clock, tell) if isinstance(task, t.Land) else tell())

    async def _events(self, keeper: Keeper, task: t.Task, look: int) -> tuple[Event, ...]:
        site = await self._sites.of(keeper)
        if task not in work(keeper.queue):
            return ()  # while it waited, the queue went on: what it was asked for holds no more
        events = await self._perform(site, task, look)
        return (HostFound(), *events) if keeper.queue.host_lost_at is not None else events

    async def _clear_up(self, keeper: Keeper, task: t.Task) -> None:
        if not isinstance(task, t.BuildRun):
            return
        try:
            await clearing.remove_if_given_up(await self._sites.of(keeper), task.run)
        except (GitTrouble, HostTrouble) as trouble:
            log.warning("a test branch may stay until the next sweep", queue=str(keeper.key), words=str(trouble))

    async def _lose_host(self, keeper: Keeper) -> None:
        await keeper.tell_on_duty(HostLost(), proof=self._duties.proof(keeper.key.repo))

    async def _perform(self, site: Site, task: t.Task, look: int) -> tuple[Event, ...]:
        match task:
            case t.LookAtTarget():
                return await looking.look_at_target(site, self._store, task)
            case t.LookAtPull():
                return await looking.look_at_pull(site, self._sight, self._store, task)
            case t.LookAtChecks():
                return await self._look_at_checks(site, task)
            case t.BuildRun():
                return await building.build(site, task)
            case t.DeleteBranch():
                return await clearing.delete_branch(site, task)
            case t.ExamineHead():
                return await looking.examine(site, self._store, task)
            case t.ComposeLanding():
                return await composing.compose(site, task)
            case t.ReadPulls():
                return await looking.read_pulls(site, self._sight, task)
            case t.Land():
                if task.method is LandingMethod.PROVIDER_MERGE:
                    return await merging.merge_one_by_one(site, task, look)
                return await landing.land(site, task)
            case _:
                assert_never(task)

    async def _look_at_checks(self, site: Site, task: t.LookAtChecks) -> tuple[Event, ...]:
        run = site.keeper.queue.runs.get(task.run)
        if run is None:
            return ()
        as_of = site.keeper.queue.counters.turns
        await self._checks.read(site.keeper.key, run.tip)
        statuses = await self._store.statuses(site.repo, run.tip)
        return (ChecksSeen(run=run.id, checks=checks(statuses), as_of=as_of),)


def _nameless(task: t.Land) -> t.Land:
    return replace(task, landing=0)


def _wait(attempt: int) -> int:
    """Twice as long every time, and never all at once."""
    longest = min(LONGEST_WAIT, SHORTEST_WAIT * 2 ** min(attempt, 10))
    return random.randint(longest // 2, longest)
