"""What somebody asks of the journal is understood, or they are told how to ask."""

from pathlib import Path

import pytest

from mergeyard.adapters.git_cli.commits import Committer
from mergeyard.adapters.git_cli.opening import GitCli
from mergeyard.domain.repositories import Repo
from mergeyard.ports.store import AuditPage
from mergeyard.service.errors import Refused
from mergeyard.service.site import Sites
from mergeyard.web.administration.audit_filter import Filter

SITES = Sites({}, GitCli(Path("unused"), Committer("Ada", "ada@example.org")))
DAY = 86_400_000


def understood(before: str = "", **asked: str) -> AuditPage:
    return Filter(**asked).understood(SITES, 50, before)


def test_who_asks_for_nothing_gets_everything():
    assert understood() == AuditPage(take=50)
    assert not Filter()


def test_everything_can_be_asked_for_at_once():
    page = understood(
        queue="Git.Local/acme/tools/app:release/1",
        number="12",
        actor="ada",
        kind="TokenCreated",
        since="1970-01-02",
        until="1970-01-03",
        before="99",
    )
    assert page.repos == (Repo("git.local", "acme/tools", "app"),)
    assert (page.branch, page.number, page.actor, page.kind, page.before) == (
        "release/1",
        12,
        "ada",
        "TokenCreated",
        99,
    )
    assert (page.since, page.until) == (DAY, 3 * DAY)


def test_a_host_may_have_a_port():
    page = understood(queue="localhost:3000/acme/app")
    assert (page.repos, page.branch) == ((Repo("localhost:3000", "acme", "app"),), None)


@pytest.mark.parametrize(
    "asked",
    [
        {"queue": "app"},
        {"queue": "/acme/app"},
        {"number": "x"},
        {"number": "0"},
        {"number": "-1"},
        {"number": "\N{ARABIC-INDIC DIGIT ONE}"},
        {"number": "9" * 30},
        {"kind": "Nonsense"},
        {"since": "yesterday"},
        {"until": "2026-13-01"},
        {"before": "x"},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_with_advice(asked: dict[str, str]):
    with pytest.raises(Refused, match=r"[Ww]rite|Choose|Follow"):
        understood(**asked)


def test_the_last_day_of_all_can_be_asked_for():
    assert understood(until="9999-12-31").until is not None


def test_a_filter_is_kept_in_the_address():
    asked = Filter(queue="git.local/acme/app:main", actor="Ada & Bob")
    assert asked.address(before="7") == "queue=git.local%2Facme%2Fapp%3Amain&actor=Ada+%26+Bob&before=7"
    assert Filter.in_address({"actor": " ada ", "unknown": "x"}) == Filter(actor="ada")
