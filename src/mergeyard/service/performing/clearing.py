"""Removes test branches: of runs that are over, and of runs that nobody knows any more."""

from collections.abc import Collection

from mergeyard.domain.events import BranchDeleted, Event
from mergeyard.domain.ids import RunId
from mergeyard.domain.tasks import DeleteBranch
from mergeyard.engine.work import work
from mergeyard.ports.git import GitTrouble, Mirror, PushRefused, RefUpdate
from mergeyard.service.naming_branches import TEST_BRANCHES, branch_ref, run_of, test_branch
from mergeyard.service.performing.drafting import close_draft
from mergeyard.service.site import Site


async def delete_branch(site: Site, task: DeleteBranch) -> tuple[Event, ...]:
    run = site.keeper.queue.runs.get(task.run)
    if run is not None:
        await remove(site.mirror, branch_ref(test_branch(run)))
        await close_draft(site, run)
    return (BranchDeleted(run=task.run),)


async def remove(mirror: Mirror, ref: str) -> None:
    there = (await mirror.remote_refs(ref)).get(ref)
    if there is None:
        return
    outcome = await mirror.push(RefUpdate(ref, there, None))
    if isinstance(outcome, PushRefused):
        raise GitTrouble(f"the host does not let us delete {ref}: {outcome.words}")


async def remove_if_given_up(site: Site, run: RunId) -> None:
    """A run that was given up while its branch was being pushed: whoever was to remove it may have been too early."""
    queue = site.keeper.queue
    if run in queue.runs and DeleteBranch(run=run) not in work(queue):
        return
    for ref, owner in (await stray_branches(site.mirror)).items():
        if owner == run:
            await remove(site.mirror, ref)


async def stray_branches(mirror: Mirror) -> dict[str, RunId]:
    """Every test branch that is there, with the run it was made for."""
    named = {ref: run_of(ref) for ref in await mirror.remote_refs(TEST_BRANCHES)}
    return {ref: run for ref, run in named.items() if run is not None}


async def sweep(mirror: Mirror, known: Collection[RunId], branches: dict[str, RunId]) -> list[str]:
    """Gives the names of the branches that it removed."""
    strays = [ref for ref, run in branches.items() if run not in known]
    for ref in strays:
        await remove(mirror, ref)
    return [ref.removeprefix(branch_ref("")) for ref in strays]
