"""Prometheus metrics of this process, for operators; docs/metrics.md explains each."""

import shutil
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.process_collector import ProcessCollector

from mergeyard.domain.events import MismatchKind

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

DECISION_SECONDS = Histogram(
    "mergeyard_decision_seconds",
    "Time from the first event of a decision until the decision is saved.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
    registry=REGISTRY,
)
DECISION_EVENTS = Counter("mergeyard_decision_events", "Events that decisions processed.", registry=REGISTRY)
VERSION_CONFLICTS = Counter(
    "mergeyard_version_conflicts",
    "Decisions that were repeated because another replica saved the queue first.",
    registry=REGISTRY,
)
LEASES = Gauge("mergeyard_leases", "Repositories whose lease this replica holds.", registry=REGISTRY)
LEASES_ACQUIRED = Counter("mergeyard_leases_acquired", "Leases that this replica acquired.", registry=REGISTRY)
LEASES_LOST = Counter("mergeyard_leases_lost", "Leases that this replica released or lost.", registry=REGISTRY)
ESTIMATES = Counter(
    "mergeyard_estimates", "Pull requests that merged after a merge time was estimated for them.", registry=REGISTRY
)
ESTIMATES_MET = Counter(
    "mergeyard_estimates_met",
    "Pull requests among them that merged by the estimated time.",
    ["estimate"],
    registry=REGISTRY,
)
for estimate in ("p50", "p90"):
    ESTIMATES_MET.labels(estimate)
TASKS = Counter(
    "mergeyard_tasks", "Attempts of tasks at Git and the Git hosts.", ["task", "outcome"], registry=REGISTRY
)
TASK_SECONDS = Histogram(
    "mergeyard_task_seconds",
    "Duration of one attempt of a task.",
    ["task"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60),
    registry=REGISTRY,
)
REFUSED_REQUESTS = Counter(
    "mergeyard_refused_requests", "Requests refused because of their credentials.", ["kind"], registry=REGISTRY
)
LANDINGS_VERIFIED = Counter(
    "mergeyard_audit_landings_verified",
    "Landings that the merge audit compared with the target branch.",
    registry=REGISTRY,
)
AUDIT_MISMATCHES = Counter(
    "mergeyard_audit_mismatches",
    "Mismatches that the merge audit found between records and target branches, each counted once.",
    ["kind"],
    registry=REGISTRY,
)
for mismatch_kind in MismatchKind:
    AUDIT_MISMATCHES.labels(mismatch_kind)
AUDIT_LAST_ROUND = Gauge(
    "mergeyard_audit_last_round_timestamp_seconds",
    "Time at which the merge audit last completed all queues that were due.",
    registry=REGISTRY,
)
DATA_DIR_FREE = Gauge(
    "mergeyard_data_dir_free_bytes", "Free bytes on the disk of the data directory.", registry=REGISTRY
)
DATA_DIR_SIZE = Gauge("mergeyard_data_dir_size_bytes", "Total bytes of that disk.", registry=REGISTRY)


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
