"""Plays a script: replicas, host, CI and people in one event loop, first with faults and then without."""

import asyncio
import os
import random
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from random import Random
from typing import Any

from msgspec import to_builtins
from msgspec.structs import asdict

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import QueueState, RunStatus
from mergeyard.domain.tokens import Scope
from mergeyard.engine.explaining import explain
from mergeyard.engine.work import work
from mergeyard.ports.forge import News
from mergeyard.service.turn import Keeper
from mergeyard.sim.checks import Truth
from tests.simulation import script as s
from tests.simulation.answering import SimApi
from tests.simulation.ci import SimCi
from tests.simulation.hosting import Hosting
from tests.simulation.listening import heard
from tests.simulation.objects import Objects
from tests.simulation.origin import Origin
from tests.simulation.people import People
from tests.simulation.replica import Premises, SimReplica
from tests.simulation.timing import VirtualLoop
from tests.simulation.weather import Family, Weather
from tests.support.host_log import TEST_BRANCHES

ROUNDS_OF_REST = 60
SECONDS_BETWEEN_LOOKS = 15
ROUNDS_TO_SEE = 5
"""The minute within which the state is right, however the host failed before, and what a look takes then."""
SECONDS_FOR_PHASES = 20
"""Whoever waits for a phase of the queue that does not come by then does nothing."""


