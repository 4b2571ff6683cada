"""Metrics in the Prometheus text format: the Prometheus parser reads every value, for any branch name."""

from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from mergeyard.api.queues import METRIC_LABELS, format_metrics
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.service.analytics import QueueMetrics, QueueTypeMetrics
from tests.fuzz.mutations import words
from tests.fuzz.properties import holds_for

seconds = st.lists(st.floats(min_value=0, max_value=1e7), max_size=5)
metric_values = st.builds(
    QueueTypeMetrics,
    depth=st.integers(0, 10**6),
    not_ready=st.integers(0, 10**6),
    testing=st.integers(0, 1000),
    conclusions=st.dictionaries(st.sampled_from(["merged", "failed", "cancelled"]), st.integers(0, 1000)),
    restarts=st.integers(0, 1000),
    wait_seconds=seconds,
    test_seconds=seconds,
    queue_seconds=seconds,
)
labels = words | st.sampled_from(['a"b', "a\\b", "a\\nb", "a}b", "a,b=", "é\u2028"])
keys = st.builds(QueueKey, st.builds(Repo, st.just("git.local"), labels, labels), labels)
queues = st.lists(
    st.builds(QueueMetrics, keys, metric_values, metric_values), max_size=3, unique_by=lambda queue: queue.key
)


@holds_for(queues)
def every_metric_can_be_parsed(all_queues: list[QueueMetrics]) -> None:
    text = format_metrics(all_queues).decode()
    read = {
        (sample.name, *(sample.labels[name] for name in METRIC_LABELS)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "le" not in sample.labels and "conclusion" not in sample.labels
    }
    for queue in all_queues:
        place = (f"{queue.key.repo.owner}/{queue.key.repo.name}", queue.key.repo.host, queue.key.branch)
        for queue_type, metrics in (("main", queue.main), ("bisection", queue.bisection)):
            assert read["mq_depth_current", *place, queue_type] == metrics.depth
            assert read["mq_awaiting_mergeability", *place, queue_type] == metrics.not_ready
            assert read["mq_testing_slots_active", *place, queue_type] == metrics.testing
            assert read["mq_pr_wait_duration_1h_seconds_count", *place, queue_type] == len(metrics.wait_seconds)
            assert read["mq_pr_time_in_queue_1h_seconds_count", *place, queue_type] == len(metrics.queue_seconds)
