"""However many rows there are, only some of them are in memory at a time."""

import tracemalloc
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from mergeyard.cli.db.exporting import export_to
from mergeyard.cli.db.importing import import_from
from mergeyard.ports.writes import AppendEntries
from tests.contract.archive.places import Place, sqlite
from tests.contract.store.given import a_queue, an_entry, opened
from tests.support.asynchronous import asynchronous

ROWS = 5000
WORDS = "as many words as people write about a change " * 20
MEGABYTE = 1_000_000


@contextmanager
def within(megabytes: int) -> Generator[None]:
    """More than that is not in use at once."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < megabytes * MEGABYTE


@asynchronous
async def test_thousands_of_rows_move_through_little_memory(embedded: Place, shared: Place, tmp_path: Path):
    async with opened(embedded.store()) as store:
        await store.commit(a_queue())
        for _ in range(20):
            await store.commit(AppendEntries((an_entry(WORDS),) * (ROWS // 20)))
    there, back, end = tmp_path / "there.jsonl", tmp_path / "back.jsonl", sqlite(tmp_path / "end")
    with within(3):
        await export_to(there, embedded.archive)
        await import_from(there, shared.archive)
        await export_to(back, shared.archive)
        counts = await import_from(back, end.archive)
    assert there.stat().st_size > 5 * MEGABYTE
    assert [count.rows for count in counts if count.table == "journal"] == [ROWS]
