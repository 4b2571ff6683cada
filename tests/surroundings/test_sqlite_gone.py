"""The embedded database is away, locked or damaged: that is told in words, nothing is written over, nothing is lost."""

from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from mergeyard.adapters.store_sqlite.connecting import connect
from tests.support.api import Api, Refused
from tests.support.patience import eventually
from tests.support.premises import new_token
from tests.surroundings.conftest import Found, Site

FAILED = 1
PAGE = 4096


def database_of(site: Site) -> Path:
    return site.server.folder / "data" / "mergeyard.db"


def refuse_writes(patient: Api, number: int) -> None:
    with pytest.raises(Refused) as refused:
        patient.post("submitPullRequest", key="again", pr={"number": number})
    assert (refused.value.status, refused.value.code, refused.value.retryable) == (503, "storage_unavailable", True)


@pytest.mark.long
def test_a_file_that_is_moved_away_is_missed_until_it_is_back(found: Found):
    site = found()
    site.ci.working = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    away = database_of(site).rename(site.server.folder / "away.db")
    refuse_writes(site.api, late)
    assert "was removed or replaced while it was open. Put it back" in site.watching.in_the_way()
    assert site.watching.lives()
    assert site.state(early) == "testing"
    away.rename(database_of(site))
    site.submit(late, key="again")
    site.ci.working = True
    site.wait_for("merged", early, late)
    assert site.watching.is_ready()


@pytest.mark.long
def test_a_file_that_another_process_keeps_locked_is_waited_for(found: Found):
    site = found()
    site.ci.working = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    patient = Api(site.server, new_token(site.server.config), site.host_log, seconds=90)
    with closing(patient), closing(connect(database_of(site))) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "Look for a process that keeps it locked" in site.watching.in_the_way()
        assert site.state(early) == "testing"
        refuse_writes(patient, late)
        other.execute("ROLLBACK")
    eventually(site.watching.is_ready)
    site.submit(late, key="again")
    site.ci.working = True
    site.wait_for("merged", early, late)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_a_file_with_a_page_of_garbage_is_refused_at_the_start_and_left_as_it_is(found: Found, seed: int):
    site = found()
    number = site.open_pr({"a.txt": "1"})
    site.submit(number)
    site.wait_for("merged", number)
    site.server.stop()
    whole = database_of(site).read_bytes()
    database_of(site).write_bytes(broken := with_garbage(whole, Random(seed)))
    site.server.launch()
    assert site.server.process.wait(60) == FAILED
    told = [entry["event"] for entry in site.server.told()]
    assert "restore a backup" in told[-1]
    assert not any("Traceback" in line for line in told)
    assert database_of(site).read_bytes() == broken
    database_of(site).write_bytes(whole)
    site.server.start()


def with_garbage(whole: bytes, random: Random) -> bytes:
    """In any page but the first, which holds the plan of all others; and not in one that is free."""
    start = random.randrange(1, len(whole) // PAGE) * PAGE
    return whole[:start] + b"\x11" * PAGE + whole[start + PAGE :]


@pytest.mark.long
def test_damage_that_is_met_while_it_runs_is_told_and_nothing_is_written_over_it(found: Found):
    site = found()
    found.founded.remove(site)  # what is damaged cannot be held to promises
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
    with pytest.raises(Refused) as refused:
        site.pull(number)
    assert refused.value.status == 503
    eventually(lambda: "is damaged. Stop Mergeyard" in site.watching.in_the_way())
    assert site.watching.lives()
    site.server.kill()
