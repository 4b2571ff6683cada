"""Looks whether a database is sound: as the database sees it, and as the service would load it."""

from collections.abc import Sequence

from msgspec import Struct

from mergeyard.cli.db.refusing import refuse_another_form
from mergeyard.cli.db.tally import Count, count_all
from mergeyard.ports.archive import Archive, Reading
from mergeyard.service.restoring import restore


class Findings(Struct, frozen=True, kw_only=True):
    database: str
    form: int
    tables: Sequence[Count]
    faults: Sequence[str]
    """What is wrong, a sentence each."""


async def findings(archive: Archive) -> Findings:
    form = await archive.form()
    refuse_another_form(form, archive.place)
    async with archive.reading() as reading:
        faults = [*await reading.faults(), *await _faults_of_queues(reading)]
        return Findings(database=archive.place, form=form, tables=await count_all(reading), faults=faults)


async def _faults_of_queues(reading: Reading) -> Sequence[str]:
    faults: list[str] = []
    for queue in await reading.queues():
        loaded = await reading.load(queue.id)
        try:
            restore(loaded)
        except Exception as error:  # Whatever it is, it would keep the service from starting.
            faults.append(f"The queue of {queue.key} cannot be loaded: {type(error).__name__}, {error}.")
    return faults
