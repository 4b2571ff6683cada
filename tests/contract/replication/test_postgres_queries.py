"""Every query has a name and a sentence, is used, and finds its rows without reading whole tables."""

import re
from importlib.resources.abc import Traversable
from pathlib import Path

import pytest

from mergeyard.adapters.store_postgres.connection import SQL, __file__, number_parameters, open_connection
from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.adapters.store_sql.reads import LOADING_QUERIES
from mergeyard.adapters.store_sql.statements import COMMON_QUERIES, EXPIRING, QUERIES, read_sql_files
from tests.contract.store.builders import opened
from tests.support.asynchronous import asynchronous

PACKAGE = Path(__file__).parent
TEXTS = [text for folder in (COMMON_QUERIES, PACKAGE / "queries") for _, text in read_sql_files(folder)]
GROWING = {
    "cursors",
    "deleted_queue_parts",
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
STATEMENTS_WITHOUT_A_PLAN = {"create_migrations_table"}


@asynchronous
async def test_no_query_reads_a_growing_table_from_end_to_end(url: str):
    async with opened(PostgresStore(url)):
        connection = await open_connection(url)
        await connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
        for name in SQL.keys() - STATEMENTS_WITHOUT_A_PLAN:
            query = SQL[name]
            await connection.execute(f"PREPARE {name} AS {query.text}")
            values = ", ".join(["NULL"] * len(query.names))
            steps = await connection.fetch(f"EXPLAIN EXECUTE {name}{f'({values})' if values else ''}")
            scanned = re.findall(r"Seq Scan on (\w+)", "\n".join(step for (step,) in steps))
            assert GROWING.isdisjoint(scanned), name
            wholly = re.findall(
                r"Index (?:Only )?Scan .*on (\w+).*\n(?! *Index Cond)", "\n".join(step for (step,) in steps)
            )
            assert GROWING.isdisjoint(wholly), name
        await connection.close()


def test_every_query_has_a_name_of_its_own_and_a_sentence():
    headed = [re.findall(r"^-- name: (\w+)\n-- ([A-Z].+)$", text, re.MULTILINE) for text in TEXTS]
    names = [name for found in headed for name, _ in found]
    assert sorted(names) == sorted(SQL)
    assert "".join(TEXTS).count("-- name:") == len(SQL)


def test_every_query_is_one_statement():
    assert all(query.text.count(";") == 1 and query.text.endswith(";") for query in SQL.values())


def test_every_query_is_used_and_every_used_one_is_there():
    modules = [*PACKAGE.glob("*.py"), *(PACKAGE.parent / "store_sql").glob("*.py")]
    sources = "".join(module.read_text() for module in modules)
    asked = set(re.findall(r'(?:Statement\(|(?:fetch|find)\w*\()\s*(?:[^"()]+,\s*)?"(\w+)"', sources))
    asked |= {f"{verb}_{records}" for verb in ("expired", "delete") for records, _ in EXPIRING.values()}
    assert asked | {*LOADING_QUERIES, *QUERIES.values(), "create_webhook", "update_webhook"} == set(SQL)


def test_values_are_named_and_casts_are_left_alone():
    query = number_parameters("SELECT :b::text[], :a, :b WHERE x = :c::bigint")
    assert (query.text, query.names) == ("SELECT $1::text[], $2, $1 WHERE x = $3::bigint", ("b", "a", "c"))


@pytest.mark.parametrize("folder", [COMMON_QUERIES, PACKAGE / "queries", PACKAGE / "migrations"], ids=str)
def test_no_line_is_too_long(folder: Traversable):
    assert max(len(line) for _, text in read_sql_files(folder) for line in text.splitlines()) <= 120
