"""Every table and column is transferred: none is forgotten when a migration adds one."""

import pytest

from mergeyard.adapters.store_postgres.connection import MIGRATIONS as POSTGRES_MIGRATIONS
from mergeyard.adapters.store_sql.statements import build_select
from mergeyard.adapters.store_sqlite.connection import MIGRATIONS as SQLITE_MIGRATIONS
from mergeyard.ports.archive import SCHEMA_VERSION, TABLES, Table
from tests.contract.archive.databases import Database
from tests.support.asynchronous import asynchronous

pytestmark = pytest.mark.long

ALL_COLUMNS = {
    "sqlite": """
        SELECT tables.name, columns.name FROM sqlite_schema AS tables JOIN pragma_table_info(tables.name) AS columns
        WHERE tables.type = 'table'
    """,
    "postgres": "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'",
}
NOT_TRANSFERRED_COLUMNS = {
    "sqlite": {("submissions", "row_id"), ("impacted_targets", "row_id")},
    "postgres": {
        ("queue_parts", "version"),
        ("submissions", "version"),
        ("runs", "version"),
        ("queues", "deleted_up_to"),
    },
}
"""Numbers that only the database itself uses."""
NOT_TRANSFERRED_TABLES = {"migrations", "write_probe", "replicas", "leases", "deleted_queue_parts", "sessions"}
"""Users sign in again."""


@asynchronous
async def test_every_column_of_every_table_is_transferred_or_listed_as_not_transferred(database: Database):
    await database.archive.migrate()
    there = {
        (table, column)
        for table, column in await database.execute(ALL_COLUMNS[database.kind])
        if table not in NOT_TRANSFERRED_TABLES
    }
    moved = {(table.name, column) for table in TABLES for column in table.columns}
    assert there - moved == NOT_TRANSFERRED_COLUMNS[database.kind]
    assert moved <= there


def test_the_schema_version_is_that_of_the_newest_migration_of_every_database():
    assert SCHEMA_VERSION == SQLITE_MIGRATIONS[-1].number == POSTGRES_MIGRATIONS[-1].number


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_key_of_a_table_is_among_its_columns(table: Table):
    assert set(table.key) <= set(table.columns)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
@asynchronous
async def test_sqlite_reads_each_table_in_order_without_sorting(table: Table, embedded: Database):
    await embedded.archive.migrate()
    plan = await embedded.execute(f"EXPLAIN QUERY PLAN {build_select(table)}")
    assert not [step for *_, step in plan if "TEMP B-TREE" in step]
