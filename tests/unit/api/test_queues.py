"""Queue metrics: their query, and a format in which Prometheus reads every series, also at zero."""

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mergeyard.api.queues import format_metrics, parse_metrics_query
from mergeyard.api.responses import ApiError
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.service.analytics import QueueMetrics, QueueTypeMetrics

KEY = QueueKey(Repo("git.local", "acme", "app"), "main")
GAUGES = {
    "mq_depth_current",
    "mq_awaiting_mergeability",
    "mq_testing_slots_active",
    "mq_pr_conclusions_1h_total",
    "mq_pr_restarts_1h_total",
}
HISTOGRAMS = {"mq_pr_wait_duration_1h_seconds", "mq_pr_test_duration_1h_seconds", "mq_pr_time_in_queue_1h_seconds"}


def families(*queues: QueueMetrics) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(format_metrics(queues).decode())}


def value(found: dict[str, Any], family: str, sample: str = "", **labels: str) -> float:
    samples = found[family].samples
    (only,) = [one for one in samples if one.name == (sample or family) and labels.items() <= one.labels.items()]
    return only.value


def test_the_names_and_types_are_those_of_the_contract():
    found = families(QueueMetrics(KEY))
    assert {name for name, family in found.items() if family.type == "gauge"} == GAUGES
    assert {name for name, family in found.items() if family.type == "histogram"} == HISTOGRAMS
    assert set(found) == GAUGES | HISTOGRAMS


def test_every_series_has_every_label_for_both_queue_types():
    for family in families(QueueMetrics(KEY)).values():
        for sample in family.samples:
            assert {"repo", "host", "branch", "queue_type"} <= sample.labels.keys()
            assert (sample.labels["repo"], sample.labels["host"], sample.value) == ("acme/app", "git.local", 0)
        assert {sample.labels["queue_type"] for sample in family.samples} == {"main", "bisection"}


def test_conclusions_are_counted_by_kind_also_at_zero():
    found = families(QueueMetrics(KEY, main=QueueTypeMetrics(conclusions={"merged": 3})))
    family = "mq_pr_conclusions_1h_total"
    assert value(found, family, conclusion="merged", queue_type="main") == 3
    assert value(found, family, conclusion="failed", queue_type="main") == 0
    assert value(found, family, conclusion="cancelled", queue_type="bisection") == 0


def test_a_duration_falls_into_every_bucket_that_is_long_enough():
    found = families(QueueMetrics(KEY, bisection=QueueTypeMetrics(test_seconds=[60.0, 60.5, 7200.0, 9000.0])))
    family = "mq_pr_test_duration_1h_seconds"
    counts = {
        bound: value(found, family, f"{family}_bucket", le=bound, queue_type="bisection")
        for bound in ("60", "300", "600", "900", "1800", "3600", "5400", "7200", "+Inf")
    }
    assert list(counts.values()) == [1, 2, 2, 2, 2, 2, 2, 3, 4]
    assert value(found, family, f"{family}_count", queue_type="bisection") == 4
    assert value(found, family, f"{family}_sum", queue_type="bisection") == 16320.5


def test_labels_are_escaped():
    branch = 'a\\b"c\nd'
    found = families(QueueMetrics(QueueKey(KEY.repo, branch), main=QueueTypeMetrics(depth=7)))
    assert value(found, "mq_depth_current", branch=branch, queue_type="main") == 7


def test_metrics_without_queues_are_valid():
    assert all(not family.samples for family in families().values())


# The query


@pytest.mark.parametrize(
    ("query", "host", "repo"),
    [
        (b"", None, None),
        (b"other=1&other=2", None, None),
        (b"repoHost=GIT.local", "git.local", None),
        (b"repoHost=git.local&repo=acme%2Fapp", "git.local", Repo("git.local", "acme", "app")),
        (b"repo=a/b/c&repoHost=git.local", "git.local", Repo("git.local", "a/b", "c")),
    ],
)
def test_metrics_are_restricted_to_a_host_or_to_a_repository(query: bytes, host: str | None, repo: Repo | None):
    request = parse_metrics_query(query)
    assert (request.host_filter, request.repo_filter) == (host, repo)


@pytest.mark.parametrize(
    "query",
    [
        b"repo=acme/app",
        b"repoHost=",
        b"repoHost",
        b"repoHost=a&repoHost=b",
        b"repo=acme/app&repo=acme/app&repoHost=git.local",
        b"repo=app&repoHost=git.local",
        b"repo=&repoHost=git.local",
        b"repo=acme/..&repoHost=git.local",
        b"repo=acme/%ff&repoHost=git.local",
        b"repoHost=\xff",
        b"&".join([b"a=1"] * 101),
    ],
)
def test_an_invalid_query_is_refused(query: bytes):
    with pytest.raises(ApiError) as refused:
        parse_metrics_query(query)
    assert refused.value.code == "invalid_request"
