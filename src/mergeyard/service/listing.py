"""Lists of pull requests: page by page, several at once, and what happened to one."""

from collections.abc import Iterable

import msgspec

from mergeyard.domain.ids import PrNumber, Ticket
from mergeyard.domain.journal import PrChanged
from mergeyard.domain.repositories import QueueKey
from mergeyard.ports.store import Page
from mergeyard.service.errors import Code, Refused
from mergeyard.service.stays import Stays
from mergeyard.service.views import PullView, Viewpoint
from mergeyard.service.yard import Yard

MAX_TIMELINE_ENTRIES = 1000
"""Of one submission, the newest: a client can restart its tests any number of times."""

decode_entry = msgspec.json.Decoder(PrChanged).decode


class Listing:
    def __init__(self, yard: Yard, stays: Stays) -> None:
        self._yard = yard
        self._stays = stays

    async def page(self, key: QueueKey, page: Page) -> tuple[list[PullView], Ticket | None]:
        """Newest submission first, and where the next page begins, if there is one."""
        keeper, now = await self._yard.keeper(key), self._yard.clock.now()
        one_more = msgspec.structs.replace(page, take=page.take + 1)
        bodies = await self._yard.store.stays(keeper.id, one_more)
        viewpoint = Viewpoint(keeper.queue, now, keeper.forecast)
        views = [await self._stays.seen_from(keeper, viewpoint, body) for body in bodies]
        more = len(views) > page.take
        return views[: page.take], views[page.take - 1].stay.ticket if more else None

    async def several(self, key: QueueKey, numbers: Iterable[PrNumber]) -> tuple[list[PullView], list[PrNumber]]:
        found, missing = list[PullView](), list[PrNumber]()
        for number in dict.fromkeys(numbers):
            try:
                found.append(await self._stays.show(key, number))
            except Refused as refused:
                if refused.code is not Code.PR_NOT_SUBMITTED:
                    raise
                missing.append(number)
        return found, missing

    async def timeline(self, key: QueueKey, ticket: Ticket) -> list[PrChanged]:
        keeper = await self._yard.keeper(key)
        entries = await self._yard.store.timeline(keeper.id, ticket, MAX_TIMELINE_ENTRIES)
        return [decode_entry(entry.body) for entry in entries]
