"""The list of queues, and the page of one queue."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from msgspec import Struct
from starlette.responses import Response

from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, RunId, SubmissionId
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import AUTO_PAUSE_REASONS, PullRequestState, QueueState
from mergeyard.domain.timestamps import DAY, SECOND, Instant, later
from mergeyard.engine import batching, estimates, run_validity
from mergeyard.ports.store import TransitionRow
from mergeyard.service import persistence
from mergeyard.service.analytics import AnalyticsReader, PeriodRecords, Summary, summarize
from mergeyard.service.audit_log import decode_actor_name
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.queue_overview import (
    PullRequestCounts,
    count_pull_requests,
    find_ready_but_not_admitted,
    find_untestable_reason,
    list_problems,
    list_progress_problems,
)
from mergeyard.service.runs import RunWithStatuses
from mergeyard.service.service import Service
from mergeyard.service.views import SubmissionView, SubmissionViewBuilder, render_reason, view_obstacle
from mergeyard.web.formats import QUEUE_STATE_LABELS, format_queue_name
from mergeyard.web.pull_request_list import (
    describe_end,
    find_last_run,
    measure_time_in_queue,
    pull_requests_url,
)
from mergeyard.web.queue_graph import BatchMark, QueueGraph, build_queue_graph, find_batch_mark
from mergeyard.web.rendering import PageRequest, TimedCache
from mergeyard.web.run_progress import CheckView, build_run_checks

SUMMARY_TTL_MS = 10 * SECOND
"""An open page refreshes every 5 s, and the sums over 24 hours hardly change in that time."""
MAX_BATCHES_SHOWN = 10
MAX_NEXT_SHOWN = 4
MIN_QUEUES_FOR_TABLE = 10


class DaySummary(Struct, frozen=True):
    summary: Summary
    last_merge_at: Instant | None


class QueueRow(Struct, frozen=True, kw_only=True):
    """One queue on the page: its current content, and its figures for the last 24 hours."""

    key: QueueKey
    queue: Queue
    problems: Sequence[str]
    """Why an administrator should look at the queue."""
    batch_marks: Sequence[BatchMark]
    """Of the first active batches."""
    next_to_merge: Sequence[PullRequestNumber]
    counts: PullRequestCounts
    day: Summary


class QueuesPage:
    def __init__(self, service: Service) -> None:
        self._clock = service.clock
        self._histories = AnalyticsReader(service.store)
        self._summaries = TimedCache[tuple[QueueId, ...], Mapping[QueueId, DaySummary]](service.clock, SUMMARY_TTL_MS)

    async def show(self, page: PageRequest) -> Response:
        """Queues with a problem come first, then by name. The parameter `q` selects those whose name contains it."""
        visible = await page.service.registry.list_visible(page.user.token)
        queue_actors = sorted(visible, key=lambda queue_actor: (str(queue_actor.key.repo), queue_actor.key.branch))
        hosts = page.service.repositories.hosts
        without_host = [queue_actor for queue_actor in queue_actors if queue_actor.key.repo.host not in hosts]
        queue_actors = [queue_actor for queue_actor in queue_actors if queue_actor.key.repo.host in hosts]
        queues = tuple(queue_actor.id for queue_actor in queue_actors)
        summaries = await self._summaries.get_or_compute(queues, lambda: self._summarize_last_day(queues))
        text, now = page.query.get("q", "").strip(), self._clock.now()
        rows = [
            _build_row(queue_actor, summaries[queue_actor.id], now)
            for queue_actor in queue_actors
            if text.casefold() in format_queue_name(queue_actor.key).casefold()
        ]
        return page.render(
            "queues.html",
            rows=sorted(rows, key=lambda row: not row.problems),
            queue_count=len(queue_actors),
            as_table=len(queue_actors) >= MIN_QUEUES_FOR_TABLE,
            text=text,
            without_host=without_host,
        )

    async def _summarize_last_day(self, queues: Sequence[QueueId]) -> Mapping[QueueId, DaySummary]:
        now = self._clock.now()
        figures = defaultdict[QueueId, list[TransitionRow]](list)
        for figure in await self._histories.read_transitions(queues, later(now, -DAY), later(now, 1)):
            figures[figure.queue].append(figure)
        return {queue: _summarize_day(figures[queue]) for queue in queues}


def _summarize_day(transitions: list[TransitionRow]) -> DaySummary:
    merges = (transition.at for transition in transitions if transition.to == PullRequestState.MERGED)
    return DaySummary(summarize(PeriodRecords(transitions)), max(merges, default=None))


def _build_row(queue_actor: QueueActor, day: DaySummary, now: Instant) -> QueueRow:
    queue, batches = queue_actor.queue, queue_actor.queue.active.batches
    next_to_merge = batches[0].submission_ids[:MAX_NEXT_SHOWN] if batches else ()
    return QueueRow(
        key=queue_actor.key,
        queue=queue,
        problems=[*_describe_stop(queue), *list_problems(queue_actor.key, queue, day.last_merge_at, now)],
        batch_marks=[find_batch_mark(queue, batch) for batch in batches[:MAX_BATCHES_SHOWN]],
        next_to_merge=[queue.submissions[submission_id].number for submission_id in next_to_merge],
        counts=count_pull_requests(queue),
        day=day.summary,
    )


def _describe_stop(queue: Queue) -> Iterator[str]:
    if queue.state is not QueueState.RUNNING:
        yield QUEUE_STATE_LABELS[queue.state] + (f": {queue.state_reason}" if queue.state_reason else "")


MAX_ROWS = 20
MAX_FAILING_RUNS_READ = 10
"""For more failing runs the page links the run instead of the CI system: each one is a query."""

STATE_MEANINGS = {
    QueueState.RUNNING: "",
    QueueState.PAUSED: "Nothing is admitted, started or merged. Running tests finish; all positions are kept.",
    QueueState.DRAINING: "Queued pull requests are tested and merged. New ones wait.",
    QueueState.SWITCHING_MODES: "Running tests finish first; then the queue continues in its new mode.",
}


class PullRequestList(Struct, frozen=True):
    """The first pull requests of a list, and the length of the whole list."""

    rows: Sequence[SubmissionView]
    count: int

    @property
    def more(self) -> int:
        return self.count - len(self.rows)


class FinishedRow(Struct, frozen=True):
    submission: Submission
    message: str
    """Empty for a pull request that merged as tested: there is nothing to explain."""
    failing_checks: tuple[str, ...]
    moves: bool
    """Whether the row carries the pull request's `data-moves` name. That name must be unique on the page, so a pull
    request that is in the queue again, or has a later row here, does not get it."""

    @property
    def ms_in_queue(self) -> int:
        return measure_time_in_queue(self.submission)

    @property
    def deciding_run(self) -> RunId | None:
        return find_last_run(self.submission)


async def show_queue(page: PageRequest) -> Response:
    service, key = page.service, page.resolve_queue()
    queue_actor = await service.registry.get(key)
    queue, now = queue_actor.queue, service.clock.now()
    views = SubmissionViewBuilder(queue, now, queue_actor.forecast)
    changes = await persistence.read_last_state_changes(service.store, queue)
    problems = [change.reason for change in changes if change.reason in AUTO_PAUSE_REASONS]
    graph = build_queue_graph(queue, now)
    ready = find_ready_but_not_admitted(queue)
    last_merge_at = await service.queues.overviews.read_last_merge(queue_actor)
    return page.render(
        "queue.html",
        key=key,
        queue=queue,
        pull_requests_url=pull_requests_url,
        meaning=STATE_MEANINGS[queue.state],
        changes=[(change, decode_actor_name(change.actor)) for change in changes],
        alarm=render_reason(problems[-1]) if problems else "",
        untestable=find_untestable_reason(queue),
        config_error=run_validity.required_statuses(queue).config_error,
        obstacle=view_obstacle(queue),
        progress_problems=list(list_progress_problems(key, queue, last_merge_at, now)),
        warnings=service.branch_warnings.get_cached(key, queue.config),
        queue_graph=graph,
        failing_checks=await _read_failing_checks(service, key, graph),
        waiting=_list_waiting(queue, views, ready, now),
        not_ready=_list_not_ready(queue, views, ready),
        finished=await _list_finished(service, key, queue),
        slots_taken=sum(run.is_active and run.kind is not RunKind.BISECTION for run in queue.runs.values()),
        bisection_runs=sum(run.is_active and run.kind is RunKind.BISECTION for run in queue.runs.values()),
        typical_duration=estimates.median_run_duration_ms(queue),
        next_merge=views.view_next_merge(),
    )


async def _read_failing_checks(
    service: Service, key: QueueKey, graph: QueueGraph
) -> Mapping[RunId, Sequence[CheckView]]:
    """The checks because of which the runs on the page fail, with links to the CI system."""
    source = service.repositories.get_host(key.repo.host).checks_from
    failing = dict[RunId, Sequence[CheckView]]()
    for index, run in enumerate(graph.failing_runs):
        statuses = await service.store.statuses(key.repo, run.checked_commit) if index < MAX_FAILING_RUNS_READ else ()
        failing[run.id] = build_run_checks(RunWithStatuses(run, tuple(statuses)), source).culprits
    return failing


def _list_waiting(
    queue: Queue, views: SubmissionViewBuilder, ready: Sequence[SubmissionId], now: Instant
) -> PullRequestList:
    """In the order in which they will be tested; then held pull requests, then those that the queue does not admit."""
    rest = (queue.submissions[submission_id] for submission_id in chain(queue.held, ready))
    submissions = chain(batching.waiting_in_order(queue, now), rest)
    return _list_first(views, submissions, sum(map(len, queue.waiting.values())) + len(queue.held) + len(ready))


def _list_not_ready(queue: Queue, views: SubmissionViewBuilder, ready: Sequence[SubmissionId]) -> PullRequestList:
    waiting = frozenset(ready)
    submission_ids = (submission_id for _, submission_id in queue.not_ready if submission_id not in waiting)
    submissions = (queue.submissions[submission_id] for submission_id in submission_ids)
    return _list_first(views, submissions, len(queue.not_ready) - len(ready))


async def _list_finished(service: Service, key: QueueKey, queue: Queue) -> list[FinishedRow]:
    listed, rows = set[PullRequestNumber](), list[FinishedRow]()
    for submission in await persistence.read_concluded_submissions(service.store, queue, MAX_ROWS):
        moves = submission.number not in listed and submission.number not in queue.submission_by_number
        failing_checks = await service.runs.read_failing_checks(key, submission)
        rows.append(FinishedRow(submission, describe_end(submission), failing_checks, moves=moves))
        listed.add(submission.number)
    return rows


def _list_first(views: SubmissionViewBuilder, submissions: Iterable[Submission], count: int) -> PullRequestList:
    return PullRequestList(list(map(views.build, islice(submissions, MAX_ROWS))), count)
