"""The SQLite file is missing, locked or damaged: the server reports it, overwrites nothing and loses nothing."""

from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from mergeyard.adapters.store_sqlite.connection import connect
from tests.faults.conftest import FaultySite, SiteFactory
from tests.support.api_client import ApiClient, ApiRefused
from tests.support.environment import new_token
from tests.support.polling import eventually

FAILED = 1
PAGE = 4096


def database_of(site: FaultySite) -> Path:
    return site.server.folder / "data" / "mergeyard.db"


def assert_write_refused(api: ApiClient, number: int) -> None:
    with pytest.raises(ApiRefused) as refused:
        api.post("submitPullRequest", key="again", pr={"number": number})
    assert (refused.value.status, refused.value.code, refused.value.retryable) == (503, "storage_unavailable", True)


@pytest.mark.long
def test_missing_file_is_reported_until_it_is_back(make_site: SiteFactory):
    site = make_site()
    site.ci.enabled = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    away = database_of(site).rename(site.server.folder / "away.db")
    assert_write_refused(site.api, late)
    assert "was removed or replaced while it was open. Put it back" in site.health.readiness_error()
    assert site.health.is_alive()
    assert site.state(early) == "testing"
    away.rename(database_of(site))
    site.submit(late, key="again")
    site.ci.enabled = True
    site.wait_for("merged", early, late)
    site.eventually(site.health.is_ready)


@pytest.mark.long
def test_server_waits_for_a_locked_file(make_site: SiteFactory):
    site = make_site()
    site.ci.enabled = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    slow_api = ApiClient(site.server, new_token(site.server.config), site.host_log, timeout_s=90)
    with closing(slow_api), closing(connect(database_of(site))) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "Look for a process that keeps it locked" in site.health.readiness_error()
        assert site.state(early) == "testing"
        assert_write_refused(slow_api, late)
        other.execute("ROLLBACK")
    eventually(site.health.is_ready)
    site.submit(late, key="again")
    site.ci.enabled = True
    site.wait_for("merged", early, late)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_file_with_a_damaged_page_is_refused_at_start_and_not_changed(make_site: SiteFactory, seed: int):
    site = make_site()
    number = site.open_pr({"a.txt": "1"})
    site.submit(number)
    site.wait_for("merged", number)
    site.server.stop()
    whole = database_of(site).read_bytes()
    database_of(site).write_bytes(broken := with_garbage(whole, Random(seed)))
    site.server.launch()
    assert site.server.process.wait(60) == FAILED
    messages = [entry["event"] for entry in site.server.log_entries()]
    assert "restore a backup" in messages[-1]
    assert not any("Traceback" in line for line in messages)
    assert database_of(site).read_bytes() == broken
    database_of(site).write_bytes(whole)
    site.server.start()


def with_garbage(whole: bytes, random: Random) -> bytes:
    """In any page but the first, which contains the header."""
    start = random.randrange(1, len(whole) // PAGE) * PAGE
    return whole[:start] + b"\x11" * PAGE + whole[start + PAGE :]


@pytest.mark.long
def test_damage_found_while_running_is_reported_and_not_overwritten(make_site: SiteFactory):
    site = make_site()
    make_site.sites.remove(site)  # a damaged database cannot keep promises
    number = site.open_pr({"a.txt": "1"})
    site.submit(number)
    site.wait_for("merged", number)
    site.server.stop()
    site.server.start()
    with database_of(site).open("r+b") as file:
        size = file.seek(0, 2)
        for page in range(2, size // PAGE):
            file.seek(page * PAGE)
            file.write(b"\x11" * PAGE)
    with pytest.raises(ApiRefused) as refused:
        site.submission(number)
    assert refused.value.status == 503
    eventually(lambda: "is damaged. Stop Mergeyard" in site.health.readiness_error())
    assert site.health.is_alive()
    site.server.kill()
