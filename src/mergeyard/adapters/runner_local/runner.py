"""Runs the checks of jobs on this machine, a limited number at once, shared fairly among the repositories."""

import asyncio
import os
import shutil
from asyncio import CancelledError, Future, Queue, Task
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import structlog

from mergeyard.adapters.runner_local import process
from mergeyard.domain.ids import Repo, RunId, Sha
from mergeyard.domain.pull_requests import StatusState
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.external import CheckJob, CheckResult
from mergeyard.ports.git import GitError, InvalidTreeError

MAX_NAME_CHARS = 150
"""File systems allow 255 bytes."""


class Outputs:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def prepare(self, run: RunId, check: str) -> Path:
        path = self._path_of(run, check)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def read(self, run: RunId, check: str) -> bytes | None:
        try:
            return self._path_of(run, check).read_bytes()
        except FileNotFoundError:
            return None

    def delete_older(self, before: float, keep: Collection[RunId]) -> None:
        """Deletes the outputs of runs whose newest file is older than `before`, in seconds since 1970."""
        kept = {_to_file_name(run) for run in keep}
        for run in self._folder.glob("[!.]*"):
            try:
                newest = max(each.stat().st_mtime for each in (run, *run.iterdir()))
            except OSError:
                continue  # deleted meanwhile, or not the folder of a run
            if newest < before and run.name not in kept:
                shutil.rmtree(run, ignore_errors=True)

    def _path_of(self, run: RunId, check: str) -> Path:
        return self._folder / _to_file_name(run) / f"{_to_file_name(check)}.log"


def _to_file_name(text: str) -> str:
    """A file name without separators or dots for any text; different texts get different names."""
    name = quote(text, safe="", errors="surrogatepass").replace(".", "%2E")
    if len(name) <= MAX_NAME_CHARS:
        return name
    return f"{name[:100]}-{sha256(name.encode()).hexdigest()}"


log = structlog.get_logger()

Checkout = Callable[[Repo, Sha, str], Awaitable[None]]
"""Writes the files of a commit into an empty folder."""

MIN_RETRY_DELAY_S, MAX_RETRY_DELAY_S = 0.1, 5.0
"""Between two attempts, when a check could not run because of the machine."""
MAX_FINISHED_JOBS = 1000
"""How many finished jobs are remembered, so that a repeated request does not start them again."""


class RunningJob:
    """A job and its tasks, one per check."""

    def __init__(self, job: CheckJob) -> None:
        self.job = job
        self.tasks: list[Task[None]] = []
        self.stopped = False

    @property
    def finished(self) -> bool:
        return all(task.done() for task in self.tasks)

    async def stop(self) -> None:
        if not self.stopped:  # cancelling twice would interrupt the cleanup
            self.stopped = True
            for task in self.tasks:
                task.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks)


