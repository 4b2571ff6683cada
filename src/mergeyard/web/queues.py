"""The list of queues, the page of one queue, and the page of its settings."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice

from msgspec import Struct
from starlette.responses import Response

from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import AUTO_PAUSE_REASONS, QueueState
from mergeyard.domain.timestamps import DAY, SECOND, Instant, later
from mergeyard.engine import estimates, priority
from mergeyard.ports.store import TransitionRow
from mergeyard.service import persistence
from mergeyard.service.analytics import AnalyticsReader, PeriodRecords, Summary, summarize
from mergeyard.service.audit_log import decode_actor_name
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.service import Service
from mergeyard.service.views import SubmissionView, SubmissionViewBuilder, render_reason
from mergeyard.web.queue_graph import BatchMark, build_queue_graph, find_batch_mark
from mergeyard.web.rendering import PageRequest, TimedCache

SUMMARY_TTL_MS = 10 * SECOND
"""An open page refreshes every 5 s, and the sums over 24 hours hardly change in that time."""
MAX_BATCHES_SHOWN = 10
MAX_NEXT_SHOWN = 4


class QueueRow(Struct, frozen=True, kw_only=True):
    """One queue on the page: its current content, and its figures for the last 24 hours."""

    key: QueueKey
    queue: Queue
    batch_marks: Sequence[BatchMark]
    """Of the first active batches."""
    next_to_merge: Sequence[PullRequestNumber]
    day: Summary


class QueuesPage:
    def __init__(self, service: Service) -> None:
        self._clock = service.clock
        self._histories = AnalyticsReader(service.store)
        self._summaries = TimedCache[tuple[QueueId, ...], Mapping[QueueId, Summary]](service.clock, SUMMARY_TTL_MS)

    async def show(self, page: PageRequest) -> Response:
        visible = await page.service.registry.list_visible(page.user.token)
        queue_actors = sorted(visible, key=lambda queue_actor: (str(queue_actor.key.repo), queue_actor.key.branch))
        hosts = page.service.repositories.hosts
        without_host = [queue_actor for queue_actor in queue_actors if queue_actor.key.repo.host not in hosts]
        queue_actors = [queue_actor for queue_actor in queue_actors if queue_actor.key.repo.host in hosts]
        queues = tuple(queue_actor.id for queue_actor in queue_actors)
        summaries = await self._summaries.get_or_compute(queues, lambda: self._summarize_last_day(queues))
        rows = [_build_row(queue_actor, summaries[queue_actor.id]) for queue_actor in queue_actors]
        return page.render("queues.html", rows=rows, without_host=without_host)

    async def _summarize_last_day(self, queues: Sequence[QueueId]) -> Mapping[QueueId, Summary]:
        now = self._clock.now()
        figures = defaultdict[QueueId, list[TransitionRow]](list)
        for figure in await self._histories.read_transitions(queues, later(now, -DAY), later(now, 1)):
            figures[figure.queue].append(figure)
        return {queue: summarize(PeriodRecords(figures[queue])) for queue in queues}


def _build_row(queue_actor: QueueActor, day: Summary) -> QueueRow:
    queue, batches = queue_actor.queue, queue_actor.queue.active.batches
    next_to_merge = batches[0].submission_ids[:MAX_NEXT_SHOWN] if batches else ()
    return QueueRow(
        key=queue_actor.key,
        queue=queue,
        batch_marks=[find_batch_mark(queue, batch) for batch in batches[:MAX_BATCHES_SHOWN]],
        next_to_merge=[queue.submissions[submission_id].number for submission_id in next_to_merge],
        day=day,
    )


MAX_ROWS = 20

STATE_MEANINGS = {
    QueueState.RUNNING: "Pull requests are admitted, tested and merged.",
    QueueState.PAUSED: "Nothing is admitted, started or merged. Running tests finish; all positions are kept.",
    QueueState.DRAINING: "Queued pull requests are tested and merged. Nothing new is admitted.",
    QueueState.SWITCHING_MODES: "Running tests finish first; then the queue continues in its new mode.",
}


class PullRequestList(Struct, frozen=True):
    """The first pull requests of a list, and the length of the whole list."""

    rows: Sequence[SubmissionView]
    count: int

    @property
    def more(self) -> int:
        return self.count - len(self.rows)


class ConcludedRow(Struct, frozen=True):
    submission: Submission
    message: str
    moves: bool
    """Whether the row carries the pull request's `data-moves` name. That name must be unique on the page, so a pull
    request that is in the queue again, or has a later row here, does not get it."""


async def show_queue(page: PageRequest) -> Response:
    service, key = page.service, page.resolve_queue()
    queue_actor = await service.registry.get(key)
    queue, now = queue_actor.queue, service.clock.now()
    views = SubmissionViewBuilder(queue, now, queue_actor.forecast)
    pause = await persistence.read_last_pause(service.store, queue)
    return page.render(
        "queue.html",
        key=key,
        queue=queue,
        meaning=STATE_MEANINGS[queue.state],
        pause=pause,
        paused_by="" if pause is None else decode_actor_name(pause.actor),
        alarm=render_reason(pause.reason) if pause is not None and pause.reason in AUTO_PAUSE_REASONS else "",
        warnings=service.branch_warnings.get_cached(key),
        queue_graph=build_queue_graph(queue, now),
        waiting=_list_waiting(queue, views, now),
        not_ready=_list_not_ready(queue, views),
        concluded=_list_concluded(queue, await persistence.read_concluded_submissions(service.store, queue, MAX_ROWS)),
        slots_taken=sum(run.is_active and run.kind is not RunKind.BISECTION for run in queue.runs.values()),
        usual_duration=estimates.median_run_duration_ms(queue),
        next_merge=_estimate_next_merge(queue, views),
    )


def _list_waiting(queue: Queue, views: SubmissionViewBuilder, now: Instant) -> PullRequestList:
    """In the order in which they will be tested; held pull requests last."""
    held = (queue.submissions[submission_id] for submission_id in queue.held)
    submissions = chain(priority.waiting_in_order(queue, now), held)
    return _list_first(views, submissions, sum(map(len, queue.waiting.values())) + len(queue.held))


def _list_not_ready(queue: Queue, views: SubmissionViewBuilder) -> PullRequestList:
    submissions = (queue.submissions[submission_id] for _, submission_id in queue.not_ready)
    return _list_first(views, submissions, len(queue.not_ready))


def _list_concluded(queue: Queue, concluded: Iterable[Submission]) -> list[ConcludedRow]:
    listed, rows = set[PullRequestNumber](), list[ConcludedRow]()
    for submission in concluded:
        moves = submission.number not in listed and submission.number not in queue.submission_by_number
        message = render_reason(submission.reason, submission.detail, stacked_on=submission.stacked_on)
        rows.append(ConcludedRow(submission, message, moves=moves))
        listed.add(submission.number)
    return rows


def _list_first(views: SubmissionViewBuilder, submissions: Iterable[Submission], count: int) -> PullRequestList:
    return PullRequestList(list(map(views.build, islice(submissions, MAX_ROWS))), count)


def _estimate_next_merge(queue: Queue, views: SubmissionViewBuilder) -> Instant | None:
    """When the first pull request of the active batches is expected to merge."""
    if not queue.active.batches:
        return None
    return views.build(queue.submissions[queue.active.batches[0].submission_ids[0]]).estimated_merge_at
