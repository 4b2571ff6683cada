"""A disk is full: whoever asks is told which and what to do, nobody is blamed, and all goes on when there is room."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from mergeyard.adapters.runner_local import keeper
from tests.support.api import Refused
from tests.support.quick_server import QuickServer
from tests.surroundings.conftest import Found, Site
from tests.surroundings.disks import SmallDisk

CHECKS = """\
version = 1

[checks]
unit = "test -f README && head --bytes 100000 /dev/urandom"
"""


def test_a_full_disk_under_the_database_refuses_writes_and_loses_nothing(found: Found):
    disk = found.disk("data", 16)
    site = found()
    site.ci.working = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    disk.fill()
    with pytest.raises(Refused) as refused:
        site.submit(late, key="late")
    assert (refused.value.code, refused.value.retryable) == ("storage_unavailable", True)
    assert site.state(early) == "testing"
    assert "is full. Make room" in site.watching.in_the_way()
    assert site.watching.lives()
    disk.make_room()
    assert site.submit(late, key="late")["prNumber"] == late
    site.ci.working = True
    site.wait_for("merged", early, late)
    assert site.watching.is_ready()


@pytest.mark.long
def test_a_full_disk_under_the_mirrors_blames_nobody(found: Found):
    disk = found.disk("data/mirrors", 8)
    site = found()
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.bin": os.urandom(300_000)})
    site.submit(early)
    site.wait_for("merged", early)
    disk.fill()
    site.submit(late)
    site.eventually(lambda: site.watching.figure("mergeyard_tasks_total", outcome="trouble"))
    assert site.state(late) == "not_ready"
    words = "mirrors cannot be written to (No space left on device): make room"
    site.eventually(lambda: words in site.watching.in_the_way())
    assert site.watching.lives()
    disk.make_room()
    site.wait_for("merged", late)
    assert site.watching.is_ready()


@pytest.mark.long
@pytest.mark.parametrize("moment", ["before it is built", "before it lands"])
def test_a_full_disk_at_the_host_blames_nobody(found: Found, moment: str):
    disk = found.disk("repos", 8)
    site = found()
    site.ci.working = False
    number = site.open_pr({"a.txt": "1"})
    if moment == "before it is built":
        disk.fill()
    site.submit(number)
    if moment == "before it lands":
        site.wait_for("testing", number)
        disk.fill()
        site.ci.working = True
    site.eventually(lambda: site.watching.figure("mergeyard_tasks_total", outcome="trouble") > 2)
    assert site.reason(number) == "provider_unavailable"
    assert site.watching.is_ready()
    disk.make_room()
    site.ci.working = True
    site.wait_for("merged", number)


def test_output_that_finds_no_room_does_not_end_the_command_that_writes_it():
    keeping = f"{sys.executable} -I -S {keeper.__file__} 1000000 > /dev/full"
    writing = f"{{ head --bytes 300000 /dev/zero; echo $? >&2; }} | {keeping}"
    assert subprocess.run(["sh", "-c", writing], capture_output=True, check=True).stderr == b"0\n"


@pytest.fixture
def own_checks(found: Found) -> Iterator[tuple[Site, SmallDisk]]:
    """A site that runs the checks itself, in a folder on a disk of its own."""
    disk = found.disk("data/checks", 8)
    site = found.without_queue(QuickServer(found.folder, "run", open_metrics=True), {".mergeyard.toml": CHECKS})
    found.founded.remove(site)  # it has no CI that could tell what passed
    site.ci.working = False
    site.api.post("createQueue")
    yield site, disk
    site.close()


@pytest.mark.long
def test_a_full_disk_under_the_checks_blames_nobody(own_checks: tuple[Site, SmallDisk]):
    site, disk = own_checks
    disk.fill()
    number = site.open_pr({"a.txt": "1"})
    site.submit(number)
    site.eventually(lambda: site.watching.told("a check cannot be run"))
    assert site.state(number) == "testing"
    disk.make_room()
    site.wait_for("merged", number)
