"""Somebody sets the clock on the wall: no timeout runs out for it, no lease is extended, and all goes on."""

from datetime import UTC, datetime

import pytest

from tests.support.host_log import TARGET, Moment
from tests.support.promises import broken_promises
from tests.surroundings.conftest import Found, Site
from tests.surroundings.walls import ServerWithWall, Wall

pytestmark = pytest.mark.long

JUDGED_BY_TIMES = "s8"
"""Who was first cannot be told by clocks of which one was wrong."""
JUMPS = pytest.mark.parametrize("hours", [5, -5, 24 * 365, -24 * 365], ids=lambda hours: f"{hours} hours")


@pytest.fixture
def site_and_wall(found: Found) -> tuple[Site, Wall]:
    server = ServerWithWall(found.folder, open_metrics=True)
    wall = Wall(server)
    return found(server, testingTimeoutMinutes=60, concurrency=3), wall


@JUMPS
def test_a_clock_that_is_set_while_something_is_tested_fails_nobody(site_and_wall: tuple[Site, Wall], hours: int):
    site, wall = site_and_wall
    site.ci.working = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    wall.set(hours)
    site.submit(late)
    site.wait_for("testing", late)
    assert site.state(early) == "testing"
    assert site.watching.is_ready()
    site.ci.working = True
    site.wait_for("merged", early, late)
    assert site.server.complaints() == []


@JUMPS
def test_a_clock_that_is_set_while_something_lands_changes_nothing(site_and_wall: tuple[Site, Wall], hours: int):
    site, wall = site_and_wall
    number, other = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.host_log.hold(Moment.PREPARED, ref=TARGET)
    site.submit(number)
    site.eventually(lambda: site.host_log.sprung)
    wall.set(hours)
    site.submit(other)
    site.host_log.release()
    site.wait_for("merged", number, other)


@JUMPS
def test_times_in_answers_never_go_backwards(site_and_wall: tuple[Site, Wall], hours: int):
    site, wall = site_and_wall
    number = site.open_pr({"a.txt": "1"})
    site.submit(number)
    wall.set(hours)
    site.wait_for("merged", number)
    wall.set(0)
    times = [moment["at"] for moment in reversed(site.pull(number)["timeline"])]
    assert times == sorted(times)
    assert abs((datetime.fromisoformat(times[-1]) - datetime.now(UTC)).total_seconds()) < 120


@JUMPS
def test_a_server_that_starts_with_a_wrong_clock_fails_nobody_whom_it_finds(
    found: Found, site_and_wall: tuple[Site, Wall], hours: int
):
    site, wall = site_and_wall
    found.founded.remove(site)
    site.ci.working = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    site.server.stop()
    wall.set(hours)
    site.server.start()
    site.submit(late)
    site.eventually(site.watching.is_ready)
    assert site.state(early) == "testing"
    wall.set(0)
    site.ci.working = True
    site.wait_for("merged", early, late)
    site.evidence.collect()
    broken = [promise for promise in broken_promises(site.evidence) if not promise.startswith(JUDGED_BY_TIMES)]
    assert broken == []
    site.close()
