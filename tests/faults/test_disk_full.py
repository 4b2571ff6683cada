"""A disk is full: the server reports which one and what to do, no pull request fails, and the server recovers."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from mergeyard.adapters.runner_local import output_limiter
from tests.faults.conftest import FaultySite, SiteFactory
from tests.faults.injection import SmallDisk
from tests.support.api_client import ApiRefused
from tests.support.forked_server import ForkedServer

CHECKS = """\
version = 1

[checks]
unit = "test -f README && head --bytes 100000 /dev/urandom"
"""


@pytest.mark.long
def test_full_disk_of_the_database_refuses_writes_and_loses_nothing(make_site: SiteFactory):
    disk = make_site.disk("data", 16)
    site = make_site()
    site.ci.enabled = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    disk.fill()
    with pytest.raises(ApiRefused) as refused:
        site.submit(late, key="late")
    assert (refused.value.code, refused.value.retryable) == ("storage_unavailable", True)
    assert site.state(early) == "testing"
    assert "is full. Free some space" in site.health.readiness_error()
    assert site.health.is_alive()
    disk.free()
    assert site.submit(late, key="late")["prNumber"] == late
    site.ci.enabled = True
    site.wait_for("merged", early, late)
    site.eventually(site.health.is_ready)


@pytest.mark.long
def test_full_disk_of_the_mirrors_fails_no_pull_request(make_site: SiteFactory):
    disk = make_site.disk("data/mirrors", 8)
    site = make_site()
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.bin": os.urandom(300_000)})
    site.submit(early)
    site.wait_for("merged", early)
    disk.fill()
    site.submit(late)
    site.eventually(lambda: site.health.metric("mergeyard_tasks_total", outcome="failed"))
    assert site.state(late) == "not_ready"
    message = "mirrors cannot be written to (No space left on device): free disk space"
    site.eventually(lambda: message in site.health.readiness_error())
    assert site.reason(late) == "server_failure"
    assert site.health.is_alive()
    disk.free()
    site.wait_for("merged", late)
    site.eventually(site.health.is_ready)


@pytest.mark.long
@pytest.mark.parametrize("moment", ["before it is built", "before it lands"])
def test_full_disk_of_the_host_fails_no_pull_request(make_site: SiteFactory, moment: str):
    disk = make_site.disk("repos", 8)
    site = make_site()
    site.ci.enabled = False
    number = site.open_pr({"a.txt": "1"})
    if moment == "before it is built":
        disk.fill()
    site.submit(number)
    if moment == "before it lands":
        site.wait_for("testing", number)
        disk.fill()
        site.ci.enabled = True
    site.eventually(lambda: site.health.metric("mergeyard_tasks_total", outcome="failed") > 2)
    assert site.reason(number) == "provider_unavailable"
    site.eventually(site.health.is_ready)
    disk.free()
    site.ci.enabled = True
    site.wait_for("merged", number)


def test_output_on_a_full_disk_does_not_end_the_check():
    limiter = f"{sys.executable} -I -S {output_limiter.__file__} 1000000 > /dev/full"
    command = f"{{ head --bytes 300000 /dev/zero; echo $? >&2; }} | {limiter}"
    assert subprocess.run(["sh", "-c", command], capture_output=True, check=True).stderr == b"0\n"


@pytest.fixture
def local_checks(make_site: SiteFactory) -> Iterator[tuple[FaultySite, SmallDisk]]:
    """A site that runs the checks itself, in a folder on a separate disk."""
    disk = make_site.disk("data/checks", 8)
    site = make_site.without_queue(
        ForkedServer(make_site.folder, "run", open_metrics=True), {".mergeyard.toml": CHECKS}
    )
    make_site.sites.remove(site)  # it has no CI that knows which commits passed
    site.ci.enabled = False
    site.api.post("createQueue")
    yield site, disk
    site.close()


@pytest.mark.long
def test_full_disk_of_the_checks_fails_no_pull_request(local_checks: tuple[FaultySite, SmallDisk]):
    site, disk = local_checks
    disk.fill()
    number = site.open_pr({"a.txt": "1"})
    site.submit(number)
    site.eventually(lambda: site.health.log_entries("check_cannot_run"))
    assert site.state(number) == "testing"
    disk.free()
    site.wait_for("merged", number)
