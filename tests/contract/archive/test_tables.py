"""What is moved is everything that there is: no table and no column is forgotten when a migration brings a new one."""

import pytest

from mergeyard.adapters.store_postgres.migrating import MIGRATIONS as POSTGRES_MIGRATIONS
from mergeyard.adapters.store_sqlite.archive_tables import selection
from mergeyard.adapters.store_sqlite.migrating import MIGRATIONS as SQLITE_MIGRATIONS
from mergeyard.ports.archive import FORM, TABLES, Table
from tests.contract.archive.places import Place
from tests.support.asynchronous import asynchronous

ALL_COLUMNS = {
    "sqlite": """
        SELECT tables.name, columns.name FROM sqlite_schema AS tables JOIN pragma_table_info(tables.name) AS columns
        WHERE tables.type = 'table'
    """,
    "postgres": "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'",
}
NOT_MOVED = {
    "sqlite": {("stays", "place"), ("targets", "place")},
    "postgres": {("facts", "version"), ("stays", "version"), ("runs", "version"), ("queues", "deleted_up_to")},
}
"""Numbers that only the database itself uses."""
SIGNS_OF_LIFE = {"migrations", "pulse", "replicas", "duties", "dropped", "sessions"}
"""Whoever was signed in signs in again."""


@asynchronous
async def test_every_column_of_every_table_is_moved_or_left_behind_on_purpose(place: Place):
    await place.archive.migrate()
    there = {
        (table, column) for table, column in await place.ask(ALL_COLUMNS[place.kind]) if table not in SIGNS_OF_LIFE
    }
    moved = {(table.name, column) for table in TABLES for column in table.columns}
    assert there - moved == NOT_MOVED[place.kind]
    assert moved <= there


def test_the_tables_are_described_as_the_newest_migration_of_every_database_left_them():
    assert FORM == SQLITE_MIGRATIONS[-1].number == POSTGRES_MIGRATIONS[-1].number


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_key_of_a_table_is_among_its_columns(table: Table):
    assert set(table.key) <= set(table.columns)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
@asynchronous
async def test_sqlite_need_not_sort_and_so_keeps_no_table_in_memory(table: Table, embedded: Place):
    await embedded.archive.migrate()
    plan = await embedded.ask(f"EXPLAIN QUERY PLAN {selection(table)}")
    assert not [step for *_, step in plan if "TEMP B-TREE" in step]
