"""Looks at the world for the engine: the target, pull requests, checks, a head that may merge directly."""

import asyncio
from collections.abc import Sequence

import structlog
from msgspec.structs import replace

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.events import Event, HeadExamined, LandingRead, PullSeen, TargetSeen
from mergeyard.domain.ids import PrNumber, Sha, Ticket
from mergeyard.domain.pulls import HeadExam, PullRequest
from mergeyard.domain.required import Required, RequiredSource
from mergeyard.domain.states import SATISFIED
from mergeyard.domain.statuses import Status
from mergeyard.domain.tasks import ExamineHead, LookAtPull, LookAtTarget, ReadPulls
from mergeyard.ports.git import MissingObject, OutputTooLargeError
from mergeyard.ports.host import ChecksFrom, Unreadable
from mergeyard.ports.store import Store
from mergeyard.service import recalling, wording
from mergeyard.service.performing.building import config_error, tree_problems
from mergeyard.service.performing.removed import brought, holds_removed_commit, removed_since
from mergeyard.service.repository_config import Broken, parse, read_file
from mergeyard.service.sight import Sight
from mergeyard.service.site import Site

log = structlog.get_logger()


async def look_at_target(site: Site, store: Store, task: LookAtTarget) -> tuple[Event, ...]:
    as_of = site.keeper.queue.counters.turns
    tip = await site.tip()
    if tip is None:
        return (TargetSeen(tip=None, as_of=as_of),)
    seen = TargetSeen(
        tip=tip,
        as_of=as_of,
        required=await required_statuses(site, tip),
        removed=await removed_since(site, store, task.known_tip, tip),
        restored=await _restored(site, store, task, tip),
    )
    return (seen,)


async def _restored(site: Site, store: Store, task: LookAtTarget, tip: Sha) -> frozenset[Sha]:
    """What was taken off was not in the tip that we knew: if it is there again, it is among what came since."""
    if not task.removed or task.known_tip is None:
        return frozenset()
    try:
        return task.removed & await brought(site, store, tip, task.known_tip)
    except (MissingObject, OutputTooLargeError):
        return frozenset([sha for sha in task.removed if await site.mirror.holds(tip, sha)])


async def required_statuses(site: Site, tip: Sha) -> Required:
    """As the repository asks for them at the target's head, else as the host protects the branch."""
    text = await read_file(site.mirror, tip)
    if text is not None:
        config = parse(text)
        if isinstance(config, Broken):
            return Required(config_error=config.words)
        if config.required_statuses:
            return Required(config.required_statuses, RequiredSource.SERVICE_CONFIG)
    protection = await site.host.required_statuses(site.repo, site.keeper.key.branch)
    return Required(protection, RequiredSource.BRANCH_PROTECTION)


async def look_at_pull(site: Site, sight: Sight, store: Store, task: LookAtPull) -> tuple[Event, ...]:
    as_of = site.keeper.queue.counters.turns
    pull = await _seen(site, sight, task.number)
    if pull is None:
        return ()
    targets = await recalling.targets(store, site.keeper.id, pull.number, pull.head)
    return (PullSeen(pull=pull, as_of=as_of, targets=targets),)


async def read_pulls(site: Site, sight: Sight, task: ReadPulls) -> tuple[Event, ...]:
    as_of = site.keeper.queue.counters.turns
    pulls = await asyncio.gather(*(_seen(site, sight, number) for number in task.numbers))
    found = tuple(pull for pull in pulls if pull is not None)
    return (LandingRead(landing=task.landing, pulls=found, as_of=as_of),)


async def _seen(site: Site, sight: Sight, number: PrNumber) -> PullRequest | None:
    """One that the host knows no more, or tells nonsense about, is as good as closed."""
    try:
        pull = await sight.look(site, number)
    except Unreadable as trouble:
        log.warning("a pull request cannot be read", repo=str(site.repo), number=number, words=str(trouble))
        pull = None
    stay = site.keeper.queue.submission_of(number)
    return pull if pull is not None or stay is None else replace(stay.pull, is_open=False)


async def examine(site: Site, store: Store, task: ExamineHead) -> tuple[Event, ...]:
    mirror, stay = site.mirror, site.keeper.queue.submissions.get(task.ticket)
    if stay is None:
        return ()
    await site.bring(stay.number, task.head)
    tree = await mirror.tree(task.head)
    statuses = await _statuses(site, store, task.head)
    exam = HeadExam(
        tip=task.tip,
        contains_tip=await mirror.holds(task.head, task.tip) and await _would_be_built(site, task),
        changes_something=tree != await mirror.tree(task.tip),
        holds_removed_commit=await _may_hold_removed_commit(site, task),
        passed=frozenset(status.context for status in statuses if status.check in SATISFIED),
        commit=await direct_commit(site, task.ticket, task.head, task.tip),
        tree=tree,
    )
    return (HeadExamined(ticket=task.ticket, exam=exam, forbidden=task.forbidden),)


async def _would_be_built(site: Site, task: ExamineHead) -> bool:
    """False: no direct merge, and building its run says what is wrong with it."""
    return not (await tree_problems(site, task.head, task.tip) or await config_error(site, task.tip, task.head))


async def _may_hold_removed_commit(site: Site, task: ExamineHead) -> bool:
    """True also of a head with too many commits to search: then no direct merge, and building its run decides."""
    try:
        return await holds_removed_commit(site, task.head, task.forbidden)
    except OutputTooLargeError:
        return True


async def _statuses(site: Site, store: Store, commit: Sha) -> Sequence[Status]:
    if site.host.forge is not None and site.host.checks_from is ChecksFrom.HOST:
        return await site.host.forge.statuses(site.repo, commit, site.keeper.key.branch)
    return await store.statuses(site.repo, commit)


async def direct_commit(site: Site, ticket: Ticket, head: Sha, tip: Sha) -> Sha:
    """A head that stands on the tip is what a rebase would make of it. Whoever makes it again makes the same."""
    method = site.keeper.queue.config.merge_method
    if method is MergeMethod.REBASE:
        return head
    stay, made = site.keeper.queue.submissions.get(ticket), await site.mirror.read(head)
    message = "" if stay is None else wording.direct_message(stay.number, stay.pull.title)
    if method is MergeMethod.MERGE_COMMIT:
        return await site.mirror.commit(made.tree, (tip, head), message, committed=made.committed)
    return await site.mirror.commit(made.tree, (tip,), message, made.author, made.committed)