class World:
    def __init__(self, script: s.Script) -> None:
        self.script = script
        self.loop = VirtualLoop()
        self.rng = Random(script.seed)
        self.weather = Weather(self.rng, self.phase)
        self.truth = Truth()
        self.origin = Origin(Objects(), _files(script))
        self.hosting = Hosting(self.origin, self._spread)
        self.hosting.is_wanted = self._is_wanted
        self.premises = Premises(
            self.loop, self.hosting, self.weather, has_forge=script.has_forge, shared=script.replicas > 1
        )
        self.replicas = list[SimReplica]()
        self.errors = list[str]()
        self._tasks = set[asyncio.Task[None]]()
        self.tips_seen = dict[Sha, int]()
        """Of the target, by our queue, and how many moves there had been when it first saw them."""
        self._waiting = list[s.Act]()

    def play(self) -> None:
        with _chance(self.script.seed), heard(self.errors):
            self.loop.run_until_complete(self._play())

    def close(self) -> None:
        self.loop.close()

    async def _play(self) -> None:
        self.replicas = [SimReplica(self.premises, self._watch) for _ in range(self.script.replicas)]
        for replica in self.replicas:
            await replica.start()
        _, token = await self.replicas[0].service.tokens.create("people", frozenset(Scope))
        self.api = SimApi(self.origin, self._doors, token, self.loop)
        to_host = self.script.has_forge
        self.ci = SimCi(
            self.hosting,
            self.truth,
            self.weather,
            self.rng,
            self.script.statuses,
            None if to_host else self.api,
            self.begin,
        )
        self.people = People(self.hosting, self.api, self.ci, self.truth, self.script.nature)
        self.origin.watchers.append(self.ci.look)
        await self.api.insist("createQueue", **_wire(self.script))
        await self._eventful_time()
        await self._fair_time()

    # The eventful time.

    async def _eventful_time(self) -> None:
        for act in self.script.acts:
            self.loop.call_later(act.at / 1000, lambda act=act: self.begin(self._await_phase(act)))
        last = max((act.at + getattr(act, "for_ms", 0) for act in self.script.acts), default=0)
        await asyncio.sleep(last / 1000 + 1)
        await asyncio.sleep(SECONDS_FOR_PHASES if any(act.during for act in self.script.acts) else 0)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.errors.append(f"{type(error).__name__}: {error}")

    def _watch(self, keeper: Keeper, _: Queue | None) -> None:
        """Whoever waits for a phase of the queue is told of every turn."""
        if keeper.queue.target.tip is not None:
            self.tips_seen.setdefault(keeper.queue.target.tip, len(self.origin))
        if self._waiting:
            phase = self.phase()
            due = [act for act in self._waiting if act.during == phase]
            self._waiting = [act for act in self._waiting if act.during != phase]
            for act in due:
                self.loop.call_later(act.lag / 1000, lambda act=act: self.begin(self._perform(act)))

    async def _await_phase(self, act: s.Act) -> None:
        if act.during and act.during != self.phase():
            self._waiting.append(act)
        else:
            await self._perform(act)

    async def _perform(self, act: s.Act) -> None:
        if act.family is not None and act.family in self.script.families:
            self.weather.note(act.family)
        match act:
            case s.Kill():
                await self._kill(act)
            case s.Freeze():
                await self._freeze(act)
            case s.JumpClock():
                await self._jump(act)
            case s.Trouble():
                self.weather.begin(act.of, act.percent)
                await asyncio.sleep(act.for_ms / 1000)
                self.weather.end(act.of, act.percent)
            case _:
                await self.people.perform(act)

    async def _kill(self, act: s.Kill) -> None:
        replica = self._replica(act.replica)
        if replica.process.alive:
            replica.kill(loses_its_disk=act.loses_its_disk)
            await asyncio.sleep(act.for_ms / 1000)
            self.loop.create_task(replica.start_again())

    async def _freeze(self, act: s.Freeze) -> None:
        process = self._replica(act.replica).process
        if not process.frozen:
            process.freeze()
            await asyncio.sleep(act.for_ms / 1000)
            process.thaw()

    async def _jump(self, act: s.JumpClock) -> None:
        clock = self._replica(act.replica).clock
        clock.wrong_by += act.by_ms
        await asyncio.sleep(act.for_ms / 1000)
        clock.wrong_by -= act.by_ms

    def _replica(self, which: int) -> SimReplica:
        return self.replicas[which % len(self.replicas)]

    def _doors(self) -> list[Any]:
        return [replica.door for replica in self.replicas if replica.answers]

    def _spread(self, news: News) -> None:
        """Messages of the host reach some replica, if they reach any."""
        if not self.script.has_forge:
            return
        odd = self.weather.strikes(Family.LOST_NEWS)
        times = self.rng.choice((0, 0, 1, 2)) if odd else 1
        for _ in range(times):
            delay = self.rng.random() * (600 if odd else 1)
            self.loop.call_later(delay, self._hear, news)

    def _hear(self, news: News) -> None:
        up = [replica for replica in self.replicas if replica.answers]
        if up:
            self.rng.choice(up).service.news.look_into([news])

    # The fair time.

    async def _fair_time(self) -> None:
        self.weather.clear_up()
        self._waiting.clear()
        for replica in self.replicas:
            replica.process.thaw()
            replica.clock.wrong_by = 0
            self.loop.create_task(replica.start_again())
        for rounds in range(1, ROUNDS_OF_REST + 1):
            self.ci.test_anew(self._awaited_tips())
            self._resume()
            if rounds > 1:
                self._say_what_nobody_said()
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            if self.at_rest() and (rounds >= ROUNDS_TO_SEE or not self.unseen()):
                return
        self.errors.append(f"it does not come to rest in a fair world: {self.unrest()}")

    def _awaited_tips(self) -> list[Sha]:
        """Of runs that are in progress."""
        queue = self.queue
        return [] if queue is None else [run.tip for run in queue.runs.values() if run.status is RunStatus.IN_PROGRESS]

    def _resume(self) -> None:
        if self.queue is not None and self.queue.state in (QueueState.PAUSED, QueueState.DRAINING):
            self.begin(self.people.perform(s.SetState(at=0, state=QueueState.RUNNING)))

    def _say_what_nobody_said(self) -> None:
        """What somebody did say, and got an answer to, a queue that needs it knows by now."""
        queue = self.queue
        if queue is None:
            return
        uploads = [answer.told for answer in self.people.api.answers if answer.path == "setImpactedTargets"]
        said = {(told["prNumber"], told["prSha"]) for told in uploads}
        for stay in _unsaid(queue):
            if queue.config.mode is Mode.PARALLEL and (stay.number, stay.pull.head) in said:
                self.errors.append(f"what #{stay.number} impacts was said, and is forgotten")
            self.begin(self.people.perform(s.Upload(at=0, pr=stay.number)))

    def at_rest(self) -> bool:
        return not self.unrest()

    def unrest(self) -> list[str]:
        """What is still under way."""
        keeper = self._keeper
        if keeper is None:
            return ["nobody knows the queue"]
        queue = keeper.queue
        branches = [ref for ref in self.origin.refs if ref.startswith(TEST_BRANCHES)]
        people = [str(task.get_coro()) for task in self._tasks]
        runs = [f"{run.id} {run.status}" for run in queue.runs.values() if run.active]
        waiting = [f"#{stay.number} waits" for stay in queue.submissions.values() if _waits_for_time(queue, stay)]
        unsaid = [f"nobody said what #{stay.number} impacts" for stay in _unsaid(queue)]
        state = [queue.state] if queue.state is not QueueState.RUNNING else []
        lost = ["the host is lost"] if queue.host_lost_at is not None else []
        stored = self.premises.records.queues[keeper.id].version
        unheard = [f"of {stored} turns {keeper.version} are known"] if keeper.version != stored else []
        return [*branches, *people, *runs, *waiting, *unsaid, *map(str, work(queue)), *state, *lost, *unheard]

    def unseen(self) -> list[Submission]:
        """Whom the queue still has as they were before somebody closed them or pushed to them."""
        assert self.queue, "nobody knows the queue"
        pulls = [(stay, self.hosting.pulls[stay.number]) for stay in self.queue.submissions.values()]
        return [stay for stay, pull in pulls if not pull.is_open or pull.head != stay.pull.head]

    @property
    def queue(self) -> Queue | None:
        return None if self._keeper is None else self._keeper.queue

    @property
    def _keeper(self) -> Keeper | None:
        """Of whoever works for it, else of whoever knows most of it."""
        keepers = [
            (replica.service.duties.covers(keeper.key.repo), keeper.version, keeper)
            for replica in self.replicas
            for keeper in replica.service.yard
            if replica.process.alive
        ]
        return max(keepers, key=lambda known: known[:2])[2] if keepers else None

    def _is_wanted(self, number: PrNumber) -> bool:
        """While nobody is there, whoever comes will finish what is intended."""
        queue = self.queue
        landing = None if queue is None else queue.landing
        intended = landing.members if landing is not None and landing.intended else ()
        return queue is None or number in {member.number for member in intended}

    def phase(self) -> str:
        """What the queue is about, the rarest first."""
        queue = self.queue
        if queue is None:
            return "starting"
        statuses = {run.status for run in queue.runs.values()}
        if queue.landing is not None:
            return "landing"
        if queue.bisections:
            return "bisecting"
        if RunStatus.PREPARING in statuses:
            return "building"
        if RunStatus.IN_PROGRESS in statuses:
            return "testing"
        return "waiting" if queue.submissions else "idle"


def _unsaid(queue: Queue) -> list[Submission]:
    """Those of which nobody said, for their present heads, what they impact."""
    return [stay for stay in queue.submissions.values() if stay.targets is None]


def _waits_for_time(queue: Queue, stay: Submission) -> bool:
    return explain(queue, stay).reason is Reason.WAITING_FOR_BATCH


@contextmanager
def _chance(seed: int) -> Generator[None]:
    """All chance in the service comes from the seed: how long it backs off, and the names that it makes up."""
    names, urandom = Random(seed), os.urandom
    random.seed(seed)
    os.urandom = names.randbytes
    try:
        yield
    finally:
        os.urandom = urandom


def _files(script: s.Script) -> dict[str, str]:
    statuses = ", ".join(f'"{status}"' for status in script.statuses)
    files = {"README": "hello", ".mergeyard.toml": f"version = 1\nrequired_statuses = [{statuses}]\n"}
    return files | ({"breakage": "broken"} if script.nature.base_is_broken else {})


def _wire(script: s.Script) -> dict[str, Any]:
    return {_camel(name): to_builtins(value) for name, value in asdict(script.config).items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
