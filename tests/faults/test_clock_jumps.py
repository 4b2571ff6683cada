"""The wall clock is set: no timeout expires because of it, no lease is extended, and the work continues."""

from datetime import UTC, datetime

import pytest

from tests.faults.conftest import FaultySite, SiteFactory
from tests.faults.injection import ServerWithShiftedClock, WallClockControl
from tests.support.host_log import TARGET_REF, PushStage
from tests.support.promises import broken_promises
from tests.support.violations import assert_kept

pytestmark = pytest.mark.long

CHECKED_BY_TIMES = "s8"
"""The order of submissions cannot be checked by times when a clock was wrong."""
JUMPS = pytest.mark.parametrize("hours", [5, -5, 24 * 365, -24 * 365], ids=lambda hours: f"{hours} hours")


@pytest.fixture
def site_and_clock(make_site: SiteFactory) -> tuple[FaultySite, WallClockControl]:
    server = ServerWithShiftedClock(make_site.folder, open_metrics=True)
    clock = WallClockControl(server)
    return make_site(server, testingTimeoutMinutes=60, concurrency=3), clock


@JUMPS
def test_clock_jump_during_a_test_run_fails_no_pull_request(
    site_and_clock: tuple[FaultySite, WallClockControl], hours: int
):
    site, clock = site_and_clock
    site.ci.enabled = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    clock.set(hours)
    site.submit(late)
    site.wait_for("testing", late)
    assert site.state(early) == "testing"
    site.eventually(site.health.is_ready)
    site.ci.enabled = True
    site.wait_for("merged", early, late)
    assert site.server.logged_errors() == []


@JUMPS
def test_clock_jump_during_a_landing_changes_nothing(site_and_clock: tuple[FaultySite, WallClockControl], hours: int):
    site, clock = site_and_clock
    number, other = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.host_log.hold_push(PushStage.PREPARED, ref=TARGET_REF)
    site.submit(number)
    site.eventually(lambda: site.host_log.triggered)
    clock.set(hours)
    site.submit(other)
    site.host_log.release_push()
    site.wait_for("merged", number, other)


@JUMPS
def test_times_in_responses_never_go_backwards(site_and_clock: tuple[FaultySite, WallClockControl], hours: int):
    site, clock = site_and_clock
    number = site.open_pr({"a.txt": "1"})
    site.submit(number)
    clock.set(hours)
    site.wait_for("merged", number)
    clock.set(0)
    times = [moment["at"] for moment in reversed(site.submission(number)["timeline"])]
    assert times == sorted(times)
    assert abs((datetime.fromisoformat(times[-1]) - datetime.now(UTC)).total_seconds()) < 120


@JUMPS
def test_start_with_a_wrong_clock_fails_no_pull_request(
    make_site: SiteFactory, site_and_clock: tuple[FaultySite, WallClockControl], hours: int
):
    site, clock = site_and_clock
    make_site.sites.remove(site)
    site.ci.enabled = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    site.server.stop()
    clock.set(hours)
    site.server.start()
    site.submit(late)
    site.eventually(site.health.is_ready)
    assert site.state(early) == "testing"
    clock.set(0)
    site.ci.enabled = True
    site.wait_for("merged", early, late)
    site.evidence.collect()
    broken = [promise for promise in broken_promises(site.evidence) if not promise.startswith(CHECKED_BY_TIMES)]
    assert_kept(broken)
    site.close()
