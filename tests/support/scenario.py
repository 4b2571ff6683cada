"""Tells stories through the whole service: real git, a real store, a CI that speaks when told to, a hand-moved clock.

async with a_scenario(tmp_path) as scenario:
    scenario.open(1, 2)
    await scenario.submit(1, 2)
    assert scenario.picture == "main ← 1… ← 2…"
    await scenario.passes(1)
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from mergeyard.adapters.git_cli.commits import Committer
from mergeyard.adapters.git_cli.opening import GitCli
from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.adapters.runner_local.runner import LocalRunner
from mergeyard.adapters.sealing import FileSeals
from mergeyard.domain.config import Config
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.pulls import Submission
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.runs import Run
from mergeyard.domain.sessions import NOTHING_GRANTED, Grants
from mergeyard.domain.states import QueueState, RunStatus
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.domain.targets import Targets
from mergeyard.engine.picture import picture
from mergeyard.ports.foretelling import Foreteller
from mergeyard.ports.host import ChecksFrom, Host
from mergeyard.service.naming_branches import branch_ref, test_branch
from mergeyard.service.service import Service
from mergeyard.service.submissions import Errand, Wish
from mergeyard.service.turn import Keeper
from mergeyard.service.views import PullView, QueueView
from mergeyard.service.written_targets import written
from tests.support.clock import HandClock
from tests.support.repositories import Files, Origin
from tests.support.sender import FakeSender
from tests.support.troubled_store import TroubledStore

REPO = Repo("git.local", "acme", "app")
KEY = QueueKey(REPO, "main")
CONFIG = 'version = 1\nrequired_statuses = ["unit"]\n'
SECOND = 1000
MINUTE = 60 * SECOND
WAIT_FOR_NEWS = {"LocalRunner.next_result", "ObjectReader._answer_all", "mark_merged", "Marking.tell"}
"""The last two for tasks of their own, which are busy themselves."""
MOMENT = 5
"""In rounds of the event loop."""
PATIENCE_IN_SECONDS = 30
"""Of real time: for git to do what it was asked."""
LOOK_EVERY = 0.1
"""Seconds of real time. Who ends or falls asleep is noticed at once, but not who begins to wait for news."""


class Stage(Struct, frozen=True):
    """What a story is played on."""

    rules: str = CONFIG
    checks: ChecksFrom = ChecksFrom.API
    look_every: int = SECOND
    """A story about hours looks at the repository less often than the service does."""
    grants: Grants = NOTHING_GRANTED
    foreteller: Foreteller | None = None


class Scenario:
    host_name = REPO.host
    """As the settings call it: another one counts from the next start on."""

    def __init__(self, folder: Path, stage: Stage) -> None:
        self.folder = folder
        self.stage = stage
        self.clock = HandClock()
        self.origin = self._new_origin()
        self.origin.commit("main", {".mergeyard.toml": stage.rules, "README": "hello\n"})
        self.sender = FakeSender()
        self.store = self._new_store()
        self.service = self._new_service()

    def _new_origin(self) -> Origin:
        return Origin.made(self.folder / "repos" / "acme" / "app.git")

    def _new_host(self) -> Host:
        return PlainHost(self.host_name, self.folder / "repos", self.stage.checks)

    def _new_store(self) -> TroubledStore:
        return TroubledStore(self.folder / "data" / "mergeyard.db")

    def _new_service(self) -> Service:
        git = GitCli(self.folder / "mirrors", Committer("Mergeyard", "mergeyard@example.org"))
        host = self._new_host()

        async def check_out(repo: Repo, commit: Sha, folder: str) -> None:
            await (await git.mirror(str(repo), await host.remote(repo))).export(commit, folder)

        return Service(
            store=self.store,
            clock=self.clock,
            git=git,
            hosts={host.name: host},
            runner=LocalRunner(self.folder / "checks", 2, check_out),
            sender=self.sender,
            seals=FileSeals(self.folder / "sealing.key"),
            public_url="http://yard.example",
            look_every=self.stage.look_every,
            grants=self.stage.grants,
            foreteller=self.stage.foreteller,
        )

    # What people do at the host.

    def open(self, *numbers: int, upon: str = "main", files: Files | None = None) -> None:
        for number in numbers:
            branch = f"feature{number}"
            self.origin.branch(branch, upon=upon, files=files or {f"file{number}": f"{number}\n"})
            self.set_pull(number, head=self.origin.tip(branch), branch=branch)

    def set_pull(self, number: int, *, head: Sha | None = None, **changes: object) -> None:
        """Its head, or any member of its data: title, author, base, branch, draft, state."""
        new = {"title": f"Change {number}", "author": "Ada", "base": "main", "draft": False, "state": "open"}
        meta = self.pull(number) if self.origin.ref(f"refs/pull/{number}/meta") else new
        self.origin.set(f"refs/pull/{number}/meta", self.origin.blob(json.dumps({**meta, **changes})))
        if head is not None:
            self.origin.set(f"refs/pull/{number}/head", head)

    def push(self, number: int, files: Files) -> None:
        self.set_pull(number, head=self.origin.commit(f"feature{number}", files))

    # What people ask of the queue.

    async def create_queue(self, config: Config | None = None, key: QueueKey = KEY) -> None:
        await self.service.queues.create(key, config or Config(), "ada", _nothing, None)

    async def update(self, *, state: QueueState | None = None, **settings: Any) -> None:
        await self.change(state=state, **settings)
        await self.rest()

    async def change(self, *, state: QueueState | None = None, **settings: Any) -> None:
        """Changes settings or state, and waits for nothing but the answer."""
        await self.service.queues.update(KEY, settings, state, "ada", _nothing, None)

    async def submit(self, *numbers: int, **wishes: Any) -> None:
        """One after the other, so that they stand in this order."""
        for number in numbers:
            await self.hand_in(number, **wishes)
            await self.rest()

    async def hand_in(self, *numbers: int, **wishes: Any) -> None:
        """Submits, and waits for nothing but the answer."""
        for number in numbers:
            await self.service.submissions.submit(self.errand(number), Wish(**wishes))

    async def cancel(self, number: int) -> None:
        await self.service.submissions.cancel(self.errand(number))
        await self.rest()

    async def restart_tests(self, number: int) -> None:
        await self.service.submissions.restart(self.errand(number))
        await self.rest()

    async def set_targets(self, number: int, targets: Targets) -> None:
        await self.service.uploads.take(KEY, PrNumber(number), None, written(targets), lambda _: b"", None)
        await self.rest()

    def errand(self, number: int, key: QueueKey = KEY) -> Errand:
        return Errand(key=key, number=PrNumber(number), actor="ada", present=_nothing)

    # What CI says.

    async def passes(self, *numbers: int, check: str = "unit") -> None:
        await self.report(self.run_of(*numbers).tip, StatusState.SUCCESS, check)

    async def fails(self, *numbers: int, check: str = "unit") -> None:
        await self.report(self.run_of(*numbers).tip, StatusState.FAILURE, check)

    async def report(self, commit: Sha, state: StatusState, check: str = "unit") -> None:
        await self.hear(commit, state, check)
        await self.rest()

    async def judges(self, *guilty: int) -> None:
        """A verdict on all that is tested, until nothing is: red with any of the guilty in it, green without."""
        while runs := self.runs():
            red = any(member.number in guilty for member in runs[0].stack)
            await self.report(runs[0].tip, StatusState.FAILURE if red else StatusState.SUCCESS)

    async def hear(self, commit: Sha, state: StatusState = StatusState.SUCCESS, check: str = "unit") -> None:
        """Takes a status in, and waits for nothing but the answer."""
        await self.service.statuses.report(REPO, commit, Status(context=check, state=state, at=self.clock.now()))

    # What time and chance do.

    async def time_passes(self, milliseconds: int) -> None:
        """Alarm by alarm, and everything that an alarm sets off is done before the next one rings."""
        end = Instant(self.clock.now() + milliseconds)
        while (alarm := self.clock.next_alarm()) is not None and alarm <= end:
            self.clock.move_to(alarm)
            await self.rest()
        self.clock.move_to(end)
        await self.rest()

    async def starts_again(self) -> None:
        """The process ends where it stands, and another one begins with what was stored."""
        await self.service.stop()
        await self.starts()

    async def starts(self) -> None:
        """Another process begins with what was stored."""
        self.store = self._new_store()
        self.service = self._new_service()
        await self.service.start()
        await self.rest()

    async def rest(self) -> None:
        """Until nothing is under way that does not wait for the clock or for news from outside."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_IN_SECONDS
        while busy := await self._busy_for_a_moment():
            ends = {*busy, self.clock.next_to_sleep()}
            await asyncio.wait(ends, timeout=LOOK_EVERY, return_when=asyncio.FIRST_COMPLETED)
            assert asyncio.get_running_loop().time() < deadline, f"it does not come to rest: {busy}"

    async def _busy_for_a_moment(self) -> list[asyncio.Task[Any]]:
        """Whoever waits for news may just have got some, and takes a moment to begin something with it."""
        for _ in range(MOMENT):
            if busy := self._busy():
                return busy
            await asyncio.sleep(0)
        return []

    def _busy(self) -> list[asyncio.Task[Any]]:
        others = asyncio.all_tasks() - self.clock.asleep - {asyncio.current_task()}
        return [task for task in others if WAIT_FOR_NEWS.isdisjoint(_names(task))]

    # What there is to see.

    @property
    def keeper(self) -> Keeper:
        (keeper,) = [keeper for keeper in self.service.yard if keeper.key == KEY]
        return keeper

    @property
    def picture(self) -> str:
        return picture(self.keeper.queue)

    def runs(self) -> list[Run]:
        return [run for run in self.keeper.queue.runs.values() if run.status is RunStatus.IN_PROGRESS]

    def run_of(self, *numbers: int) -> Run:
        """The run in progress that tests exactly these; none: the one that tests the target itself."""
        (run,) = [run for run in self.runs() if tuple(member.number for member in run.tested) == numbers]
        return run

    async def stay(self, number: int) -> Submission:
        return (await self.view(number)).stay

    async def view(self, number: int) -> PullView:
        return await self.service.stays.show(KEY, PrNumber(number))

    async def state(self, number: int) -> str:
        """With its reason, e.g. `failed: test_run_failed`."""
        view = await self.view(number)
        return f"{view.stay.state}: {view.why.code}"

    def pull(self, number: int) -> dict[str, object]:
        """Its data, as the host has it."""
        return json.loads(self.origin.run("cat-file", "blob", f"refs/pull/{number}/meta"))

    def branch_of(self, *numbers: int) -> str:
        return branch_ref(test_branch(self.run_of(*numbers)))

    def test_branches(self) -> list[str]:
        return [ref for ref in self.origin.refs() if ref.startswith("refs/heads/mergeyard/")]


def _names(task: asyncio.Task[Any]) -> set[str]:
    """Of everything that it is in the middle of."""
    names, awaited = set[str](), task.get_coro()
    while awaited is not None:
        names.add(getattr(awaited, "__qualname__", ""))
        awaited = getattr(awaited, "cr_await", None)
    return names


def _nothing(_: PullView | QueueView) -> bytes:
    return b""


@asynccontextmanager
async def a_scenario(
    folder: Path, config: Config | None = None, stage: Stage | None = None
) -> AsyncGenerator[Scenario]:
    scenario = Scenario(folder, stage or Stage())
    await scenario.service.start()
    await scenario.create_queue(config)
    await scenario.rest()
    try:
        yield scenario
    finally:
        await scenario.service.stop()
