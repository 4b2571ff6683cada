"""Measures the time from the last status of a run to the merge, in an otherwise idle queue.

The times of the parts come from the metrics of the server. The push is real, into a repository on the same disk.
"""

import re
from statistics import median
from time import perf_counter, sleep

from tests.bench.busy_server import READ, STATUS, Body, BusyServer, request_bodies

POLL_INTERVAL_S = 0.002
PARTS = {
    "decision": "mergeyard_decision_seconds_{}",
    "prs_read": 'mergeyard_task_seconds_{}{{task="ReadPullRequests"}}',
    "landing": 'mergeyard_task_seconds_{}{{task="Land"}}',
}
"""Reading and landing each end with a decision that records their outcome."""


def measure(server: BusyServer) -> dict[str, float]:
    """Milliseconds: the median of the total, the means of the parts. One landing in each repository."""
    before = server.metrics()
    times = [_merge(server, body) for repository in server.repositories for body in request_bodies(repository, [1])]
    after = server.metrics()
    reported, merged = zip(*times, strict=True)
    parts = {f"status_{part}_ms": _mean(name, before, after) for part, name in PARTS.items()}
    return {"status_to_merged_ms": median(merged), "status_saved_ms": median(reported), **parts}


def _merge(server: BusyServer, body: Body) -> tuple[float, float]:
    """Milliseconds until the report was saved, and until the pull request was merged."""
    run = server.post("getMergeQueueTestingDetails", {**body, "testRunId": _read(server, body)["testRunId"]})
    status = {"repo": body["repo"], "sha": run["testBranchSha"], "context": STATUS, "state": "success"}
    started = perf_counter()
    server.post("reportCommitStatus", status)
    reported = perf_counter()
    while _read(server, body)["state"] != "merged":
        sleep(POLL_INTERVAL_S)
    return 1000 * (reported - started), 1000 * (perf_counter() - started)


def _read(server: BusyServer, body: Body) -> Body:
    return server.post(READ, body)


def _mean(name: str, before: str, after: str) -> float:
    seconds, count = (
        metric_value(after, name.format(what)) - metric_value(before, name.format(what)) for what in ("sum", "count")
    )
    return 1000 * seconds / count


def metric_value(metrics: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", metrics, re.MULTILINE)
    return float(found[1]) if found else 0.0
