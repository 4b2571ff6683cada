"""Measures the page of a queue in which a thousand pull requests wait, for a signed-in user."""

from statistics import median
from time import perf_counter

from tests.bench.busy_server import CANCEL, SUBMIT, BusyServer
from tests.bench.load import Load
from tests.bench.merge_latency import metric_value

PAGE = "/queues/git.local/acme/one:main"
PAGES = 50
CPU = "process_cpu_seconds_total"


def measure(server: BusyServer, load: Load) -> dict[str, float]:
    """Milliseconds: the server's CPU time per page, and the median time from request to last byte."""
    load.requests_per_second([server.port], server.to_one_queue(SUBMIT))
    with server.signed_in_client() as client:
        cpu_before, times = metric_value(server.metrics(), CPU), list[float]()
        for _ in range(PAGES):
            started = perf_counter()
            response = client.get(PAGE)
            times.append(1000 * (perf_counter() - started))
            assert response.status_code == 200, response.text
        cpu_seconds = metric_value(server.metrics(), CPU) - cpu_before
    load.requests_per_second([server.port], server.to_one_queue(CANCEL))
    return {"queue_page_server_ms": 1000 * cpu_seconds / PAGES, "queue_page_ms": median(times)}
