"""Prometheus metrics of this process, for operators; docs/reference/metrics.md explains each."""

import shutil
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from mergeyard.domain.events import MismatchKind
from mergeyard.ports.forge import Host

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

_counter = partial(Counter, registry=REGISTRY)
_gauge = partial(Gauge, registry=REGISTRY)
_histogram = partial(Histogram, registry=REGISTRY)

DECISION_SECONDS = _histogram(
    "mergeyard_decision_seconds",
    "Time from the first event of a decision until the decision is saved.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
DECISION_EVENTS = _counter("mergeyard_decision_events", "Events that decisions processed.")
VERSION_CONFLICTS = _counter(
    "mergeyard_version_conflicts", "Decisions that were repeated because another replica saved the queue first."
)
LEASES = _gauge("mergeyard_leases", "Repositories whose lease this replica holds.")
LEASES_ACQUIRED = _counter("mergeyard_leases_acquired", "Leases that this replica acquired.")
LEASES_LOST = _counter("mergeyard_leases_lost", "Leases that this replica released or lost.")
ESTIMATES = _counter("mergeyard_estimates", "Pull requests that merged after a merge time was estimated for them.")
ESTIMATES_MET = _counter(
    "mergeyard_estimates_met", "Pull requests among them that merged by the estimated time.", ["estimate"]
)
for estimate in ("p50", "p90"):
    ESTIMATES_MET.labels(estimate)
TASKS = _counter("mergeyard_tasks", "Attempts of tasks at Git and the Git hosts.", ["task", "outcome"])
TASK_SECONDS = _histogram(
    "mergeyard_task_seconds",
    "Duration of one attempt of a task.",
    ["task"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60),
)
REFUSED_REQUESTS = _counter("mergeyard_refused_requests", "Requests refused because of their credentials.", ["kind"])
LANDINGS_VERIFIED = _counter(
    "mergeyard_audit_landings_verified", "Landings that the merge audit compared with the target branch."
)
AUDIT_MISMATCHES = _counter(
    "mergeyard_audit_mismatches",
    "Mismatches that the merge audit found between records and target branches, each counted once.",
    ["kind"],
)
for mismatch_kind in MismatchKind:
    AUDIT_MISMATCHES.labels(mismatch_kind)
AUDIT_LAST_ROUND = _gauge(
    "mergeyard_audit_last_round_timestamp_seconds",
    "Time at which the merge audit last completed all queues that were due.",
)
HOST_REQUEST_LABELS = ["host", "account", "api"]


class HostBudgets(Collector):
    """Reads at every scrape what the Git hosts reported last."""

    def __init__(self) -> None:
        self.hosts: Mapping[str, Host] = {}

    def collect(self) -> Iterable[Metric]:
        remaining = GaugeMetricFamily(
            "mergeyard_host_requests_remaining",
            "Requests that the Git host still accepts from an account of ours.",
            labels=HOST_REQUEST_LABELS,
        )
        limit = GaugeMetricFamily(
            "mergeyard_host_requests_limit",
            "Requests that it accepts in one period.",
            labels=HOST_REQUEST_LABELS,
        )
        for name, host in self.hosts.items():
            for budget in () if host.forge is None else host.forge.list_budgets():
                labels = [name, budget.account, budget.api]
                remaining.add_metric(labels, budget.remaining)
                limit.add_metric(labels, budget.limit)
        return remaining, limit


HOST_BUDGETS = HostBudgets()
REGISTRY.register(HOST_BUDGETS)
DATA_DIR_FREE = _gauge("mergeyard_data_dir_free_bytes", "Free bytes on the disk of the data directory.")
DATA_DIR_SIZE = _gauge("mergeyard_data_dir_size_bytes", "Total bytes of that disk.")


def measure_hosts(hosts: Mapping[str, Host]) -> None:
    HOST_BUDGETS.hosts = hosts


def measure_disk(folder: Path) -> None:
    """Binds the disk gauges to the disk of this folder; they read it at every scrape."""
    DATA_DIR_FREE.set_function(lambda: _disk_usage(folder)[0])
    DATA_DIR_SIZE.set_function(lambda: _disk_usage(folder)[1])


def _disk_usage(folder: Path) -> tuple[float, float]:
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return float("nan"), float("nan")
    return usage.free, usage.total