class Slots:
    """Limits concurrent commands. The repository with the fewest running commands is next, then the oldest request."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._running = Counter[Repo]()
        self._waiting: list[tuple[Repo, Future[None]]] = []

    @asynccontextmanager
    async def hold(self, repo: Repo) -> AsyncGenerator[None]:
        await self._acquire(repo)
        try:
            yield
        finally:
            self._release(repo)

    async def _acquire(self, repo: Repo) -> None:
        request = repo, asyncio.get_running_loop().create_future()
        self._waiting.append(request)
        self._assign()
        try:
            await request[1]
        except CancelledError:
            if request in self._waiting:
                self._waiting.remove(request)
            else:  # the slot was assigned at the same time
                self._release(repo)
            raise

    def _release(self, repo: Repo) -> None:
        self._free += 1
        self._running[repo] -= 1
        if not self._running[repo]:
            del self._running[repo]
        self._assign()

    def _assign(self) -> None:
        while self._free and self._waiting:
            request = min(self._waiting, key=lambda waiting: self._running[waiting[0]])
            self._waiting.remove(request)
            self._free -= 1
            self._running[request[0]] += 1
            if not request[1].done():
                request[1].set_result(None)


class LocalRunner:
    def __init__(
        self,
        folder: Path,
        limit: int | None,
        checkout: Checkout,
        limits: process.Limits = process.Limits(),  # noqa: B008 (it is frozen)
        sandbox: process.Sandbox | None = None,
    ) -> None:
        """Removes what killed servers left in the folder. Without a limit: one command per core."""
        self._outputs = Outputs(folder.absolute())
        self._workspaces = process.Workspaces(folder.absolute() / ".work")
        self._checkout = checkout
        self._limits = limits
        self._sandbox = sandbox
        self._slots = Slots(limit or os.cpu_count() or 1)
        self._jobs: dict[RunId, RunningJob] = {}
        self._results = Queue[tuple[RunningJob, CheckResult]]()

    async def start(self, job: CheckJob) -> None:
        while (known := self._jobs.get(job.run)) is not None:
            if not known.stopped:
                return
            await self.stop(job.run)  # wait for its end, then start it again
        self._forget_oldest()
        running_job = self._jobs[job.run] = RunningJob(job)
        running_job.tasks = [asyncio.create_task(self._run_check(running_job, check)) for check in job.commands]

    async def stop(self, run: RunId) -> None:
        if running_job := self._jobs.get(run):
            await running_job.stop()
            if self._jobs.get(run) is running_job:
                del self._jobs[run]

    async def next_result(self) -> CheckResult:
        while True:
            running_job, result = await self._results.get()
            if not running_job.stopped:
                return result

    def active_run_ids(self) -> frozenset[RunId]:
        return frozenset(run for run, running_job in self._jobs.items() if not running_job.finished)

    async def output(self, run: RunId, check: str) -> bytes | None:
        return await asyncio.to_thread(self._outputs.read, run, check)

    async def delete_outputs(self, before: Instant) -> None:
        await asyncio.to_thread(self._outputs.delete_older, before / SECOND, self.active_run_ids())

    async def close(self) -> None:
        await asyncio.gather(*map(self.stop, list(self._jobs)))
        await asyncio.to_thread(self._workspaces.close)

    async def _run_check(self, running_job: RunningJob, check: str) -> None:
        """Frees the slot between two attempts: a repository whose checks cannot start does not delay others."""
        delay = MIN_RETRY_DELAY_S
        while True:
            async with self._slots.hold(running_job.job.repo):
                outcome = await self._attempt(running_job, check)
            if outcome is not None:
                break
            await asyncio.sleep(delay)
            delay = min(2 * delay, MAX_RETRY_DELAY_S)
        self._report(running_job, check, *outcome)

    async def _attempt(self, running_job: RunningJob, check: str) -> tuple[StatusState, str] | None:
        """None for a problem of the machine, which says nothing about the commit and can pass: try again."""
        job = running_job.job
        try:
            return await self._execute(running_job, check)
        except process.TimedOut:
            return StatusState.ERROR, f"ran longer than {job.timeout_ms / 1000:g} s and was ended"
        except InvalidTreeError as error:
            return StatusState.FAILURE, f"the commit cannot be checked out: {error}"
        except (GitError, OSError) as error:
            log.warning("check_cannot_run", run=job.run, check=check, error=str(error))
            self._report(running_job, check, StatusState.PENDING, f"cannot be run yet: {error}")
            return None
        except Exception as error:  # Any error: a check without a result would block its run until the timeout.
            return StatusState.ERROR, f"could not be run: {error}"

    async def _execute(self, running_job: RunningJob, check: str) -> tuple[StatusState, str]:
        job = running_job.job
        variables: dict[str, str] = {"MERGEYARD_RUN": job.run, "MERGEYARD_COMMIT": job.commit}
        output = self._outputs.prepare(job.run, check)
        async with process.capture_output(output) as sink, self._workspaces.create() as workspace:
            workspace.checkout.mkdir()
            await self._checkout(job.repo, job.commit, str(workspace.checkout))
            command = job.commands[check]
            async with process.start_command(
                command, workspace, variables, sink, self._limits, self._sandbox
            ) as started:
                self._report(running_job, check, StatusState.PENDING, "running")
                report = await started.read_report(job.timeout_ms)
            if report.code and not report.breach:
                process.refuse_full_disk(workspace)
            return _to_outcome(report)

    def _report(self, running_job: RunningJob, check: str, state: StatusState, message: str) -> None:
        job = running_job.job
        self._results.put_nowait((running_job, CheckResult(job.run, job.commit, check, state, message)))

    def _forget_oldest(self) -> None:
        finished = [run for run, running_job in self._jobs.items() if running_job.finished]
        for run in finished[:-MAX_FINISHED_JOBS]:
            del self._jobs[run]


def _to_outcome(report: process.Report) -> tuple[StatusState, str]:
    if report.breach:
        return StatusState.FAILURE, f"was ended: {report.breach}"
    if report.code == 0:
        return StatusState.SUCCESS, "passed"
    if report.code is None or report.code < 0:
        return StatusState.FAILURE, f"ended by signal {-(report.code or 0)}"
    return StatusState.FAILURE, f"exit code {report.code}"
