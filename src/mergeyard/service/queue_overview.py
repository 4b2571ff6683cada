"""What the list of queues says about each queue, on the page, in the API and in a terminal: its problems, and how many
pull requests it has."""

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain, islice

from msgspec import Struct

from mergeyard.domain.ids import QueueId, QueueKey, SubmissionId
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import PullRequestState, QueueState, Reason
from mergeyard.domain.timestamps import DAY, HOUR, Instant, format_duration, later
from mergeyard.engine import admission, batching, blame, run_validity
from mergeyard.ports.external import Clock
from mergeyard.ports.store import Store
from mergeyard.service.analytics import AnalyticsReader
from mergeyard.service.queue_actor import QueueActor

STALLED_AFTER_MS = HOUR
OBSTACLE_PROBLEMS = {
    Reason.PROVIDER_UNAVAILABLE: "The queue cannot reach the repository at {host}",
    Reason.RATE_LIMITED: "{host} limits how many requests it accepts",
    Reason.PROVIDER_REFUSED: "{host} refuses what the queue asks of it",
    Reason.SERVER_FAILURE: "The server of the queue fails: see its log and disk",
}


class PullRequestCounts(Struct, frozen=True):
    queued: int
    """Also those that are ready, and that the queue admits when it runs again."""
    testing: int
    """In active batches and bisections, whatever the result so far; a part of `queued`."""
    not_ready: int


class QueueOverview(Struct, frozen=True):
    problems: tuple[str, ...]
    """Why an administrator should look at the queue, in addition to its state."""
    counts: PullRequestCounts


class OverviewReader:
    """For single requests. The page of all queues is open all day, and has the merges of the day from its summaries."""

    def __init__(self, store: Store, clock: Clock, hosts: Container[str]) -> None:
        self._histories = AnalyticsReader(store)
        self._clock = clock
        self._hosts = hosts

    async def read(self, queue_actors: Sequence[QueueActor]) -> Mapping[QueueId, QueueOverview]:
        now = self._clock.now()
        last_merges = await self._read_last_merges(queue_actors, now)
        overviews = dict[QueueId, QueueOverview]()
        for each in queue_actors:
            has_host = each.key.repo.host in self._hosts
            problems = list_problems(each.key, each.queue, last_merges.get(each.id), now, has_host=has_host)
            overviews[each.id] = QueueOverview(tuple(problems), count_pull_requests(each.queue))
        return overviews

    async def read_last_merge(self, queue_actor: QueueActor) -> Instant | None:
        """In the last 24 hours, and only of a queue in which a pull request has waited for long."""
        last_merges = await self._read_last_merges([queue_actor], self._clock.now())
        return last_merges.get(queue_actor.id)

    async def _read_last_merges(self, queue_actors: Sequence[QueueActor], now: Instant) -> Mapping[QueueId, Instant]:
        """Only of queues in which a pull request has waited for long: of others it does not matter."""
        stalled = [each.id for each in queue_actors if find_stalled_since(each.queue, now) is not None]
        if not stalled:
            return {}
        changes = await self._histories.read_transitions(stalled, later(now, -DAY), later(now, 1))
        merges = [change for change in changes if change.to == PullRequestState.MERGED]
        return {change.queue: change.at for change in sorted(merges, key=lambda change: change.at)}


def count_pull_requests(queue: Queue) -> PullRequestCounts:
    not_ready = len(queue.not_ready) - len(find_ready_but_not_admitted(queue))
    return PullRequestCounts(
        queued=len(queue.submissions) - not_ready,
        testing=len(queue.submission_ids_under_test),
        not_ready=not_ready,
    )


def find_ready_but_not_admitted(queue: Queue) -> Sequence[SubmissionId]:
    """The pull requests that have the state `not_ready` only because the queue does not admit any now: they wait."""
    if queue.state is QueueState.RUNNING:
        return ()
    submissions = (queue.submissions[submission_id] for _, submission_id in queue.not_ready)
    return [submission.id for submission in submissions if is_ready_while_not_running(queue, submission)]


def list_problems(
    key: QueueKey, queue: Queue, last_merge_at: Instant | None, now: Instant, *, has_host: bool = True
) -> Iterator[str]:
    """Why an administrator should look at the queue, in addition to its state. `last_merge_at`: in the last 24 hours;
    `has_host`: its Git host is configured."""
    if not has_host:
        yield f"{key.repo.host} is not configured"
        return
    untestable = find_untestable_reason(queue)
    if untestable is not None:
        yield "No required checks" if untestable is Reason.NO_REQUIRED_STATUSES else "Invalid .mergeyard.toml"
    if queue.target_branch.tip is None:
        yield f"Branch {key.branch} not found"
    if queue.obstacle is not None:
        yield OBSTACLE_PROBLEMS[queue.obstacle.reason].format(host=key.repo.host)
    yield from list_progress_problems(key, queue, last_merge_at, now)


def list_progress_problems(key: QueueKey, queue: Queue, last_merge_at: Instant | None, now: Instant) -> Iterator[str]:
    """Why nothing merges, although the queue can test and merge."""
    is_broken = queue.target_branch.tip in queue.target_branch.broken_bases
    if is_broken or blame.is_base_being_retried(queue):
        yield f"{key.branch} fails its required checks"
    oldest = find_stalled_since(queue, now)
    if oldest is not None and (last_merge_at is None or now - last_merge_at > STALLED_AFTER_MS):
        yield f"Nothing merged for {format_duration(now - (last_merge_at or oldest))}"


def find_untestable_reason(queue: Queue) -> Reason | None:
    """None also while the target branch does not exist: what it requires is not known then."""
    return None if queue.target_branch.tip is None else run_validity.untestable_reason(queue)


def find_stalled_since(queue: Queue, now: Instant) -> Instant | None:
    """The oldest admission, if it is so long ago that something should have merged since. Of the pull requests under
    test and the next waiting one; the others were admitted later or matter less."""
    under_test = (queue.submissions[submission_id] for submission_id in queue.submission_ids_under_test)
    next_waiting = islice(batching.waiting_in_order(queue, now), 1)
    admissions = (submission.admitted_at for submission in chain(under_test, next_waiting))
    oldest = min((at for at in admissions if at is not None), default=None)
    return oldest if oldest is not None and now - oldest > STALLED_AFTER_MS else None


def is_ready_while_not_running(queue: Queue, submission: Submission) -> bool:
    """As `SubmissionView.is_ready_while_not_running`, without a view."""
    return submission.state is PullRequestState.NOT_READY and admission.not_ready_reason(queue, submission) is None
