"""Metrics in the Prometheus text format: its own parser reads back every figure, whatever a branch is called."""

from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from mergeyard.api import metrics_text
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.service.figures import Figures, QueueFigures
from tests.fuzz.bending import words
from tests.fuzz.laws import holds_for

seconds = st.lists(st.floats(min_value=0, max_value=1e7), max_size=5)
figures = st.builds(
    Figures,
    depth=st.integers(0, 10**6),
    awaiting=st.integers(0, 10**6),
    slots=st.integers(0, 1000),
    conclusions=st.dictionaries(st.sampled_from(["merged", "failed", "cancelled"]), st.integers(0, 1000)),
    restarts=st.integers(0, 1000),
    waits=seconds,
    tests=seconds,
    stays=seconds,
)
labels = words | st.sampled_from(['a"b', "a\\b", "a\\nb", "a}b", "a,b=", "é\u2028"])
keys = st.builds(QueueKey, st.builds(Repo, st.just("git.local"), labels, labels), labels)
queues = st.lists(st.builds(QueueFigures, keys, figures, figures), max_size=3, unique_by=lambda queue: queue.key)


@holds_for(queues)
def every_figure_is_read_back(all_queues: list[QueueFigures]) -> None:
    text = metrics_text.written(all_queues).decode()
    read = {
        (sample.name, *(sample.labels[name] for name in metrics_text.LABELS)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "le" not in sample.labels and "conclusion" not in sample.labels
    }
    for queue in all_queues:
        place = (f"{queue.key.repo.owner}/{queue.key.repo.name}", queue.key.repo.host, queue.key.branch)
        for track, told in (("main", queue.main), ("bisection", queue.bisection)):
            assert read["mq_depth_current", *place, track] == told.depth
            assert read["mq_awaiting_mergeability", *place, track] == told.awaiting
            assert read["mq_testing_slots_active", *place, track] == told.slots
            assert read["mq_pr_wait_duration_1h_seconds_count", *place, track] == len(told.waits)
            assert read["mq_pr_time_in_queue_1h_seconds_count", *place, track] == len(told.stays)
