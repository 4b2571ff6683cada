"""The server has no free file descriptors: no pull request fails, requests are refused with the cause, and the server
recovers."""

import resource
import socket
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults.conftest import FaultySite, SiteFactory

SAMPLES = 200


def limit_files(site: FaultySite, more: int) -> tuple[int, int]:
    """Limits the server to the files that it has open at idle, and some more."""
    process = site.server.process.pid
    used = min(len(list(Path(f"/proc/{process}/fd").iterdir())) for _ in range(SAMPLES))
    before = resource.prlimit(process, resource.RLIMIT_NOFILE)
    resource.prlimit(process, resource.RLIMIT_NOFILE, (used + more, before[1]))
    return before


@pytest.mark.long
def test_no_pull_request_fails_when_git_cannot_start_without_descriptors(make_site: SiteFactory):
    site = make_site()
    site.ci.enabled = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    before = limit_files(site, 3)
    site.ci.enabled = True
    site.submit(late)
    site.eventually(lambda: site.health.metric("mergeyard_tasks_total", outcome="failed") > 1)
    site.eventually(lambda: "Too many open files" in site.health.readiness_error())
    assert site.health.is_alive()
    assert {site.state(early), site.state(late)}.isdisjoint({"failed", "cancelled"})
    resource.prlimit(site.server.process.pid, resource.RLIMIT_NOFILE, before)
    site.wait_for("merged", early, late)
    site.eventually(site.health.is_ready)
    assert site.server.logged_errors() == []


@pytest.mark.long
def test_queue_goes_on_after_idle_connections_had_taken_all_descriptors(make_site: SiteFactory):
    """A proxy limits connections; without one, clients that do nothing can take all descriptors while they stay."""
    site = make_site()
    site.ci.enabled = False
    number = site.open_pr({"a.txt": "1"})
    site.submit(number)
    site.wait_for("testing", number)
    limit_files(site, 60)
    address = urlsplit(site.server.url)
    with ExitStack() as connections:
        for _ in range(100):
            connections.enter_context(socket.create_connection((address.hostname or "", address.port or 0)))
    site.ci.enabled = True
    site.wait_for("merged", number)
