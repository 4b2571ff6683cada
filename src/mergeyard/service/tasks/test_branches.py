"""Deletes test branches, and opens and closes draft pull requests for them."""

import asyncio
from dataclasses import dataclass, field

import structlog

from mergeyard.domain.events import BranchDeleted, Event
from mergeyard.domain.ids import Repo, RunId
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.tasks import DeleteBranch
from mergeyard.domain.timestamps import DAY, MINUTE
from mergeyard.engine.tasks import pending_tasks
from mergeyard.ports.forge import DraftPullRequest, Host, HostError
from mergeyard.ports.git import GitError, Mirror, PushRefused, RefUpdate, RemoteRefused
from mergeyard.ports.store import StoreUnavailable
from mergeyard.service.comments import texts
from mergeyard.service.errors import RequestRefused
from mergeyard.service.git_names import TEST_BRANCH_REF_PATTERN, branch_ref, name_test_branch, run_id_from_ref
from mergeyard.service.leases import Leases
from mergeyard.service.pull_request_reader import PullRequestReader
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.repositories import Repositories, RepositoryContext

log = structlog.get_logger()


async def open_draft(context: RepositoryContext, run: Run) -> None:
    """Does nothing if the draft is already open. Raises `HostRefused` if the Git host does not allow it."""
    forge, target_branch = context.host.forge, context.queue_actor.key.branch
    if forge is None or not context.queue_actor.queue.config.create_prs_for_testing_branches:
        return
    branch, numbers = name_test_branch(run), [member.number for member in run.tested_members]
    title = texts.render_draft_title(numbers, target_branch)
    text = texts.render_draft_text(numbers, context.host.number_prefix)
    draft = DraftPullRequest(branch=branch, base_branch=target_branch, title=title, text=text)
    await forge.open_draft(context.repo, draft)


async def close_draft(context: RepositoryContext, run: Run) -> None:
    if context.queue_actor.queue.config.create_prs_for_testing_branches:
        await _close_draft_of_branch(context.host, context.repo, name_test_branch(run))


async def _close_draft_of_branch(host: Host, repo: Repo, branch: str) -> None:
    """Failing to close a draft is logged and has no other effect: the run is over."""
    if host.forge is None:
        return
    try:
        await host.forge.close_draft(repo, branch)
    except HostError as error:
        log.warning("draft_not_closed", repo=str(repo), branch=branch, error=str(error))


async def delete_test_branch(context: RepositoryContext, task: DeleteBranch) -> tuple[Event, ...]:
    run = context.queue_actor.queue.runs.get(task.run)
    if run is not None:
        await _delete_ref(context.mirror, branch_ref(name_test_branch(run)))
        await close_draft(context, run)
    return (BranchDeleted(run=task.run),)


async def _delete_ref(mirror: Mirror, ref: str) -> None:
    current = (await mirror.remote_refs(ref)).get(ref)
    if current is None:
        return
    outcome = await mirror.push(RefUpdate(ref, current, None))
    if isinstance(outcome, PushRefused):
        raise RemoteRefused(f"The Git host refuses to delete {ref}: {outcome.detail}")


async def delete_branch_of_discarded_run(context: RepositoryContext, run: RunId) -> None:
    """Deletes the branch of a run that was discarded while the branch was being pushed: the task that deletes the
    branch can have run before the push."""
    queue = context.queue_actor.queue
    if run in queue.runs and DeleteBranch(run=run) not in pending_tasks(queue):
        return
    for ref, owner in (await _list_test_branches(context.mirror)).items():
        if owner == run:
            await _delete_ref(context.mirror, ref)


async def _list_test_branches(mirror: Mirror) -> dict[str, RunId]:
    """Every test branch on the Git host, with the id of its run."""
    refs = await mirror.remote_refs(TEST_BRANCH_REF_PATTERN)
    return {ref: run for ref in refs if (run := run_id_from_ref(ref)) is not None}


CLEANUP_INTERVAL_MS = 5 * MINUTE
FIRST_CLEANUPS = frozenset({0, 1, 4, 16, 64})
"""After so many intervals since the last activity. The push of a replica that was killed can create a branch until it
exceeds git's time limit of ten minutes."""
CLEANUP_PERIOD = DAY // CLEANUP_INTERVAL_MS
"""In intervals: how often a repository without activity is cleaned up."""
MAX_CONCURRENT_CLEANUPS = 4


@dataclass(eq=False)
class BranchCleanup:
    registry: QueueRegistry
    repositories: Repositories
    reader: PullRequestReader
    leases: Leases
    _idle_intervals: dict[Repo, int] = field(default_factory=dict, init=False)
    """Intervals since the last activity in each repository. Also of repositories whose last queue was deleted: its test
    branches can exist a little longer."""
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT_CLEANUPS), init=False)

    def on_change(self, queue_actor: QueueActor, before: Queue | None) -> None:
        if queue_actor.has_other_runs_than(before) or (
            before is not None and before.submissions is not queue_actor.queue.submissions
        ):
            self._idle_intervals[queue_actor.key.repo] = 0

    def on_lease_lost(self, queue_actor: QueueActor) -> None:
        """Keeps the repository: a deleted queue is cleaned up later, and without the lease it is skipped."""
        self._idle_intervals[queue_actor.key.repo] = 0

    async def clean_up_all(self) -> None:
        repos = {*self._idle_intervals, *self.leases.repos, *(actor.key.repo for actor in self.registry)}
        await asyncio.gather(*(self._clean_up_if_due(repo) for repo in repos if self.leases.has_lease(repo)))

    async def _clean_up_if_due(self, repo: Repo) -> None:
        """Activity during the cleanup makes the next one due again, and so does an error."""
        idle = self._idle_intervals.setdefault(repo, 0)
        if idle in FIRST_CLEANUPS or idle % CLEANUP_PERIOD == 0:
            async with self._slots:
                if not await self.clean_up(repo) or self._idle_intervals[repo] != idle:
                    return
        self._idle_intervals[repo] = idle + 1

    async def clean_up(self, repo: Repo) -> bool:
        """Returns whether it succeeded. Reads the branches before the runs: a run is stored before its branch is
        pushed, so no branch of a new run can look unknown."""
        try:
            mirror = await self.repositories.open_mirror(repo)
            branches = await _list_test_branches(mirror)
            known = {run for actor in await self.registry.load_by_repo(repo) for run in actor.queue.runs}
            host = self.repositories.get_host(repo.host)
            for ref in [ref for ref, run in branches.items() if run not in known]:
                await _delete_ref(mirror, ref)
                await _close_draft_of_branch(host, repo, ref.removeprefix(branch_ref("")))
            await mirror.prune_refs(TEST_BRANCH_REF_PATTERN, keep=branches.__contains__)
            await self.reader.prune_unknown_heads(repo, host, mirror)
        except (GitError, HostError, RequestRefused, StoreUnavailable) as error:
            log.warning("branch_cleanup_failed", repo=str(repo), error=str(error))
            return False
        return True
