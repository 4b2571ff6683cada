"""Fills an empty database from a portable file, and makes sure that everything arrived."""

from collections.abc import Sequence
from pathlib import Path

from mergeyard.cli.db.portable import open_to_read
from mergeyard.cli.db.refusing import Refused, refuse_another_form, told_of
from mergeyard.cli.db.tally import Count, count_all
from mergeyard.cli.db.unpacking import Unpacking
from mergeyard.ports.archive import TABLES, Archive, Filling, Unfit


async def import_from(path: Path, archive: Archive) -> Sequence[Count]:
    with told_of(path), open_to_read(path) as file:
        unpacking = Unpacking(path, file)
        unpacking.read_header()
        if await archive.form() == 0:
            await archive.migrate()
        refuse_another_form(await archive.form(), archive.place)
        async with archive.filling() as filling:
            await _refuse_a_used_one(filling, archive.place)
            await _fill(filling, unpacking, path)
            return await _arrived(filling, unpacking.counts)


async def _refuse_a_used_one(filling: Filling, place: str) -> None:
    if hindrances := await filling.hindrances():
        raise Refused(
            f"{place} is not empty and idle ({', '.join(hindrances)}), and was left as it is. "
            "Import into an empty database, before anything works on it."
        )


async def _fill(filling: Filling, unpacking: Unpacking, path: Path) -> None:
    try:
        for table in TABLES:
            for rows in unpacking.read(table):
                await filling.put(table, rows)
    except Unfit as error:
        raise Refused(f"{path} contradicts itself, so nothing was imported ({error}). Export again.") from error
    unpacking.read_footer()
    await filling.settle()


async def _arrived(filling: Filling, sent: Sequence[Count]) -> Sequence[Count]:
    """As read back from the database."""
    found = await count_all(filling)
    different = [count.table for count, known in zip(found, sent, strict=True) if count != known]
    if different:
        raise Refused(
            f"Not everything arrived as it was sent, so nothing was imported ({', '.join(different)}). "
            "Keep the file and report this as a bug."
        )
    return found
