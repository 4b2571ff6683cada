"""An import that is killed in the middle leaves the database empty, and can be begun again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mergeyard.cli.db.exporting import export_to
from mergeyard.cli.db.importing import import_from
from mergeyard.cli.db.tally import count_all
from mergeyard.ports.writes import AppendEntries
from tests.contract.archive.places import Place, sqlite
from tests.contract.store.given import a_queue, an_entry, opened
from tests.support.asynchronous import asynchronous

COMMAND = [sys.executable, "-m", "mergeyard", "db", "import"]


async def a_large_export(tmp_path: Path) -> Path:
    source, file = sqlite(tmp_path / "source"), tmp_path / "all.jsonl"
    async with opened(source.store()) as store:
        await store.commit(a_queue())
        await store.commit(AppendEntries((an_entry("word " * 200),) * 5000))
    await export_to(file, source.archive)
    return file


@pytest.mark.parametrize("ending", ["kill", "terminate"])
@asynchronous
async def test_an_import_that_is_ended_in_the_middle_leaves_nothing(ending: str, place: Place, tmp_path: Path):
    file = await a_large_export(tmp_path)
    content, pipe = file.read_bytes(), tmp_path / "pipe"
    os.mkfifo(pipe)
    options = ["--database-url", place.option, "--data-dir", str(tmp_path / "lock")]
    importing = subprocess.Popen([*COMMAND, str(pipe), *options], stderr=subprocess.PIPE)
    with pipe.open("wb", 0) as slow:
        # A pipe holds little, so when this much was taken, nearly all of it was read and written.
        slow.write(content[: len(content) // 2])
        getattr(importing, ending)()
        importing.communicate()
    assert importing.returncode < 0
    async with place.archive.reading() as reading:
        assert sum(count.rows for count in await count_all(reading)) == 0
    assert sum(count.rows for count in await import_from(file, place.archive)) == 5001
