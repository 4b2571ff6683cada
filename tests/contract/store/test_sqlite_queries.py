"""Every query has a name and a sentence, is used, and finds its rows without reading whole tables."""

import re
from pathlib import Path

import pytest

from mergeyard.adapters.store_sql.reads import LOADING_QUERIES
from mergeyard.adapters.store_sql.statements import COMMON_QUERIES, EXPIRING, QUERIES, read_sql_files
from mergeyard.adapters.store_sqlite.connection import SQL, __file__, open_for_writing
from mergeyard.adapters.store_sqlite.writer import STEPS

PACKAGE = Path(__file__).parent
TEXTS = [text for folder in (COMMON_QUERIES, PACKAGE / "queries") for _, text in read_sql_files(folder)]
GROWING = {
    "cursors",
    "deliveries",
    "impacted_targets",
    "journal",
    "queue_parts",
    "responses",
    "runs",
    "sessions",
    "statuses",
    "submissions",
    "thread_states",
}
SORTING = {
    "delete_targets_of_older_heads",  # the few heads of one pull request
    "results",  # one page
    "submissions_by_end",  # a long submission ends after later ones
    "submissions_by_time",  # ids are counted, times come from a clock that can go back
    "tokens",  # few, and listed for administrators
}


FOUND_BY = {
    "advance_versions": "(id=?)",
    "audit_entries": "INTEGER PRIMARY KEY (rowid<?)",
    "concluded_submissions": "INDEX journal_of_ends (queue=?)",
    "count_results": "COVERING INDEX runs_decided (queue=? AND decided_at>? AND decided_at<?)",
    "cursor": "(consumer=? AND queue=?)",
    "decided_runs": "INDEX runs_decided (queue=? AND decided_at>? AND decided_at<?)",
    "delete_expired_responses": "(at<?)",
    "delete_expired_sessions": "(expires_at<?)",
    "delete_old_deliveries": "INDEX deliveries_of_webhook (webhook=?)",
    "delete_oldest_unclaimed_statuses": "INDEX statuses_unclaimed (unclaimed_by=?)",
    "delete_queue_parts": "(queue=? AND kind=? AND key=?)",
    "delete_sso_sessions": "(token=?)",
    "deliveries": "INDEX deliveries_of_webhook (webhook=?)",
    "delivery": "INDEX deliveries_of_event (webhook=? AND event=?)",
    "ended_submissions": "INDEX submissions_ended (ended_at>? AND ended_at<?)",
    "entries": "(queue=? AND rowid>?)",
    "expired_entries": "INDEX journal_by_time (at<?)",
    "expired_impacted_targets": "INDEX impacted_targets_by_age (at<?)",
    "expired_runs": "INDEX runs_ended (ended_at<?)",
    "expired_statuses": "INDEX statuses_unclaimed_by_age (at<?)",
    "expired_submissions": "INDEX submissions_ended (ended_at<?)",
    "had_run": "(queue=? AND id=?)",
    "has_any_impacted_targets": "(host=? AND owner=? AND name=?)",
    "has_impacted_targets": "(queue=? AND number=? AND head=?)",
    "impacted_targets": "(queue=? AND number=? AND head=?)",
    "impacted_targets_size": "INDEX impacted_targets_by_token (token=?)",
    "last_change": "INDEX journal_of_queue_changes (queue=?)",
    "last_state_entry": "INDEX journal_of_queue_changes (queue=?)",
    "last_submission": "(queue=? AND number=?)",
    "last_submission_of_branch": "(queue=? AND head_branch=?)",
    "live_runs": "INDEX runs_live (queue=?)",
    "live_submissions": "INDEX submissions_live (queue=?)",
    "move_submissions": "(queue=? AND submission_id=?)",
    "queue_of_run": "INDEX runs_by_id (id=?)",
    "queue_parts": "(queue=?)",
    "queues_with_unread_entries": "INDEX journal_of_queue (queue=?)",
    "response": "(token=? AND key=?)",
    "results": "COVERING INDEX runs_decided (queue=? AND decided_at>? AND decided_at<?)",
    "run": "(queue=? AND id=?)",
    "session": "(digest=?)",
    "statuses": "(host=? AND owner=? AND name=? AND sha=?)",
    "submission": "(queue=? AND submission_id=?)",
    "submissions": "(queue=? AND submission_id<?)",
    "submissions_by_end": "COVERING INDEX submissions_by_end (queue=? AND ended_at>?)",
    "submissions_by_time": "(queue=? AND submitted_at>? AND submitted_at<?)",
    "submissions_in_state": "(queue=? AND state=? AND submission_id<?)",
    "thread_state": "(queue=? AND number=?)",
    "timeline": "(queue=? AND submission_id=?)",
    "token": "(digest=?)",
    "token_by_id": "(id=?)",
    "transitions": "(at>? AND at<?)",
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
def test_each_query_uses_its_index(query: str, tmp_path: Path):
    assert any(FOUND_BY[query] in step for step in plan_of(query, tmp_path))


def test_every_query_has_a_name_of_its_own_and_a_sentence():
    headed = [re.findall(r"^-- name: (\w+)\n-- ([A-Z].+\.)$", text, re.MULTILINE) for text in TEXTS]
    names = [name for found in headed for name, _ in found]
    assert sorted(names) == sorted(SQL)
    assert "".join(TEXTS).count("-- name:") == len(SQL)


def test_every_query_is_one_statement():
    assert all(text.count(";") == 1 and text.endswith(";") for text in SQL.values())


def test_every_query_is_used_and_every_used_one_is_there():
    modules = [*PACKAGE.glob("*.py"), *(PACKAGE.parent / "store_sql").glob("*.py")]
    sources = "".join(module.read_text() for module in modules)
    asked = set(re.findall(r'(?:SQL\[|_execute\(cursor, |rows\(|(?:fetch|find)\w*\((?:[^"()]+, )?)"(\w+)"', sources))
    asked |= {f"expired_{records}" for records, _ in EXPIRING.values()} | set(LOADING_QUERIES)
    for query in {
        *re.findall(r'Statement\(\s*"(\w+)"', sources),
        *QUERIES.values(),
        *STEPS,
        "create_webhook",
        "update_webhook",
    }:
        asked |= set(STEPS.get(query, (query,)))
    assert asked == set(SQL)
