"""Writes the figures of queues in the Prometheus text format, every series of every track, also at zero."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mergeyard.domain.states import PrState
from mergeyard.service.figures import Figures, QueueFigures

BUCKETS = (60, 300, 600, 900, 1800, 3600, 5400, 7200)
CONCLUSIONS = (PrState.MERGED, PrState.FAILED, PrState.CANCELLED)
LABELS = ("repo", "host", "branch", "queue_type")
Track = tuple[tuple[str, ...], Figures]
"""One track of a queue, with the values of its labels."""


def written(queues: Iterable[QueueFigures]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Once([track for queue in queues for track in _tracks(queue)]))
    return generate_latest(registry)


class _Once(Collector):
    def __init__(self, tracks: Sequence[Track]) -> None:
        self._tracks = tracks

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        depth = GaugeMetricFamily("mq_depth_current", "Pull requests in the queue.", labels=LABELS)
        awaiting = GaugeMetricFamily("mq_awaiting_mergeability", "Pull requests that are not ready.", labels=LABELS)
        slots = GaugeMetricFamily("mq_testing_slots_active", "Pull requests under test.", labels=LABELS)
        concluded = GaugeMetricFamily(
            "mq_pr_conclusions_1h_total", "How stays ended in the last hour.", labels=(*LABELS, "conclusion")
        )
        restarts = GaugeMetricFamily(
            "mq_pr_restarts_1h_total", "Pull requests that had to be tested again, in the last hour.", labels=LABELS
        )
        for labels, figures in self._tracks:
            depth.add_metric(labels, figures.depth)
            awaiting.add_metric(labels, figures.awaiting)
            slots.add_metric(labels, figures.slots)
            restarts.add_metric(labels, figures.restarts)
            for conclusion in CONCLUSIONS:
                concluded.add_metric((*labels, conclusion.value), figures.conclusions.get(conclusion, 0))
        yield from (depth, awaiting, slots, concluded, restarts)
        yield from self._histograms()

    def _histograms(self) -> Iterator[Metric]:
        waits = HistogramMetricFamily(
            "mq_pr_wait_duration_1h_seconds", "From admission to testing, in the last hour.", labels=LABELS
        )
        tests = HistogramMetricFamily(
            "mq_pr_test_duration_1h_seconds", "Time in testing, in the last hour.", labels=LABELS
        )
        stays = HistogramMetricFamily(
            "mq_pr_time_in_queue_1h_seconds", "From admission to the end, in the last hour.", labels=LABELS
        )
        for labels, figures in self._tracks:
            waits.add_metric(labels, _buckets(figures.waits), sum(figures.waits))
            tests.add_metric(labels, _buckets(figures.tests), sum(figures.tests))
            stays.add_metric(labels, _buckets(figures.stays), sum(figures.stays))
        yield from (waits, tests, stays)


def _tracks(queue: QueueFigures) -> tuple[Track, Track]:
    repo = queue.key.repo
    place = (f"{repo.owner}/{repo.name}", repo.host, queue.key.branch)
    return ((*place, "main"), queue.main), ((*place, "bisection"), queue.bisection)


def _buckets(seconds: Sequence[float]) -> list[tuple[str, float]]:
    """How many lasted at most so long; a bound belongs to its own bucket."""
    fell = [0] * (len(BUCKETS) + 1)
    for second in seconds:
        fell[bisect_left(BUCKETS, second)] += 1
    bounds = [*map(str, BUCKETS), "+Inf"]
    return [(bound, float(sum(fell[: at + 1]))) for at, bound in enumerate(bounds)]
