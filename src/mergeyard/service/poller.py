"""Polls repositories: reads their refs and reports every difference from the last snapshot to the queues.

A reported change only makes the queue read the pull request or the target branch again.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from weakref import WeakKeyDictionary, WeakSet

import structlog
from msgspec import Struct

from mergeyard.domain.events import Event, HostReachable, HostUnreachable, PullRequestDirty, TargetBranchDirty
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import Mergeability, PullRequestState
from mergeyard.domain.timestamps import MINUTE
from mergeyard.ports.forge import Host, HostUnavailable
from mergeyard.ports.git import GitError
from mergeyard.ports.store import LeaseLost, StoreUnavailable
from mergeyard.service.background import Background
from mergeyard.service.errors import RequestRefused
from mergeyard.service.git_names import branch_ref
from mergeyard.service.leases import Leases
from mergeyard.service.pull_request_reader import PullRequestReader
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.repositories import Repositories

Refs = Mapping[str, Sha]
Heads = Mapping[PullRequestNumber, Sha]


class RefSnapshot(Struct, frozen=True):
    refs: Refs
    heads: Heads


def diff_refs(refs: Refs, before: Refs) -> set[str]:
    """The refs that were added, moved or removed."""
    return set() if refs is before else {ref for ref, _ in refs.items() ^ before.items()}


def update_heads(host: Host, refs: Refs, changed: set[str] | None, before: Heads) -> Heads:
    """The heads of all pull requests, at the cost of the changed refs; None: all refs are new."""
    numbered = ((host.pull_request_number_of(ref), ref) for ref in (refs if changed is None else changed))
    moved = [(number, ref) for number, ref in numbered if number is not None and ref == host.head_ref(number)]
    if not moved:
        return before
    removed = {number for number, ref in moved if ref not in refs}
    merged = {**before, **{number: refs[ref] for number, ref in moved if ref in refs}}
    return {number: head for number, head in merged.items() if number not in removed} if removed else merged


def is_commit_ref(host: Host, ref: str) -> bool:
    """A branch or the head of a pull request; other refs of a pull request only mark a change of its other data."""
    number = host.pull_request_number_of(ref)
    return number is None or ref == host.head_ref(number)


def fingerprint_pull_requests(host: Host, refs: Refs, changed: set[str] | None) -> dict[PullRequestNumber, str]:
    """A fingerprint of all refs of each pull request that has a changed ref."""
    touched = {host.pull_request_number_of(ref) for ref in (refs if changed is None else changed)}
    found = defaultdict[PullRequestNumber, list[str]](list)
    for ref in sorted(refs):
        number = host.pull_request_number_of(ref)
        if number is not None and number in touched:
            found[number].append(refs[ref])
    return {number: " ".join(values) for number, values in found.items()}


def derive_dirty_events(queue_actor: QueueActor, host: Host, refs: Refs, changed: set[str] | None) -> Iterator[Event]:
    """What the queue must read again. Without a previous snapshot (`changed` is None) that is everything."""
    if changed is None or refs.get(branch_ref(queue_actor.key.branch)) != queue_actor.queue.target_branch.tip:
        yield TargetBranchDirty()
    if changed is None:
        numbers = {submission.number for submission in queue_actor.queue.submissions.values()}
    else:
        numbers = {number for ref in changed if (number := host.pull_request_number_of(ref)) is not None}
    for number in numbers:
        if queue_actor.note_dirty(number):
            yield PullRequestDirty(number=number)


log = structlog.get_logger()

POLL_INTERVAL_MS = 1000
CHECKING_INTERVAL_MS = 2000
"""While the Git host is still computing whether a pull request is mergeable."""
RECHECK_EVERY_POLLS = 3
"""How often a pull request is read again that the Git host reported as not mergeable. Most changes of that are
noticed earlier, by another commit."""
IDLE_FACTOR = 3
"""A repository without submissions is polled this many times less often."""
MAX_CONCURRENT_POLLS = 8


class Poller:
    def __init__(
        self,
        registry: QueueRegistry,
        repositories: Repositories,
        reader: PullRequestReader,
        schedule_comments: Callable[[Repo, PullRequestNumber, str], None],
        background: Background,
        leases: Leases,
    ) -> None:
        self._registry = registry
        self._repositories = repositories
        self._reader = reader
        self._schedule_comments = schedule_comments
        self._background = background
        self._leases = leases
        self._snapshots: dict[Repo, RefSnapshot] = {}
        self._next_poll_at: dict[Repo, int] = {}
        self._failures: dict[Repo, int] = {}
        """Consecutive failed polls of each repository."""
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_POLLS)
        self._in_progress = set[Repo]()
        """Repositories that are being polled: a slow Git host delays only itself."""
        self._refresh_all = WeakSet[QueueActor]()
        """Queues of which everything must be read again."""
        self._polled_tips = WeakKeyDictionary[QueueActor, Sha | None]()
        """The tip of the target branch that each queue had recorded at its last poll."""
        self._recheck_counts = WeakKeyDictionary[QueueActor, int]()
        self._next_rules_check_at = WeakKeyDictionary[QueueActor, int]()

    def on_change(self, queue_actor: QueueActor, before: Queue | None) -> None:
        """Anything can have changed before this replica began to process the queue."""
        if before is None:
            self._refresh_all.add(queue_actor)

    def on_lease_lost(self, queue_actor: QueueActor) -> None:
        self._refresh_all.discard(queue_actor)
        self._polled_tips.pop(queue_actor, None)

    async def poll_due(self) -> None:
        """Starts a poll of every leased repository that is due."""
        repos = {actor.key.repo for actor in self._registry if self._leases.has_lease(actor.key.repo)}
        for by_repo in (self._snapshots, self._next_poll_at, self._failures):
            for dropped in by_repo.keys() - repos:
                del by_repo[dropped]
        now = self._registry.clock.now()
        for repo in repos - self._in_progress:
            if self._next_poll_at.get(repo, now) <= now:
                self._in_progress.add(repo)
                self._background.start(self._poll(repo))

    async def _poll(self, repo: Repo) -> None:
        queue_actors = self._registry.cached_by_repo(repo)
        try:
            async with self._slots:
                await self._read_and_report(repo, queue_actors)
            self._failures.pop(repo, None)
        except (HostUnavailable, GitError) as error:
            log.warning("git_host_unavailable", repo=str(repo), error=str(error))
            self._failures[repo] = self._failures.get(repo, 0) + 1
            await _submit_to_all(queue_actors, HostUnreachable())
        except (RequestRefused, LeaseLost, StoreUnavailable) as error:
            log.warning("repository_poll_failed", repo=str(repo), error=str(error))
        finally:
            self._in_progress.discard(repo)
            self._next_poll_at[repo] = self._registry.clock.now() + self._delay_ms(repo, queue_actors)

    def _delay_ms(self, repo: Repo, queue_actors: tuple[QueueActor, ...]) -> int:
        host = self._repositories.hosts.get(repo.host)
        usual = 0 if host is None else host.poll_interval_ms
        if not usual:
            return 0
        if repo in self._failures:
            return min(usual * 2 ** min(self._failures[repo], 10), max(usual, MINUTE))
        submissions = [submission for actor in queue_actors for submission in actor.queue.submissions.values()]
        if any(_is_mergeability_pending(submission) for submission in submissions):
            return min(usual, CHECKING_INTERVAL_MS)
        return usual if submissions else min(IDLE_FACTOR * usual, max(usual, MINUTE))

    async def _read_and_report(self, repo: Repo, queue_actors: tuple[QueueActor, ...]) -> None:
        """Keeps the new snapshot only after all queues got the difference, so that a failed poll loses no change."""
        host = self._repositories.get_host(repo.host)
        refs = await host.refs(repo, {actor.key.branch for actor in queue_actors})
        before = self._snapshots.get(repo)
        changed = None if before is None else diff_refs(refs, before.refs)
        for queue_actor in queue_actors:
            await self._report_changes(queue_actor, host, refs, changed)
        snapshot = RefSnapshot(refs, update_heads(host, refs, changed, {} if before is None else before.heads))
        if changed is None or any(is_commit_ref(host, ref) for ref in changed):
            await self._refresh_head_index(queue_actors, snapshot)
        if host.forge is not None:
            for number, fingerprint in fingerprint_pull_requests(host, refs, changed).items():
                self._schedule_comments(repo, number, fingerprint)
        self._snapshots[repo] = snapshot

    async def _report_changes(self, queue_actor: QueueActor, host: Host, refs: Refs, changed: set[str] | None) -> None:
        tip = queue_actor.queue.target_branch.tip
        refresh_all = queue_actor in self._refresh_all or queue_actor not in self._polled_tips
        self._refresh_all.discard(queue_actor)
        try:
            events = (
                *derive_dirty_events(queue_actor, host, refs, None if refresh_all else changed),
                *self._recheck_unmergeable(queue_actor, host),
                *self._recheck_rules(queue_actor, host),
            )
            await _submit(queue_actor, events)
        except BaseException:
            self._polled_tips.pop(queue_actor, None)
            raise
        self._polled_tips[queue_actor] = tip

    def _recheck_unmergeable(self, queue_actor: QueueActor, host: Host) -> Iterator[Event]:
        """On another tip, a pull request that was not mergeable can be mergeable, a pull request can be part of the
        target branch, and other paths can be guarded from forks. A Git host that reports mergeability itself can also
        change its answer at any time, without a notice."""
        tip = queue_actor.queue.target_branch.tip
        has_moved = self._polled_tips.get(queue_actor) != tip
        if tip is None or not (has_moved or host.reports_mergeability):
            return
        self._recheck_counts[queue_actor] = self._recheck_counts.get(queue_actor, 0) + 1
        is_recheck_due = self._recheck_counts[queue_actor] % RECHECK_EVERY_POLLS == 0
        for submission in queue_actor.queue.submissions.values():
            pull_request = submission.pull_request
            mergeability = pull_request.mergeability
            may_differ = submission.state is PullRequestState.NOT_READY and mergeability is not Mergeability.MERGEABLE
            if host.reports_mergeability and mergeability is Mergeability.NOT_MERGEABLE:
                may_differ = may_differ and is_recheck_due
            guards_may_differ = has_moved and pull_request.fork and not submission.by_maintainer
            if (
                may_differ
                or guards_may_differ
                or self._reader.is_known_contained(queue_actor, submission.number, pull_request.head)
            ):
                yield PullRequestDirty(number=submission.number)

    def _recheck_rules(self, queue_actor: QueueActor, host: Host) -> Iterator[Event]:
        """Forges send no notice when other statuses become required, so they are asked every minute. Not during a
        landing, which waits for every read of the target branch."""
        now = self._registry.clock.now()
        is_landing = queue_actor.queue.landing is not None
        if host.forge is None or is_landing or now < self._next_rules_check_at.get(queue_actor, 0):
            return
        self._next_rules_check_at[queue_actor] = now + MINUTE
        yield TargetBranchDirty()

    async def _refresh_head_index(self, queue_actors: tuple[QueueActor, ...], snapshot: RefSnapshot) -> None:
        target_refs = {branch_ref(actor.key.branch) for actor in queue_actors} & snapshot.refs.keys()
        if target_refs:
            await self._reader.refresh_head_index(
                await self._repositories.open_context(queue_actors[0]), target_refs, snapshot.heads
            )


def _is_mergeability_pending(submission: Submission) -> bool:
    return (
        submission.state is PullRequestState.NOT_READY and submission.pull_request.mergeability is Mergeability.CHECKING
    )


async def _submit_to_all(queue_actors: tuple[QueueActor, ...], event: Event) -> None:
    for queue_actor in queue_actors:
        try:
            await queue_actor.submit(event)
        except (RequestRefused, StoreUnavailable) as error:
            log.warning("queue_event_not_stored", queue=str(queue_actor.key), error=str(error))


async def _submit(queue_actor: QueueActor, events: tuple[Event, ...]) -> None:
    reachable = (HostReachable(),) if queue_actor.queue.host_unreachable_since is not None else ()
    if not queue_actor.is_closed and (reachable or events):
        await queue_actor.submit(*reachable, *events)
