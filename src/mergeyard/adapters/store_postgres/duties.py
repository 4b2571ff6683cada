"""Keeps who works for which repository. All times are those of the database's own clock."""

from collections.abc import Collection, Sequence

from mergeyard.adapters.store_postgres.handles import Value
from mergeyard.adapters.store_postgres.reader import Reader
from mergeyard.adapters.store_postgres.rows import duty_of
from mergeyard.domain.repositories import Repo
from mergeyard.ports.sharing import Duty, Roster
from mergeyard.ports.store import Relieved


class Duties:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def enlist(self, replica: str, lasting: int) -> None:
        await self._reader.rows("enlist", replica=replica, lasting=lasting)

    async def report(self, replica: str, lasting: int) -> Roster:
        counts = await self._reader.row("report", replica=replica, lasting=lasting)
        if counts is None:
            raise Relieved(f"{replica} was not heard of for too long.")
        repositories, workers = counts
        duties = tuple(map(duty_of, await self._reader.rows("duties", replica=replica)))
        return Roster(duties=duties, repositories=repositories, workers=workers)

    async def claim(self, replica: str, most: int, at_hand: Collection[Repo], patience: int) -> Sequence[Duty]:
        wanted = _columns(at_hand)
        taken = await self._reader.rows("claim", replica=replica, most=most, patience=patience, **wanted)
        return tuple(map(duty_of, taken))

    async def let_go(self, replica: str, repos: Collection[Repo]) -> None:
        await self._reader.rows("let_go", replica=replica, **_columns(repos))

    async def resign(self, replica: str) -> None:
        await self._reader.rows("resign", replica=replica)


def _columns(repos: Collection[Repo]) -> dict[str, Value]:
    return {
        "hosts": [repo.host for repo in repos],
        "owners": [repo.owner for repo in repos],
        "names": [repo.name for repo in repos],
    }
