"""Reports the last status of a run in a queue that is idle otherwise, and waits until it has merged.

The parts are what the server says of itself in its metrics; the push is real, into a repository on the same disk.
"""

import re
from statistics import median
from time import perf_counter, sleep

from tests.bench.busy_server import STATUS, Body, BusyServer, asked

PAUSE = 0.002
PARTS = {
    "turn": "mergeyard_turn_seconds_{}",
    "pulls_read": 'mergeyard_task_seconds_{}{{task="ReadPulls"}}',
    "landing": 'mergeyard_task_seconds_{}{{task="Land"}}',
}
"""Reading and landing each end with a turn, in which their outcome is recorded."""


def measure(server: BusyServer) -> dict[str, float]:
    """Milliseconds: of the whole in the median, of the parts on average. One landing in each repository."""
    before = server.metrics()
    times = [_merge(server, body) for grounds in (server.one, *server.many) for body in asked(grounds, [1])]
    after = server.metrics()
    reported, merged = zip(*times, strict=True)
    parts = {f"status_{part}_ms": _mean(name, before, after) for part, name in PARTS.items()}
    return {"status_to_merged_ms": median(merged), "status_saved_ms": median(reported), **parts}


def _merge(server: BusyServer, pull: Body) -> tuple[float, float]:
    """How long the report took, and how long it took until the pull request was merged."""
    run = server.post("getMergeQueueTestingDetails", {**pull, "testRunId": _shown(server, pull)["testRunId"]})
    status = {"repo": pull["repo"], "sha": run["testBranchSha"], "context": STATUS, "state": "success"}
    begun = perf_counter()
    server.post("reportCommitStatus", status)
    reported = perf_counter()
    while _shown(server, pull)["state"] != "merged":
        sleep(PAUSE)
    return 1000 * (reported - begun), 1000 * (perf_counter() - begun)


def _shown(server: BusyServer, pull: Body) -> Body:
    return server.post("getSubmittedPullRequest", pull)


def _mean(name: str, before: str, after: str) -> float:
    seconds, times = (figure(after, name.format(what)) - figure(before, name.format(what)) for what in ("sum", "count"))
    return 1000 * seconds / times


def figure(metrics: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", metrics, re.MULTILINE)
    return float(found[1]) if found else 0.0
