"""No file can be opened any more: nobody is blamed, what is asked is told so, and all goes on when some are closed."""

import resource
import socket
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.surroundings.conftest import Found, Site

LOOKS = 200


def limit_files(site: Site, more: int) -> tuple[int, int]:
    """To as many as it has open between two acts, and some more."""
    process = site.server.process.pid
    used = min(len(list(Path(f"/proc/{process}/fd").iterdir())) for _ in range(LOOKS))
    before = resource.prlimit(process, resource.RLIMIT_NOFILE)
    resource.prlimit(process, resource.RLIMIT_NOFILE, (used + more, before[1]))
    return before


@pytest.mark.long
def test_without_files_git_cannot_start_and_nobody_is_blamed(found: Found):
    site = found()
    site.ci.working = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    before = limit_files(site, 3)
    site.ci.working = True
    site.submit(late)
    site.eventually(lambda: site.watching.figure("mergeyard_tasks_total", outcome="trouble") > 1)
    site.eventually(lambda: "Too many open files" in site.watching.in_the_way())
    assert site.watching.lives()
    assert {site.state(early), site.state(late)}.isdisjoint({"failed", "cancelled"})
    resource.prlimit(site.server.process.pid, resource.RLIMIT_NOFILE, before)
    site.wait_for("merged", early, late)
    assert site.watching.is_ready()
    assert site.server.complaints() == []


@pytest.mark.long
def test_connections_that_say_nothing_take_the_files_away_only_for_a_while(found: Found):
    site = found()
    site.ci.working = False
    number = site.open_pr({"a.txt": "1"})
    site.submit(number)
    site.wait_for("testing", number)
    limit_files(site, 60)
    address = urlsplit(site.server.url)
    with ExitStack() as silent:
        for _ in range(100):
            silent.enter_context(socket.create_connection((address.hostname or "", address.port or 0)))
        site.ci.working = True
        site.wait_for("merged", number)
