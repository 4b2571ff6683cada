"""The figures of this process, for those who watch over it; each is explained in docs/metrics.md."""

import shutil
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.process_collector import ProcessCollector

from mergeyard.domain.mismatches import Doubt

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

TURNS = Histogram(
    "mergeyard_turn_seconds",
    "From the first event of a turn until the turn is saved.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
    registry=REGISTRY,
)
EVENTS = Counter("mergeyard_turn_events", "Events that turns decided upon.", registry=REGISTRY)
OUTRUN = Counter(
    "mergeyard_turns_outrun", "Turns that were decided again because another replica was faster.", registry=REGISTRY
)
DUTIES = Gauge("mergeyard_duties", "Repositories that this replica works for.", registry=REGISTRY)
DUTIES_TAKEN = Counter("mergeyard_duties_taken", "Repositories that it began to work for.", registry=REGISTRY)
DUTIES_LOST = Counter("mergeyard_duties_lost", "Repositories that it works for no more.", registry=REGISTRY)
ESTIMATES = Counter(
    "mergeyard_estimates", "Pull requests that merged after a time was foretold for them.", registry=REGISTRY
)
ESTIMATES_HELD = Counter(
    "mergeyard_estimates_held", "Those of them that merged by that time.", ["estimate"], registry=REGISTRY
)
for estimate in ("p50", "p90"):
    ESTIMATES_HELD.labels(estimate)
TASKS = Counter("mergeyard_tasks", "Tasks that were performed outside.", ["task", "outcome"], registry=REGISTRY)
TASK_SECONDS = Histogram(
    "mergeyard_task_seconds",
    "How long a task took.",
    ["task"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60),
    registry=REGISTRY,
)
REFUSED_REQUESTS = Counter(
    "mergeyard_refused_requests", "Requests refused because of their credentials.", ["kind"], registry=REGISTRY
)
LANDINGS_VERIFIED = Counter(
    "mergeyard_audit_landings_verified", "Landings that were compared with their target.", registry=REGISTRY
)
MISMATCHES = Counter(
    "mergeyard_audit_mismatches",
    "What was found about landings that is not as recorded, once each.",
    ["doubt"],
    registry=REGISTRY,
)
for doubt in Doubt:
    MISMATCHES.labels(doubt)
LAST_ROUND = Gauge(
    "mergeyard_audit_last_round_timestamp_seconds", "When all that was due was last gone through.", registry=REGISTRY
)
DATA_DIR_FREE = Gauge(
    "mergeyard_data_dir_free_bytes", "Bytes that are free on the disk of the data directory.", registry=REGISTRY
)
DATA_DIR_SIZE = Gauge("mergeyard_data_dir_size_bytes", "Bytes that this disk has altogether.", registry=REGISTRY)


def measure_disk(folder: Path) -> None:
    """From now on the gauges read the disk of this folder whenever they are scraped."""
    DATA_DIR_FREE.set_function(lambda: _disk_usage(folder)[0])
    DATA_DIR_SIZE.set_function(lambda: _disk_usage(folder)[1])


def _disk_usage(folder: Path) -> tuple[float, float]:
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return float("nan"), float("nan")
    return usage.free, usage.total
