"""The audit log shows who did what, can be filtered, and can be exported as a file."""

import csv
import json
from io import StringIO
from pathlib import Path

from mergeyard.domain.access import Scope
from mergeyard.domain.ids import Repo
from mergeyard.domain.journal import QueueChanged
from mergeyard.domain.states import QueueState, Reason
from mergeyard.domain.timestamps import later
from mergeyard.ports.writes import AppendEntries
from mergeyard.service.audit_log import EXPORT_CHUNK_ENTRIES, build_row
from mergeyard.web.admin.audit_log import ENTRIES_PER_PAGE
from tests.support.asynchronous import asynchronous
from tests.support.scenario import MINUTE, REPO, a_scenario
from tests.support.web_client import Page, a_signed_in_client

PAGE = "/administration/audit"
ALL = f"{PAGE}?automatic=1"
PAST_MIDNIGHT = 3 * 60 * MINUTE
FORMULA = '=HYPERLINK("https://evil.example")'


def log_rows(page: Page) -> list[str]:
    return [row.text for row in page.all("tr")[1:]]


@asynchronous
async def test_entries_are_shown_newest_first_with_their_actor(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.cancel(1)
        first, *_, signed_in, token, created = log_rows(await visitor.get(ALL))
        assert "Pull request changed: Testing → Removed ada removed the pull request from the queue." in first
        assert "acme/app main #1" in first
        assert "Signed in" in signed_in
        assert "operator Token created ada admin, read server" in token
        assert "Queue created" in created


@asynchronous
async def test_first_page_shows_what_users_did_and_a_switch_adds_the_changes_by_the_queue(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        page = await visitor.get(f"{PAGE}?number=1")
        assert [row for row in log_rows(page) if "mergeyard" in row] == []
        assert any("Pull request changed: Submitted" in row for row in log_rows(page))
        assert f"{PAGE}?number=1&automatic=1" in page.links()
        everything = await visitor.get(f"{PAGE}?number=1&automatic=1")
        assert any("mergeyard" in row and "Merged" in row for row in log_rows(everything))
        assert "checked" in everything.one("input[name=automatic]").attributes
        assert f"{PAGE}.csv?number=1&automatic=1" in everything.links()
        assert any("mergeyard" in row for row in log_rows(await visitor.get(f"{PAGE}?actor=mergeyard")))
        exported = [(await visitor.get(f"{PAGE}.jsonl?{query}")).html for query in ("", "automatic=1")]
        assert [text.count('"actor":"mergeyard"') > 0 for text in exported] == [False, True]


@asynchronous
async def test_page_of_what_users_did_skips_any_number_of_changes_by_the_queue(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        changed = QueueChanged(
            at=scenario.clock.now(), source=QueueState.RUNNING, to=QueueState.RUNNING, reason=Reason.SETTINGS_CHANGED
        )
        row = build_row(scenario.queue_actor.id, changed)
        await scenario.store.commit(AppendEntries((row,) * (EXPORT_CHUNK_ENTRIES + 1)))
        assert "Queue created" in log_rows(await visitor.get(PAGE))[-1]


@asynchronous
async def test_entries_can_be_filtered(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        scenario.open(1, 2)
        await scenario.submit_without_waiting(1)
        scenario.clock.move_to(later(scenario.clock.now(), PAST_MIDNIGHT))
        await scenario.submit_without_waiting(2)
        await scenario.wait_until_idle()
        for query, there, not_there in (
            ("number=2", "#2", "#1"),
            ("queue=git.local/acme/app:main", "Queue created", "Token created"),
            ("actor=operator", "Token created", "Queue created"),
            ("kind=SignedIn", "Signed in", "operator"),
            ("since=2023-11-15", "#2", "Queue created"),
            ("until=2023-11-14", "#1", "#2"),
        ):
            page = await visitor.get(f"{ALL}&{query}")
            found = " ".join(log_rows(page))
            assert there in found, query
            assert not_there not in found, query
        assert "No matching entries" in (await visitor.get(f"{PAGE}?actor=unknown")).text
        wrong = await visitor.get(f"{PAGE}?since=yesterday&actor=ada")
        assert (wrong.status, wrong.one("#actor")["value"]) == (422, "ada")
        assert "Write it as 2026-11-15" in wrong.one("main").one("[role=alert]").text


@asynchronous
async def test_links_to_the_next_page_keep_the_filter(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        for count in range(ENTRIES_PER_PAGE):
            await scenario.service.tokens.create(f"token {count}")
        first = await visitor.get(f"{PAGE}?kind=TokenCreated")
        assert len(log_rows(first)) == ENTRIES_PER_PAGE
        (older,) = [link["href"] for link in first.all("a[rel=next]")]
        last = await visitor.get(older)
        assert [row for row in log_rows(last) if "Token created ada" in row] == log_rows(last)
        assert not last.all("a[rel=next]")
        assert f"{PAGE}?kind=TokenCreated" in last.links()


@asynchronous
async def test_log_is_exported_as_csv_without_spreadsheet_formulas(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        await scenario.service.tokens.create(FORMULA)
        answer = await visitor.get(f"{PAGE}.csv?kind=TokenCreated")
        assert answer.headers["content-disposition"] == 'attachment; filename="mergeyard-audit-2023-11-14.csv"'
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        formula, ada = csv.DictReader(StringIO(answer.html))
        assert formula["subject"] == f"'{FORMULA}"
        assert (ada["actor"], ada["kind"], ada["time"]) == ("operator", "TokenCreated", "2023-11-14T22:13:20Z")


@asynchronous
async def test_log_of_any_length_is_exported_as_json_lines(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        answer = await visitor.get(f"{PAGE}.jsonl?automatic=1")
        assert answer.headers["content-type"] == "application/jsonl"
        rows = [json.loads(row) for row in answer.html.splitlines()]
        assert [row["seq"] for row in rows] == sorted((row["seq"] for row in rows), reverse=True)
        (submitted,) = [row for row in rows if row["reason"] == "submitted"]
        assert (submitted["from"], submitted["to"], submitted["pull_request"]) == (None, "not_ready", 1)
        assert len(rows) == len(log_rows(await visitor.get(ALL)))
        assert (await visitor.get(f"{PAGE}.jsonl?since=x")).status == 400


@asynchronous
async def test_limited_administrator_reads_only_entries_of_their_repositories(tmp_path: Path):
    async with (
        a_scenario(tmp_path) as scenario,
        a_signed_in_client(scenario, Scope.ADMIN, repos=(REPO,), name="limited") as limited,
        a_signed_in_client(
            scenario, Scope.ADMIN, repos=(Repo("git.local", "acme", "lib"),), name="stranger"
        ) as stranger,
        a_signed_in_client(scenario, Scope.PRIORITY, name="reader") as reader,
    ):
        assert [row for row in log_rows(await limited.get(PAGE)) if "Queue created" in row] == log_rows(
            await limited.get(PAGE)
        )
        assert (await limited.get(f"{PAGE}.jsonl")).html.count("\n") == 1
        for query in ("", "?queue=git.local/acme/app"):
            page = await stranger.get(PAGE + query)
            assert "No matching entries" in page.text
            assert not log_rows(page)
            assert (await stranger.get(f"{PAGE}.jsonl{query}")).html == ""
        for ending in ("", ".csv", ".jsonl"):
            assert (await reader.get(PAGE + ending)).status == 403


@asynchronous
async def test_hostile_names_are_shown_as_text(tmp_path: Path):
    async with (
        a_scenario(tmp_path) as scenario,
        a_signed_in_client(scenario, Scope.ADMIN, name="<b>ada</b>&\u202e") as visitor,
    ):
        page = await visitor.get(f"{PAGE}?actor=%22%3E%3Cscript%3E")
        assert page.one("#actor")["value"] == '"><script>'
        page = await visitor.get(PAGE)
        assert "<b>ada" not in page.html
        assert "/administration/audit?actor=%3Cb%3Eada%3C%2Fb%3E%26%E2%80%AE" in page.links()
