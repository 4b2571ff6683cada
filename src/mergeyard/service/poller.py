"""Polls repositories: reads their refs and reports every difference from the last snapshot to the queues.

A reported change only makes the queue read the pull request or the target branch again. A repository in which nothing
happens costs little: on plain hosts the poller reads only repositories that changed, and it asks a forge less and less
often about a repository without pull requests in its queues, until a webhook or a decision of a queue wakes it.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import structlog
from msgspec import Struct

from mergeyard.domain.events import Event, PullRequestDirty, TargetBranchDirty
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import PullRequest, Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import Mergeability, PullRequestState, Reason
from mergeyard.domain.timestamps import MINUTE, SECOND
from mergeyard.ports.forge import Host, HostError, RequestPurpose, requests_for
from mergeyard.ports.git import GitError
from mergeyard.ports.store import LeaseLost, StoreUnavailable
from mergeyard.service.background import Background
from mergeyard.service.errors import RequestRefused
from mergeyard.service.git_names import branch_ref
from mergeyard.service.leases import Leases
from mergeyard.service.obstacles import Obstacles
from mergeyard.service.pull_request_reader import PullRequestReader
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.repositories import Repositories

Refs = Mapping[str, Sha]


class PolledRepository(Struct, eq=False):
    refs: Refs | None = None
    """As of the last poll that succeeded."""
    polled_at: int = 0
    next_poll_at: int = 0
    failures: int = 0
    """Consecutive failed polls."""
    quiet_polls: int = 0
    """Consecutive polls that found no change."""
    numbers: frozenset[PullRequestNumber] = frozenset()
    """The pull requests that its queues held at the last poll. A change of them leads to another poll."""
    must_read: bool = True
    """The refs must be read even if they did not change, because a queue may need another report."""
    in_progress: bool = False


class PolledQueue(Struct, eq=False):
    needs_refresh: bool = True
    """Everything must be read again."""
    tip: Sha | None = None
    """The tip of the target branch that the queue had recorded at its last poll."""
    next_conflict_check_at: int = 0
    next_requirement_check_at: int = 0
    next_rules_check_at: int = 0


def diff_refs(refs: Refs, before: Refs) -> set[str]:
    """The refs that were added, moved or removed."""
    return set() if refs is before else {ref for ref, _ in refs.items() ^ before.items()}


def list_heads(host: Host, refs: Refs) -> dict[PullRequestNumber, Sha]:
    numbered = ((host.pull_request_number_of(ref), ref) for ref in refs)
    return {number: refs[ref] for number, ref in numbered if number is not None and ref == host.head_ref(number)}


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
    """What the queue must read again. Without a previous snapshot (`changed` is None) that is everything, except a
    target branch that has not moved: all that is read from a plain host belongs to its tip."""
    queue = queue_actor.queue
    may_have_other_rules = host.forge is not None or len(queue.submissions) > 0
    if refs.get(branch_ref(queue_actor.key.branch)) != queue.target_branch.tip or (
        changed is None and (may_have_other_rules or queue.target_branch.required_statuses.config_error)
    ):
        yield TargetBranchDirty()
    if changed is None:
        numbers = {submission.number for submission in queue.submissions.values()}
    else:
        numbers = {number for ref in changed if (number := host.pull_request_number_of(ref)) is not None}
    for number in numbers:
        if queue_actor.note_dirty(number):
            yield PullRequestDirty(number=number)


log = structlog.get_logger()

POLL_INTERVAL_MS = 1000
CHECKING_INTERVAL_MS = 2000
"""While the Git host is still computing whether a pull request is mergeable."""
CONFLICT_RECHECK_MS = MINUTE
"""How often a pull request is read again that the Git host reported as not mergeable. Most changes of that are
noticed earlier, by another commit."""
REQUIREMENT_RECHECK_MS = 10 * MINUTE
"""How often a pull request is read again that lacks a review or another requirement. Almost all changes of that change
the pull request itself too, which the poller notices; and each such read costs several requests."""
IDLE_FACTOR = 3
"""A repository without submissions is polled this many times less often, and then half as often after every poll that
finds no change."""
MAX_IDLE_INTERVAL_MS = 10 * MINUTE
MAX_RETRY_INTERVAL_MS = MINUTE
MAX_PLAIN_RETRY_INTERVAL_MS = 10 * SECOND
MAX_CONCURRENT_POLLS = 8
POLL = "poll"
"""The poller as the source of an obstacle."""


@dataclass(eq=False)
class Poller:
    registry: QueueRegistry
    repositories: Repositories
    reader: PullRequestReader
    schedule_comments: Callable[[Repo, PullRequestNumber, str], None]
    background: Background
    leases: Leases
    obstacles: Obstacles
    _polled: dict[Repo, PolledRepository] = field(default_factory=dict, init=False)
    """The leased repositories."""
    _queues: WeakKeyDictionary[QueueActor, PolledQueue] = field(
        default_factory=WeakKeyDictionary[QueueActor, PolledQueue], init=False
    )
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT_POLLS), init=False)
    _searched_hosts: set[str] = field(default_factory=set, init=False)
    """Hosts that are being asked for changed repositories: a host that does not respond delays only itself."""

    def on_change(self, queue_actor: QueueActor, before: Queue | None) -> None:
        """Anything can have changed before this replica began to process the queue."""
        if before is None:
            self._queues[queue_actor] = PolledQueue()
        if before is None or _needs_poll(before, queue_actor.queue):
            self.wake(queue_actor.key.repo)

    def on_lease_lost(self, queue_actor: QueueActor) -> None:
        self._queues.pop(queue_actor, None)

    def wake(self, repo: Repo) -> None:
        """Something happened in this repository: ends its quiet time. The next poll is due at once, or after the usual
        interval since the last one, because a busy forge sends many notices."""
        polled = self._polled.get(repo)
        if polled is not None:
            host = self.repositories.hosts.get(repo.host)
            usual = 0 if host is None else host.poll_interval_ms
            polled.must_read, polled.quiet_polls = True, 0
            polled.next_poll_at = min(polled.next_poll_at, polled.polled_at + usual)

    async def poll_due(self) -> None:
        """Starts a poll of every leased repository that is due."""
        self._update_leased()
        now, due = self.registry.clock.now(), defaultdict[str, list[tuple[Repo, PolledRepository]]](list)
        for repo, polled in self._polled.items():
            if polled.next_poll_at <= now and not polled.in_progress:
                due[repo.host].append((repo, polled))
        for name in due.keys() - self._searched_hosts:
            self._searched_hosts.add(name)
            self.background.start(self._poll_changed(name, due[name]))

    def _update_leased(self) -> None:
        leased = dict[Repo, PolledRepository]()
        for queue_actor in self.registry:
            repo = queue_actor.key.repo
            if self.leases.has_lease(repo):
                polled = leased[repo] = self._polled.get(repo) or PolledRepository()
                polled.must_read |= self._queues.setdefault(queue_actor, PolledQueue()).needs_refresh
        self._polled = leased

    async def _poll_changed(self, name: str, due: Sequence[tuple[Repo, PolledRepository]]) -> None:
        """If the host does not respond, all of them are polled: that shows its outage to their queues."""
        host = self.repositories.hosts.get(name)
        must_read = [repo for repo, polled in due if polled.must_read]
        others = {repo: polled.numbers for repo, polled in due if not polled.must_read}
        try:
            changed = others if host is None or not others else await host.find_changed(others)
        except Exception as error:
            # Also an unexpected one, which would otherwise keep all repositories of the host from being read.
            if not isinstance(error, HostError):
                log.error("changed_repositories_not_found", host=name, error=str(error), exc_info=error)
            changed = others
        finally:
            self._searched_hosts.discard(name)
        for repo in (*must_read, *changed):
            polled = self._polled.get(repo)
            if polled is not None and not polled.in_progress:
                polled.in_progress = True
                self.background.start(self._poll(repo, polled))

    async def _poll(self, repo: Repo, polled: PolledRepository) -> None:
        queue_actors = self.registry.cached_by_repo(repo)
        polled.must_read = False
        polled.numbers = frozenset(
            submission.number for actor in queue_actors for submission in actor.queue.submissions.values()
        )
        try:
            async with self._slots:
                has_changed = await self._read_and_report(repo, polled, queue_actors)
            polled.failures, polled.quiet_polls = 0, 0 if has_changed else polled.quiet_polls + 1
        except (HostError, GitError) as error:
            polled.must_read = True
            polled.failures += 1
            for queue_actor in queue_actors:
                await _report_obstacle(queue_actor, self.obstacles.record(queue_actor, POLL, error))
        except (RequestRefused, LeaseLost, StoreUnavailable) as error:
            log.warning("repository_poll_failed", repo=str(repo), error=str(error))
            polled.must_read = True
        except BaseException:
            polled.must_read = True
            raise
        finally:
            polled.in_progress = False
            polled.polled_at = self.registry.clock.now()
            polled.next_poll_at = polled.polled_at + self._delay_ms(repo, polled, queue_actors)

    def _delay_ms(self, repo: Repo, polled: PolledRepository, queue_actors: tuple[QueueActor, ...]) -> int:
        host = self.repositories.hosts.get(repo.host)
        usual = 0 if host is None else host.poll_interval_ms
        if polled.failures:
            first, longest = (
                (2 * usual, MAX_RETRY_INTERVAL_MS) if usual else (POLL_INTERVAL_MS, MAX_PLAIN_RETRY_INTERVAL_MS)
            )
            return min(first * 2 ** min(polled.failures - 1, 10), max(usual, longest))
        submissions = [submission for actor in queue_actors for submission in actor.queue.submissions.values()]
        if any(_is_mergeability_pending(submission) for submission in submissions):
            return min(usual, CHECKING_INTERVAL_MS)
        if submissions or polled.must_read:
            return usual
        return min(IDLE_FACTOR * usual * 2 ** min(polled.quiet_polls, 10), max(usual, MAX_IDLE_INTERVAL_MS))

    async def _read_and_report(
        self, repo: Repo, polled: PolledRepository, queue_actors: tuple[QueueActor, ...]
    ) -> bool:
        """Returns whether something changed. Keeps the new refs only after all queues got the difference, so that a
        failed poll loses no change."""
        host = self.repositories.get_host(repo.host)
        with requests_for(_find_purpose(queue_actors)):
            refs = await host.refs(repo, {actor.key.branch for actor in queue_actors})
        changed = None if polled.refs is None else diff_refs(refs, polled.refs)
        for queue_actor in queue_actors:
            await self._report_changes(queue_actor, host, refs, changed)
        if changed is None or any(is_commit_ref(host, ref) for ref in changed):
            await self._refresh_head_index(repo, host, queue_actors, refs)
        if host.forge is not None:
            for number, fingerprint in fingerprint_pull_requests(host, refs, changed).items():
                self.schedule_comments(repo, number, fingerprint)
        polled.refs = refs
        # The read that was just requested can return an older tip, or none: the report is then repeated.
        if any(refs.get(branch_ref(actor.key.branch)) != actor.queue.target_branch.tip for actor in queue_actors):
            polled.must_read = True
        return changed is None or len(changed) > 0

    async def _report_changes(self, queue_actor: QueueActor, host: Host, refs: Refs, changed: set[str] | None) -> None:
        polled, tip = self._queues.setdefault(queue_actor, PolledQueue()), queue_actor.queue.target_branch.tip
        needs_refresh, polled.needs_refresh = polled.needs_refresh, False
        try:
            events = (
                *derive_dirty_events(queue_actor, host, refs, None if needs_refresh else changed),
                *self._recheck_unmergeable(queue_actor, polled, host),
                *self._recheck_rules(queue_actor, polled, host),
            )
            await _submit(queue_actor, (*self.obstacles.clear(queue_actor, POLL), *events))
        except BaseException:
            polled.needs_refresh = True
            raise
        polled.tip = tip

    def _recheck_unmergeable(self, queue_actor: QueueActor, polled: PolledQueue, host: Host) -> Iterator[Event]:
        """On another tip, a pull request that was not mergeable can be mergeable, a pull request can be part of the
        target branch, and other paths can be guarded from forks. A Git host that reports mergeability itself can also
        change its answer at any time, without a notice."""
        tip = queue_actor.queue.target_branch.tip
        has_moved = polled.tip != tip
        if tip is None or not (has_moved or host.reports_mergeability):
            return
        now = self.registry.clock.now()
        is_conflict_due, is_requirement_due = (
            now >= polled.next_conflict_check_at,
            now >= polled.next_requirement_check_at,
        )
        if is_conflict_due:
            polled.next_conflict_check_at = now + CONFLICT_RECHECK_MS
        if is_requirement_due:
            polled.next_requirement_check_at = now + REQUIREMENT_RECHECK_MS
        for submission in queue_actor.queue.submissions.values():
            pull_request = submission.pull_request
            may_differ = submission.state is PullRequestState.NOT_READY and not pull_request.is_mergeable
            if host.reports_mergeability and pull_request.mergeability is Mergeability.NOT_MERGEABLE:
                may_differ = may_differ and is_conflict_due
            elif host.reports_mergeability and pull_request.unmet_requirements:
                may_differ = may_differ and (is_requirement_due or (has_moved and _is_blocked_by_rule(pull_request)))
            guards_may_differ = has_moved and pull_request.fork and not submission.by_maintainer
            if (
                may_differ
                or guards_may_differ
                or self.reader.is_known_contained(queue_actor, submission.number, pull_request.head)
            ):
                yield PullRequestDirty(number=submission.number)

    def _recheck_rules(self, queue_actor: QueueActor, polled: PolledQueue, host: Host) -> Iterator[Event]:
        """Forges send no notice when other statuses become required, so they are asked every minute. Not during a
        landing, which waits for every read of the target branch."""
        now = self.registry.clock.now()
        is_landing = queue_actor.queue.landing is not None
        if host.forge is None or is_landing or now < polled.next_rules_check_at:
            return
        polled.next_rules_check_at = now + MINUTE
        yield TargetBranchDirty()

    async def _refresh_head_index(
        self, repo: Repo, host: Host, queue_actors: tuple[QueueActor, ...], refs: Refs
    ) -> None:
        """Without submissions the heads are fetched only when the first one is read."""
        heads = list_heads(host, refs)
        if not any(len(actor.queue.submissions) for actor in queue_actors):
            self.reader.postpone_head_refresh(repo, heads)
            return
        target_refs = {branch_ref(actor.key.branch) for actor in queue_actors} & refs.keys()
        if target_refs:
            context = await self.repositories.open_context(queue_actors[0])
            await self.reader.refresh_head_index(context, target_refs, heads)


def _find_purpose(queue_actors: Sequence[QueueActor]) -> RequestPurpose:
    """The poll of a repository shows a landing that the tip has moved, and a run that its pull request changed."""
    if any(actor.queue.submission_ids_under_test for actor in queue_actors):
        return RequestPurpose.MERGING
    return RequestPurpose.WAITING


def _is_blocked_by_rule(pull_request: PullRequest) -> bool:
    """For example until another pull request is merged."""
    return any(each.reason is Reason.BLOCKED_BY_HOST_RULE for each in pull_request.unmet_requirements)


def _needs_poll(before: Queue, queue: Queue) -> bool:
    """Pull requests that were not mergeable are read again on another tip; while pull requests wait, changes of them
    must be seen soon; and a host is polled again when it responds again. It is also polled when it failed to respond to
    a task: without submissions, no other read would find that it responds."""
    return (
        before.submissions is not queue.submissions
        or before.target_branch.tip != queue.target_branch.tip
        or (before.obstacle is None) is not (queue.obstacle is None)
    )


def _is_mergeability_pending(submission: Submission) -> bool:
    pull_request = submission.pull_request
    is_checking = pull_request.mergeability is Mergeability.CHECKING and not pull_request.unmet_requirements
    return submission.state is PullRequestState.NOT_READY and is_checking


async def _report_obstacle(queue_actor: QueueActor, event: Event) -> None:
    try:
        await queue_actor.submit(event)
    except (RequestRefused, StoreUnavailable) as error:
        log.warning("queue_event_not_stored", queue=str(queue_actor.key), error=str(error))


async def _submit(queue_actor: QueueActor, events: tuple[Event, ...]) -> None:
    if not queue_actor.is_closed and events:
        await queue_actor.submit(*events)
