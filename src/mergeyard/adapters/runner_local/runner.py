"""Runs the checks of jobs on this machine, so many commands at once, shared fairly among the repositories."""

import asyncio
import os
from asyncio import CancelledError, Future, Queue, Task
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from mergeyard.adapters.runner_local.command import Limits, Report, TimedOut, running
from mergeyard.adapters.runner_local.keeping import kept
from mergeyard.adapters.runner_local.outputs import Outputs
from mergeyard.adapters.runner_local.sandbox import Sandbox
from mergeyard.adapters.runner_local.workshop import Workshop, refuse_without_room
from mergeyard.domain.ids import RunId, Sha
from mergeyard.domain.instants import SECOND, Instant
from mergeyard.domain.repositories import Repo
from mergeyard.domain.statuses import StatusState
from mergeyard.ports.git import GitTrouble, InvalidTreeError
from mergeyard.ports.runner import Job, Result

log = structlog.get_logger()

Checkout = Callable[[Repo, Sha, str], Awaitable[None]]
"""Writes the files of a commit into an empty folder."""

SHORTEST_WAIT, LONGEST_WAIT = 0.1, 5.0
"""Seconds between two attempts, when the first did not work for a reason of ours."""
REMEMBERED = 1000
"""Jobs that are not begun again when somebody asks once more, long after they finished."""


class Work:
    """A job, and what is being done for it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.tasks: list[Task[None]] = []
        self.stopped = False

    @property
    def finished(self) -> bool:
        return all(task.done() for task in self.tasks)

    async def stop(self) -> None:
        if not self.stopped:  # a second cancelling would disturb the clearing away
            self.stopped = True
            for task in self.tasks:
                task.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks)


class Slots:
    """So many commands at once. The repository with the fewest running commands goes first, then the oldest request."""

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
            else:  # the slot was assigned in the same moment
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
        limits: Limits = Limits(),  # noqa: B008 (it is frozen)
        sandbox: Sandbox | None = None,
    ) -> None:
        """Clears away what a process left here that was killed. Without limit: as many as there are cores."""
        self._outputs = Outputs(folder.absolute())
        self._workshop = Workshop(folder.absolute() / ".work")
        self._checkout = checkout
        self._limits = limits
        self._sandbox = sandbox
        self._slots = Slots(limit or os.cpu_count() or 1)
        self._works: dict[RunId, Work] = {}
        self._results = Queue[tuple[Work, Result]]()

    async def start(self, job: Job) -> None:
        while (known := self._works.get(job.run)) is not None:
            if not known.stopped:
                return
            await self.stop(job.run)  # altogether, and then it is begun anew
        self._forget_oldest()
        work = self._works[job.run] = Work(job)
        work.tasks = [asyncio.create_task(self._perform(work, check)) for check in job.commands]

    async def stop(self, run: RunId) -> None:
        if work := self._works.get(run):
            await work.stop()
            if self._works.get(run) is work:
                del self._works[run]

    async def next_result(self) -> Result:
        while True:
            work, result = await self._results.get()
            if not work.stopped:
                return result

    def running(self) -> frozenset[RunId]:
        return frozenset(run for run, work in self._works.items() if not work.finished)

    async def output(self, run: RunId, check: str) -> bytes | None:
        return await asyncio.to_thread(self._outputs.read, run, check)

    async def delete_outputs(self, before: Instant) -> None:
        await asyncio.to_thread(self._outputs.delete_older, before / SECOND, self.running())

    async def close(self) -> None:
        await asyncio.gather(*map(self.stop, list(self._works)))
        await asyncio.to_thread(self._workshop.close)

    async def _perform(self, work: Work, check: str) -> None:
        """The slot is free between two attempts: a repository whose checks cannot start does not hold up others."""
        wait = SHORTEST_WAIT
        while True:
            async with self._slots.hold(work.job.repo):
                ending = await self._attempt(work, check)
            if ending is not None:
                break
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)
        self._tell(work, check, *ending)

    async def _attempt(self, work: Work, check: str) -> tuple[StatusState, str] | None:
        """None when the machine is in trouble, which says nothing about the commit and may pass."""
        try:
            return await self._ending(work, check)
        except TimedOut:
            return StatusState.ERROR, f"ran longer than {work.job.timeout / 1000:g} s and was ended"
        except InvalidTreeError as error:
            return StatusState.FAILURE, f"the commit cannot be checked out: {error}"
        except (GitTrouble, OSError) as trouble:
            log.warning("a check cannot be run", run=work.job.run, check=check, words=str(trouble))
            self._tell(work, check, StatusState.PENDING, f"cannot be run yet: {trouble}")
            return None
        except Exception as trouble:  # whatever it is: a check that never ends would hold its run up for hours
            return StatusState.ERROR, f"could not be run: {trouble}"

    async def _ending(self, work: Work, check: str) -> tuple[StatusState, str]:
        job = work.job
        variables: dict[str, str] = {"MERGEYARD_RUN": job.run, "MERGEYARD_COMMIT": job.commit}
        output = self._outputs.prepare(job.run, check)
        async with kept(output) as sink, self._workshop.place() as place:
            place.checkout.mkdir()
            await self._checkout(job.repo, job.commit, str(place.checkout))
            command = job.commands[check]
            async with running(command, place, variables, sink, self._limits, self._sandbox) as started:
                self._tell(work, check, StatusState.PENDING, "running")
                report = await started.report(job.timeout)
            if report.code and not report.breach:
                refuse_without_room(place)
            return verdict(report)

    def _tell(self, work: Work, check: str, state: StatusState, words: str) -> None:
        self._results.put_nowait((work, Result(work.job.run, work.job.commit, check, state, words)))

    def _forget_oldest(self) -> None:
        finished = [run for run, work in self._works.items() if work.finished]
        for run in finished[:-REMEMBERED]:
            del self._works[run]


def verdict(report: Report) -> tuple[StatusState, str]:
    if report.breach:
        return StatusState.FAILURE, f"was ended: {report.breach}"
    if report.code == 0:
        return StatusState.SUCCESS, "passed"
    if report.code is None or report.code < 0:
        return StatusState.FAILURE, f"ended by signal {-(report.code or 0)}"
    return StatusState.FAILURE, f"exit code {report.code}"
