"""The endpoints about queues, test runs, events and metrics."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Annotated
from urllib.parse import parse_qsl

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import asdict, replace
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mergeyard.api import presenting, response_schemas
from mergeyard.api import request_schemas as r
from mergeyard.api.endpoint import Call, Endpoints, repository_not_found
from mergeyard.api.fields import format_time
from mergeyard.api.presenting import encode
from mergeyard.api.request_schemas import QueueRequest, Repository, describe
from mergeyard.api.response_schemas import PrNumber, ResponseBody, Timestamp
from mergeyard.api.responses import invalid_request
from mergeyard.domain.config import Config
from mergeyard.domain.events import MismatchKind
from mergeyard.domain.ids import QueueKey, Sha
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.states import PullRequestState, QueueState
from mergeyard.domain.timestamps import SECOND, later
from mergeyard.ports.forge import ChecksFrom
from mergeyard.service.analytics import QueueMetrics, QueueTypeMetrics
from mergeyard.service.audit_log import encode_actor
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.git_names import is_owner, is_repository_name
from mergeyard.service.merge_audit.auditor import DEFAULT_AUDITED_MERGES
from mergeyard.service.merge_audit.compare import AuditReport, Verdict
from mergeyard.service.merge_audit.records import LandingForm
from mergeyard.service.service import Service
from mergeyard.service.views import QueueView

STATUS_ACCEPTED = encode(response_schemas.StatusAccepted())


class RunEndpoints(Endpoints):
    def __init__(self, service: Service, public_url: str) -> None:
        super().__init__(service)
        self._public_url = public_url

    async def details(self, call: Call) -> bytes:
        request: r.GetMergeQueueTestingDetails = call.request
        key = self._resolve_queue(call)
        view = await self._service.runs.view_run(key, request.test_run_id)
        return encode(presenting.present_run(self._public_url, key.repo, view))

    async def results(self, call: Call) -> bytes:
        request: r.ListMergeQueueTestingResults = call.request
        until = later(self._service.clock.now(), 1) if not isinstance(request.until, int) else request.until
        key = self._resolve_queue(call)
        page, total = await self._service.runs.list_testing_results(
            key, request.since, until, request.offset, request.take
        )
        return encode(
            response_schemas.TestingResults(
                testing_results=tuple(map(presenting.present_testing_result, page)), total_items=total
            )
        )

    async def report_status(self, call: Call) -> bytes:
        request: r.ReportCommitStatus = call.request
        repo = self._resolve_repo(call, request.repo.repo)
        host = self._service.repositories.get_host(repo.host)
        if host.checks_from is not ChecksFrom.API:
            detail = f'{repo.host} does not take checks from the API: set `checks = "api"` in its configuration.'
            raise RequestRefused(Code.HOST_NOT_ALLOWED, detail)
        if not await host.has_repository(repo):
            raise repository_not_found(repo)
        status = Status(
            context=request.context,
            state=StatusState(request.state),
            at=self._service.clock.now(),
            url=request.url or "",
            description=request.description or "",
        )
        await self._service.statuses.report(
            repo, Sha(request.sha), status, call.idempotent_request, STATUS_ACCEPTED, call.token.id
        )
        return STATUS_ACCEPTED


MAX_LONG_POLLS_PER_TOKEN = 20


class EventEndpoints(Endpoints):
    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._polls = Counter[str]()
        """The number of waiting requests by token."""

    async def list(self, call: Call) -> bytes:
        request: r.ListEvents = call.request
        key = self._resolve_queue(call)
        with self._count_poll(call) if request.wait_seconds else nullcontext():
            entries = await self._service.event_feed.read_after(
                key, request.after, request.take, request.wait_seconds * SECOND
            )
        last = entries[-1].cursor if entries else request.after
        events = tuple(
            response_schemas.QueueEvent(
                cursor=str(entry.cursor), message=entry.payload.message, **asdict(entry.payload.event)
            )
            for entry in entries
        )
        return encode(response_schemas.Events(events=events, next=str(last)))

    @contextmanager
    def _count_poll(self, call: Call) -> Generator[None]:
        """A waiting request occupies a connection: one token must not occupy all of them."""
        if self._polls[call.token.id] >= MAX_LONG_POLLS_PER_TOKEN:
            detail = f"This token already waits for events {MAX_LONG_POLLS_PER_TOKEN} times: retry without waitSeconds."
            raise RequestRefused(Code.RATE_LIMITED, detail)
        self._polls[call.token.id] += 1
        try:
            yield
        finally:
            self._polls[call.token.id] -= 1
            self._polls = +self._polls


BUCKETS_S = (60, 300, 600, 900, 1800, 3600, 5400, 7200)
CONCLUSIONS = (PullRequestState.MERGED, PullRequestState.FAILED, PullRequestState.CANCELLED)
METRIC_LABELS = ("repo", "host", "branch", "queue_type")
LabeledMetrics = tuple[tuple[str, ...], QueueTypeMetrics]
"""The metrics of one queue type (main or bisection), with their label values."""


def format_metrics(queues: Iterable[QueueMetrics]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_SnapshotCollector([labeled for queue in queues for labeled in _by_queue_type(queue)]))
    return generate_latest(registry)


class _SnapshotCollector(Collector):
    def __init__(self, snapshot: Sequence[LabeledMetrics]) -> None:
        self._snapshot = snapshot

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        yield self._gauge("mq_depth_current", "Pull requests in the queue.", lambda metrics: metrics.depth)
        yield self._gauge(
            "mq_awaiting_mergeability", "Pull requests that are not ready.", lambda metrics: metrics.not_ready
        )
        yield self._gauge("mq_testing_slots_active", "Pull requests in testing.", lambda metrics: metrics.testing)
        yield self._conclusions()
        restarts = "Pull requests that went back from testing to pending, in the last hour."
        yield self._gauge("mq_pr_restarts_1h_total", restarts, lambda metrics: metrics.restarts)
        waits = "From admission to testing, in the last hour."
        yield self._histogram("mq_pr_wait_duration_1h_seconds", waits, lambda metrics: metrics.wait_seconds)
        tests = "Time in testing, in the last hour."
        yield self._histogram("mq_pr_test_duration_1h_seconds", tests, lambda metrics: metrics.test_seconds)
        times_in_queue = "From admission to the end, in the last hour."
        yield self._histogram("mq_pr_time_in_queue_1h_seconds", times_in_queue, lambda metrics: metrics.queue_seconds)

    def _gauge(self, name: str, text: str, get_value: Callable[[QueueTypeMetrics], int]) -> Metric:
        gauge = GaugeMetricFamily(name, text, labels=METRIC_LABELS)
        for labels, metrics in self._snapshot:
            gauge.add_metric(labels, get_value(metrics))
        return gauge

    def _conclusions(self) -> Metric:
        text = "How submissions ended in the last hour."
        gauge = GaugeMetricFamily("mq_pr_conclusions_1h_total", text, labels=(*METRIC_LABELS, "conclusion"))
        for labels, metrics in self._snapshot:
            for conclusion in CONCLUSIONS:
                gauge.add_metric((*labels, conclusion.value), metrics.conclusions.get(conclusion, 0))
        return gauge

    def _histogram(self, name: str, text: str, get_seconds: Callable[[QueueTypeMetrics], Sequence[float]]) -> Metric:
        histogram = HistogramMetricFamily(name, text, labels=METRIC_LABELS)
        for labels, metrics in self._snapshot:
            seconds = get_seconds(metrics)
            histogram.add_metric(labels, _buckets(seconds), sum(seconds))
        return histogram


def _by_queue_type(queue: QueueMetrics) -> tuple[LabeledMetrics, LabeledMetrics]:
    repo = queue.key.repo
    labels = (f"{repo.owner}/{repo.name}", repo.host, queue.key.branch)
    return ((*labels, "main"), queue.main), ((*labels, "bisection"), queue.bisection)


def _buckets(seconds: Sequence[float]) -> list[tuple[str, float]]:
    """Cumulative counts; a value equal to a bound counts in that bucket."""
    counts = [0] * (len(BUCKETS_S) + 1)
    for duration in seconds:
        counts[bisect_left(BUCKETS_S, duration)] += 1
    bounds = [*map(str, BUCKETS_S), "+Inf"]
    return [(bound, float(sum(counts[: at + 1]))) for at, bound in enumerate(bounds)]


class QueueEndpoints(Endpoints):
    async def create(self, call: Call) -> bytes:
        request: r.QueueSettingsRequest = call.request
        config = replace(Config(), **request.given_settings)
        key = QueueKey(self._resolve_repo(call, request.key.repo), request.key.branch)
        return await self._service.queues.create(
            key, config, encode_actor(call.token), _encode_with_pull_requests, call.idempotent_request
        )

    async def update(self, call: Call) -> bytes:
        request: r.UpdateQueueBase = call.request
        key = self._resolve_queue(call)
        state = None if isinstance(request.state, UnsetType) else QueueState(request.state)
        queues = self._service.queues
        return await queues.update(
            key,
            request.given_settings,
            state,
            encode_actor(call.token),
            _encode_view,
            call.idempotent_request,
            request.state_reason or "",
        )

    async def wait_for_pause(self, call: Call) -> None:
        """A repeated request to pause also returns only when no push is in flight."""
        request: r.UpdateQueueBase = call.request
        if request.state == QueueState.PAUSED:
            await self._service.queues.wait_for_landing(self._resolve_queue(call))

    async def get(self, call: Call) -> bytes:
        return _encode_with_pull_requests(await self._service.queues.read(self._resolve_queue(call)))

    async def delete(self, call: Call) -> bytes:
        key = self._resolve_queue(call)
        response = encode(response_schemas.QueueDeleted(repo=Repository.from_repo(key.repo), target_branch=key.branch))
        return await self._service.queues.delete(key, encode_actor(call.token), response, call.idempotent_request)

    async def list(self, call: Call) -> bytes:
        views = await self._service.queues.list_visible(call.token)
        return encode(response_schemas.Queues(queues=tuple(map(presenting.present_queue, views))))

    async def metrics(self, call: Call) -> bytes:
        request: r.GetMergeQueueMetrics = call.request
        host, repo = request.host_filter, request.repo_filter
        if repo is not None:
            repo = self._service.repositories.canonical_repo(repo, call.token)
        if host is not None:
            self._service.repositories.get_host(host, call.token)
        metrics = await self._service.queue_metrics.read_visible(call.token, repo)
        if repo is not None and not metrics:
            raise RequestRefused(Code.QUEUE_NOT_FOUND, f"There is no queue for {repo}: check the names, or create one.")
        return format_metrics(queue for queue in metrics if host in (None, queue.key.repo.host))

    async def verify_landings(self, call: Call) -> bytes:
        request: VerifyLandings = call.request
        report = await self._service.merge_auditor.audit_on_request(self._resolve_queue(call), request.last)
        return encode(_present_report(report))


def parse_metrics_query(query: bytes) -> r.GetMergeQueueMetrics:
    try:
        pairs = parse_qsl(query.decode(), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError:
        raise invalid_request("", "expected a query of `name=value` pairs in UTF-8") from None
    given = [(name, value) for name, value in pairs if name in ("repo", "repoHost")]
    parameters = dict(given)
    if len(parameters) != len(given):
        raise invalid_request("", "`repo` and `repoHost` must not be repeated in the query")
    if "repo" in parameters and "repoHost" not in parameters:
        raise invalid_request("", "`repo` must be given together with `repoHost` in the query")
    request = r.GetMergeQueueMetrics(repo=parameters.get("repo", UNSET), repo_host=parameters.get("repoHost", UNSET))
    repo = request.repo_filter
    if request.host_filter == "" or (repo is not None and not (is_owner(repo.owner) and is_repository_name(repo.name))):
        raise invalid_request("", "`repo` must be `owner/name`, and `repoHost` the name of a Git host")
    return request


def _encode_with_pull_requests(view: QueueView) -> bytes:
    return encode(presenting.present_queue(view, with_pull_requests=True))


def _encode_view(view: QueueView) -> bytes:
    return encode(presenting.present_queue(view))


class VerifyLandings(QueueRequest, frozen=True, kw_only=True):
    last: Annotated[int, Meta(ge=1, le=200, description="How many of the latest merges to verify.")] = (
        DEFAULT_AUDITED_MERGES
    )


class VerifiedLanding(ResponseBody, frozen=True, kw_only=True):
    pr_number: PrNumber
    merged_sha: Annotated[str | None, describe("Its own commit on the target branch, as recorded.")]
    verified_by_test_run: Annotated[str | None, describe("The test run that verified its merge, if any.")]
    landed_at: Annotated[Timestamp, describe("When it was merged.")]
    form: Annotated[LandingForm, describe("How it was merged.")]
    verdict: Annotated[Verdict, describe("The result of comparing it with the target branch.")]


class LandingMismatch(ResponseBody, frozen=True, kw_only=True):
    kind: Annotated[MismatchKind, describe("The kind of difference between the record and the target branch.")]
    pr_number: PrNumber
    sha: Annotated[str | None, describe("The commit that differs.")]
    message: Annotated[str, describe("What is wrong and what to do, as a sentence.")]


class VerifiedLandings(ResponseBody, frozen=True, kw_only=True):
    target_sha: Annotated[str | None, describe("The tip of the target branch; null when there was nothing to compare.")]
    landings: Annotated[tuple[VerifiedLanding, ...], describe("Oldest first.")]
    mismatches: Annotated[
        tuple[LandingMismatch, ...], describe("Empty when all is as tested; the queue pauses once for each.")
    ]
    notes: Annotated[tuple[str, ...], describe("Observations that do not pause the queue.")]


def _present_report(report: AuditReport) -> VerifiedLandings:
    return VerifiedLandings(
        target_sha=report.tip,
        landings=tuple(
            VerifiedLanding(
                pr_number=landing.number,
                merged_sha=landing.commit,
                verified_by_test_run=landing.run,
                landed_at=format_time(landing.landed_at),
                form=landing.form,
                verdict=report.verdict_of(landing),
            )
            for landing in report.landings
        ),
        mismatches=tuple(
            LandingMismatch(
                kind=mismatch.kind, pr_number=mismatch.number, sha=mismatch.commit, message=mismatch.message
            )
            for mismatch in report.mismatches
        ),
        notes=report.notes,
    )
