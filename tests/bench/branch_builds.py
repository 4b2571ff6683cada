"""Measures building the test branch of the tenth pull request: as the service does it, and with two plain git calls."""

import asyncio
import subprocess
from pathlib import Path
from statistics import median
from time import perf_counter
from uuid import UUID

import uvloop
from msgspec.structs import replace

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.git_cli.mirror import CliMirror
from mergeyard.adapters.git_cli.mirrors import GitCli, mirror_path
from mergeyard.adapters.git_cli.process import GitRunner, Repository
from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.events import RunBuilt
from mergeyard.domain.ids import ObjectFormat, PullRequestNumber, QueueId, QueueKey, Repo, RunId, Sha, SubmissionId
from mergeyard.domain.queue import Queue, TargetBranch
from mergeyard.domain.runs import Member
from mergeyard.domain.tasks import BuildRun
from mergeyard.ports.forge import ChecksFrom
from mergeyard.ports.git import Identity, Mirror, Pushed, PushOutcome, RefUpdate, Remote
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.repositories import RepositoryContext
from mergeyard.service.tasks import build_run
from tests.bench.repositories import ENVIRONMENT, BenchRepository
from tests.support.builders import a_run

TENTH = 10
STACKED_RUNS = 50
REPO = Repo("git.local", "acme", "app")
ADA = Identity("Ada", "ada@example.org")
IDENTITY = {f"GIT_{role}_{what}": "ada@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def measure(folder: Path, files: tuple[int, int], repetitions: int) -> dict[str, float]:
    """Milliseconds, best of many. The variants alternate, so that noise affects all of them."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(folder, files, repetitions))


async def _measure(folder: Path, files: tuple[int, int], repetitions: int) -> dict[str, float]:
    small, large = [await BranchBuilder.prepare(folder / str(count), count) for count in files]
    plain, few, many, pushed = (list[float]() for _ in range(4))
    for _ in range(repetitions):
        plain.append(small.time_plain_git())
        few.append(await small.time_unpushed())
        many.append(await large.time_unpushed())
        pushed.append(await small.time_pushed())
    stacked = await small.time_stacked()
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


async def keep_format(_: Repository, object_format: ObjectFormat) -> None:
    raise AssertionError(f"the mirror must not be replaced by one with {object_format.name}")


class BranchBuilder:
    """A stack of nine pull requests, on which the tenth is built again and again."""

    def __init__(self, host: PlainHost, mirror: CliMirror, path: Path) -> None:
        self._path = path
        self._host = host
        self._mirror = mirror
        repository = Repository(path, GitRunner())
        self._unpushed_mirror = MirrorWithoutPush(repository, mirror.remote, ADA, asyncio.Lock(), keep_format)
        self._base = self._onto = Sha("")
        self._runs = 0

    @classmethod
    async def prepare(cls, folder: Path, files: int) -> "BranchBuilder":
        BenchRepository(folder / REPO.owner / f"{REPO.name}.git", files, ("main",), TENTH + STACKED_RUNS).write()
        host = PlainHost(REPO.host, folder, ChecksFrom.API)
        mirror = await GitCli(folder / "mirrors", ADA).mirror(str(REPO), await host.remote(REPO))
        builder = cls(host, mirror, mirror_path(folder / "mirrors", str(REPO)))
        await builder._build_stack()
        return builder

    async def _build_stack(self) -> None:
        refs = await self._mirror.fetch(["refs/heads/main", self._host.head_ref_pattern])
        heads = {
            PullRequestNumber(number): refs[f"refs/pull/{number}/head"] for number in range(1, TENTH + STACKED_RUNS + 1)
        }
        self._base = self._onto = refs["refs/heads/main"]
        members = [Member(SubmissionId(number), number, head) for number, head in heads.items()]
        nine, self._tenth, self._fifty = members[: TENTH - 1], members[TENTH - 1], members[TENTH:]
        self._onto = (await self._build(self._unpushed_mirror, *nine)).steps[-1].commit

    async def time_pushed(self) -> float:
        return await self._time(self._mirror)

    async def time_unpushed(self) -> float:
        return await self._time(self._unpushed_mirror)

    async def time_stacked(self) -> list[float]:
        """Milliseconds of each of fifty runs, each on top of the previous one, whose commits exist already."""
        onto, times = self._onto, list[float]()
        for member in self._fifty:
            started = perf_counter()
            self._onto = (await self._build(self._unpushed_mirror, member)).steps[-1].commit
            times.append(1000 * (perf_counter() - started))
        self._onto = onto
        return times

    async def _time(self, mirror: Mirror) -> float:
        started = perf_counter()
        await self._build(mirror, self._tenth)
        return 1000 * (perf_counter() - started)

    def time_plain_git(self) -> float:
        """With a new message each time, because git does not write a commit that exists already."""
        self._runs += 1
        started = perf_counter()
        tree = self._git("merge-tree", "--write-tree", self._onto, self._tenth.head)
        self._git("commit-tree", "-p", self._onto, "-p", self._tenth.head, "-m", f"Merge {self._runs}", tree)
        return 1000 * (perf_counter() - started)

    def _git(self, *arguments: str) -> str:
        command = ["git", f"--git-dir={self._path}", *arguments]
        result = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=ENVIRONMENT | IDENTITY)
        return result.stdout.strip()

    async def _build(self, mirror: Mirror, *members: Member) -> RunBuilt:
        """A new run each time, and with it a new branch."""
        self._runs += 1
        run = replace(a_run(*(member.number for member in members)), id=RunId(str(UUID(int=self._runs))))
        queue = Queue(id=QueueId("bench"), target_branch=TargetBranch(name="main"), runs={run.id: run})
        store = SqliteStore(self._path / "none")
        queue_actor = QueueActor(QueueKey(REPO, "main"), queue, 0, store, WallClock())
        task = BuildRun(
            run=run.id,
            onto=self._onto,
            base=self._base,
            built_members=(),
            members=members,
            merge_method=MergeMethod.MERGE_COMMIT,
            forbidden_commits=frozenset(),
        )
        (built,) = await build_run.build_run(RepositoryContext(queue_actor, self._host, mirror), store, task)
        assert isinstance(built, RunBuilt), built
        return built


class MirrorWithoutPush(CliMirror):
    """A mirror that does not push: the cost of a push depends on the host."""

    async def push(self, *updates: RefUpdate, to: Remote | None = None) -> PushOutcome:  # noqa: ARG002
        return Pushed()
