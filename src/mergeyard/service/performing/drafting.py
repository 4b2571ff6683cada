"""Shows test branches as draft pull requests, for a CI that runs on nothing else."""

import structlog

from mergeyard.domain.repositories import Repo
from mergeyard.domain.runs import Run
from mergeyard.ports.forge import Draft
from mergeyard.ports.host import Host, HostRefused, HostTrouble
from mergeyard.service.naming_branches import test_branch
from mergeyard.service.site import Site
from mergeyard.service.talking import words

log = structlog.get_logger()


async def open_draft(site: Site, run: Run) -> None:
    """One that is there already is left as it is."""
    forge, target = site.host.forge, site.keeper.key.branch
    if forge is None or not site.keeper.queue.config.create_prs_for_testing_branches:
        return
    numbers = [member.number for member in run.tested]
    title, text = words.test_pull_title(numbers, target), words.test_pull_text(numbers)
    try:
        await forge.open_draft(site.repo, Draft(branch=test_branch(run), base=target, title=title, text=text))
    except HostRefused as refused:
        log.warning("a draft was not opened", repo=str(site.repo), branch=test_branch(run), words=str(refused))


async def close_draft(site: Site, run: Run) -> None:
    if site.keeper.queue.config.create_prs_for_testing_branches:
        await close_draft_of(site.host, site.repo, test_branch(run))


async def close_draft_of(host: Host, repo: Repo, branch: str) -> None:
    """What it showed is over: one that cannot be closed keeps nobody waiting."""
    if host.forge is None:
        return
    try:
        await host.forge.close_draft(repo, branch)
    except HostTrouble as trouble:
        log.warning("a draft was not closed", repo=str(repo), branch=branch, words=str(trouble))
