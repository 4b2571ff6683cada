"""Asks for the page of a queue in which a thousand wait, as somebody who is signed in."""

from statistics import median
from time import perf_counter

from tests.bench.busy_server import BusyServer
from tests.bench.finishing import figure
from tests.bench.load import Load

SUBMIT, CANCEL = "submitPullRequest", "cancelPullRequest"
PAGE = "/queues/git.local/acme/one:main"
PAGES = 50
CPU = "process_cpu_seconds_total"


def measure(server: BusyServer, load: Load) -> dict[str, float]:
    """Milliseconds: of the server's own time for each, and from asking to the last byte in the median."""
    load.pace([server.port], server.to_one_queue(SUBMIT))
    with server.visitor() as visitor:
        begun, waits = figure(server.metrics(), CPU), list[float]()
        for _ in range(PAGES):
            asked_at = perf_counter()
            page = visitor.get(PAGE)
            waits.append(1000 * (perf_counter() - asked_at))
            assert page.status_code == 200, page.text
        spent = figure(server.metrics(), CPU) - begun
    load.pace([server.port], server.to_one_queue(CANCEL))
    return {"queue_page_server_ms": 1000 * spent / PAGES, "queue_page_ms": median(waits)}
