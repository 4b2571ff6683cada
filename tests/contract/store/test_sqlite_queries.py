"""Every query has a name and a sentence, is used, and finds what it looks for without reading whole tables."""

import re
from pathlib import Path

import pytest

from mergeyard.adapters.store_sqlite import sql
from mergeyard.adapters.store_sqlite.connecting import open_for_writing
from mergeyard.adapters.store_sqlite.sql import SQL

PACKAGE = Path(sql.__file__).parent
TEXTS = [text for _, text in sql.texts("queries")]
GROWING = {
    "answers",
    "conversations",
    "cursors",
    "deliveries",
    "facts",
    "journal",
    "runs",
    "sessions",
    "statuses",
    "stays",
    "targets",
}
SORTING = {
    "drop_older_heads",  # the few heads of one pull request
    "results",  # one page
    "stays_submitted",  # tickets are counted, times come from a clock that may go back
    "tokens",  # few, and listed for people
}


FOUND_BY = {
    "any_targets": "(host=? AND owner=? AND name=?)",
    "answer": "(token=? AND key=?)",
    "audit": "INTEGER PRIMARY KEY (rowid<?)",
    "behind": "INDEX journal_of_queue (queue=?)",
    "has_targets": "(queue=? AND number=? AND head=?)",
    "move_stay": "(queue=? AND ticket=?)",
    "move_stays": "(queue=? AND ticket=?)",
    "concluded_stays": "INDEX journal_of_ends (queue=?)",
    "conversation": "(queue=? AND number=?)",
    "cursor": "(teller=? AND queue=?)",
    "count_results": "COVERING INDEX runs_decided (queue=? AND decided_at>? AND decided_at<?)",
    "decided_runs": "INDEX runs_decided (queue=? AND decided_at>? AND decided_at<?)",
    "deliveries": "INDEX deliveries_of_webhook (webhook=?)",
    "delivery": "INDEX deliveries_of_event (webhook=? AND event=?)",
    "drop_facts_of_turns": "(queue=? AND shelf=? AND key=?)",
    "drop_vouched_for": "(token=?)",
    "entries": "(queue=? AND rowid>?)",
    "expired_entries": "INDEX journal_by_time (at<?)",
    "expired_runs": "INDEX runs_ended (ended_at<?)",
    "expired_statuses": "INDEX statuses_unclaimed_by_age (at<?)",
    "expired_stays": "INDEX stays_ended (ended_at<?)",
    "expired_targets": "INDEX targets_by_age (at<?)",
    "drop_oldest_unclaimed": "INDEX statuses_unclaimed (unclaimed_by=?)",
    "facts": "(queue=?)",
    "figures": "(at>? AND at<?)",
    "forget_answers": "(at<?)",
    "forget_deliveries": "INDEX deliveries_of_webhook (webhook=?)",
    "forget_sessions": "(expires_at<?)",
    "last_change": "INDEX journal_of_queue_changes (queue=?)",
    "last_stay": "(queue=? AND number=?)",
    "last_stay_of_branch": "(queue=? AND branch=?)",
    "live_runs": "INDEX runs_live (queue=?)",
    "live_stays": "INDEX stays_live (queue=?)",
    "had_run": "(queue=? AND id=?)",
    "queue_of_run": "INDEX runs_by_id (id=?)",
    "results": "COVERING INDEX runs_decided (queue=? AND decided_at>? AND decided_at<?)",
    "run": "(queue=? AND id=?)",
    "session": "(digest=?)",
    "statuses": "(host=? AND owner=? AND name=? AND sha=?)",
    "stay": "(queue=? AND ticket=?)",
    "stays": "(queue=? AND ticket<?)",
    "stays_in_state": "(queue=? AND state=? AND ticket<?)",
    "stays_submitted": "(queue=? AND submitted_at>? AND submitted_at<?)",
    "take_turns": "(id=?)",
    "targets": "(queue=? AND number=? AND head=?)",
    "targets_size": "INDEX targets_by_token (token=?)",
    "timeline": "(queue=? AND ticket=?)",
    "token": "(digest=?)",
    "token_of_id": "(id=?)",
}


def plan_of(query: str, folder: Path) -> list[str]:
    connection = open_for_writing(folder / "mergeyard.db")
    unknown = dict.fromkeys(re.findall(r":(\w+)", SQL[query])) or None
    steps = connection.execute(f"EXPLAIN QUERY PLAN {SQL[query]}", unknown).fetchall()
    connection.close()
    return [step for *_, step in steps]


@pytest.mark.parametrize("query", SQL)
def test_no_query_reads_a_growing_table_from_end_to_end(query: str, tmp_path: Path):
    plan = plan_of(query, tmp_path)
    assert {step.split()[1] for step in plan if step.startswith("SCAN")}.isdisjoint(GROWING)
    assert query in SORTING or not any("TEMP B-TREE" in step for step in plan)


@pytest.mark.parametrize("query", FOUND_BY)
def test_an_index_leads_to_exactly_what_is_asked_for(query: str, tmp_path: Path):
    assert any(FOUND_BY[query] in step for step in plan_of(query, tmp_path))


def test_every_query_has_a_name_of_its_own_and_a_sentence():
    headed = [re.findall(r"^-- name: (\w+)\n-- ([A-Z].+\.)$", text, re.MULTILINE) for text in TEXTS]
    names = [name for found in headed for name, _ in found]
    assert sorted(names) == sorted(SQL)
    assert "".join(TEXTS).count("-- name:") == len(SQL)


def test_every_query_is_one_statement():
    assert all(text.count(";") == 1 and text.endswith(";") for text in SQL.values())


def test_every_query_is_used_and_every_used_one_is_there():
    rooms = "".join(room.read_text() for room in PACKAGE.glob("*.py"))
    asked = re.findall(r'(?:SQL\[|rows\(|row\(|value\(|bodies\(\s*)"(\w+)"', rooms)
    for either in re.findall(r'SQL\["(\w+)" if .+ else "(\w+)"\]', rooms):
        asked += either
    assert set(asked) == set(SQL)
