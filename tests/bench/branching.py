"""Builds the test branch for the tenth pull request: as the service does it, and with two plain calls of git."""

import asyncio
import subprocess
from pathlib import Path
from statistics import median
from time import perf_counter
from uuid import UUID

import uvloop
from msgspec.structs import replace

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.git_cli.commits import Committer
from mergeyard.adapters.git_cli.mirror import CliMirror
from mergeyard.adapters.git_cli.opening import GitCli, place
from mergeyard.adapters.git_cli.process import Processes
from mergeyard.adapters.git_cli.repository import Repository
from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.events import RunBuilt
from mergeyard.domain.ids import PrNumber, QueueId, RunId, Sha, Ticket
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.runs import Member
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.domain.tasks import BuildRun
from mergeyard.ports.git import Mirror, Pushed, PushOutcome, RefUpdate
from mergeyard.ports.host import ChecksFrom
from mergeyard.service.performing import building
from mergeyard.service.site import Site
from mergeyard.service.turn import Keeper
from tests.bench.grounds import ENVIRONMENT, Grounds
from tests.support.builders import a_run

TENTH = 10
STACK = 50
REPO = Repo("git.local", "acme", "app")
ADA = Committer("Ada", "ada@example.org")
SIGNED = {f"GIT_{role}_{what}": "ada@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def measure(folder: Path, files: tuple[int, int], repetitions: int) -> dict[str, float]:
    """Milliseconds of the best of many. Each comes round again and again, so that noise meets them all alike."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(folder, files, repetitions))


async def _measure(folder: Path, files: tuple[int, int], repetitions: int) -> dict[str, float]:
    among_few, among_many = [await Slipway.laid(folder / str(count), count) for count in files]
    plain, few, many, pushed = (list[float]() for _ in range(4))
    for _ in range(repetitions):
        plain.append(among_few.plain())
        few.append(await among_few.unpushed())
        many.append(await among_many.unpushed())
        pushed.append(await among_few.pushed())
    stacked = await among_few.stacked()
    return {
        "stack_of_50_ms": sum(stacked),
        "stack_of_50_over_plain_git": median(stacked) / median(plain),
        "stack_last_ten_over_first_ten": median(stacked[-TENTH:]) / median(stacked[:TENTH]),
        "plain_git_ms_20k": min(plain),
        "branch_ms_20k": min(few),
        "branch_ms_100k": min(many),
        "branch_pushed_ms_20k": min(pushed),
        "branch_over_plain_git": min(few) / min(plain),
        "branch_100k_over_20k": min(many) / min(few),
    }


class Slipway:
    """Nine pull requests are built upon each other; upon them the tenth is built, again and again."""

    def __init__(self, host: PlainHost, mirror: CliMirror, path: Path) -> None:
        self._path = path
        self._host = host
        self._mirror = mirror
        self._aground = Aground(Repository(path, Processes()), mirror.remote, ADA, asyncio.Lock())
        self._base = self._onto = Sha("")
        self._runs = 0

    @classmethod
    async def laid(cls, folder: Path, files: int) -> "Slipway":
        Grounds(folder / REPO.owner / f"{REPO.name}.git", files, ("main",), TENTH + STACK).write()
        host = PlainHost(REPO.host, folder, ChecksFrom.API)
        mirror = await GitCli(folder / "mirrors", ADA).mirror(str(REPO), await host.remote(REPO))
        slipway = cls(host, mirror, place(folder / "mirrors", str(REPO)))
        await slipway._lay()
        return slipway

    async def _lay(self) -> None:
        refs = await self._mirror.fetch(["refs/heads/main", self._host.every_head_ref])
        heads = {PrNumber(number): refs[f"refs/pull/{number}/head"] for number in range(1, TENTH + STACK + 1)}
        self._base = self._onto = refs["refs/heads/main"]
        members = [Member(Ticket(number), number, head) for number, head in heads.items()]
        nine, self._tenth, self._fifty = members[: TENTH - 1], members[TENTH - 1], members[TENTH:]
        self._onto = (await self._build(self._aground, *nine)).steps[-1].commit

    async def pushed(self) -> float:
        return await self._time(self._mirror)

    async def unpushed(self) -> float:
        return await self._time(self._aground)

    async def stacked(self) -> list[float]:
        """Milliseconds of a run for each of fifty, one upon the other: what is beneath is there already."""
        above, times = self._onto, list[float]()
        for member in self._fifty:
            begun = perf_counter()
            self._onto = (await self._build(self._aground, member)).steps[-1].commit
            times.append(1000 * (perf_counter() - begun))
        self._onto = above
        return times

    async def _time(self, mirror: Mirror) -> float:
        begun = perf_counter()
        await self._build(mirror, self._tenth)
        return 1000 * (perf_counter() - begun)

    def plain(self) -> float:
        """A new message each time, because git does not write a commit that is there already."""
        self._runs += 1
        begun = perf_counter()
        tree = self._git("merge-tree", "--write-tree", self._onto, self._tenth.head)
        self._git("commit-tree", "-p", self._onto, "-p", self._tenth.head, "-m", f"Merge {self._runs}", tree)
        return 1000 * (perf_counter() - begun)

    def _git(self, *arguments: str) -> str:
        command = ["git", f"--git-dir={self._path}", *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=ENVIRONMENT | SIGNED)
        return done.stdout.strip()

    async def _build(self, mirror: Mirror, *members: Member) -> RunBuilt:
        """A run of its own each time, and with it a branch of its own."""
        self._runs += 1
        run = replace(a_run(*(member.number for member in members)), id=RunId(str(UUID(int=self._runs))))
        queue = Queue(id=QueueId("bench"), target=TargetBranch(name="main"), runs={run.id: run})
        keeper = Keeper(QueueKey(REPO, "main"), queue, 0, SqliteStore(self._path / "none"), WallClock())
        task = BuildRun(
            run=run.id,
            onto=self._onto,
            base=self._base,
            beneath=(),
            members=members,
            method=MergeMethod.MERGE_COMMIT,
            forbidden=frozenset(),
        )
        (built,) = await building.build(Site(keeper, self._host, mirror), task)
        assert isinstance(built, RunBuilt), built
        return built


class Aground(CliMirror):
    """A mirror whose pushes go nowhere: what they cost depends on the host, and not on us."""

    async def push(self, *updates: RefUpdate) -> PushOutcome:  # noqa: ARG002
        return Pushed()
