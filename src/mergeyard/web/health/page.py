"""Health, of one queue or of all that the visitor may see, over a period that the reader chooses."""

import asyncio
from collections.abc import Mapping, Sequence

from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import MINUTE
from mergeyard.domain.repositories import QueueKey
from mergeyard.service.history import flakiness, reasons
from mergeyard.service.history.flakiness import Suspect
from mergeyard.service.history.past import Past
from mergeyard.service.history.reading import Histories
from mergeyard.service.history.summing import sum_up
from mergeyard.service.turn import Keeper
from mergeyard.web.hall import Hall
from mergeyard.web.health import bars, charts, estimates, periods
from mergeyard.web.health.bars import Bars
from mergeyard.web.health.charts import Drawn
from mergeyard.web.health.headlines import Headline, headlines
from mergeyard.web.health.periods import By, Period
from mergeyard.web.remembering import Remembered
from mergeyard.web.visiting import Visitor


class Health(Struct, frozen=True, kw_only=True):
    headlines: Sequence[Headline]
    drawn: Drawn
    conclusions: Bars
    restarts: Bars
    suspects: Sequence[Suspect]


class Examined(Struct, frozen=True):
    period: Period
    health: Health | None
    """None when nothing happened."""


Question = tuple[frozenset[QueueId], str, By]
"""Of which queues, and over what, drawn by what. The time is not asked for: a minute ago is good enough."""


class HealthPage:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self._histories = Histories(hall.service.store)
        self._remembered = Remembered[Question, Examined](hall.service.clock, MINUTE)

    def routes(self) -> Sequence[Route]:
        return (Route("/health", self.show_all), Route("/health/{queue:path}", self.show))

    async def show_all(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request)
        return await self._page(request, visitor, await self._hall.service.yard.seen_by(visitor.token), None)

    async def show(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request)
        key = self._hall.queue(visitor, request.path_params["queue"])
        return await self._page(request, visitor, [await self._hall.service.yard.keeper(key)], key)

    async def _page(
        self, request: Request, visitor: Visitor, keepers: Sequence[Keeper], key: QueueKey | None
    ) -> Response:
        asked = request.query_params
        period = periods.chosen(asked.get("period", ""), asked.get("by", ""), self._hall.service.clock.now())
        names: Mapping[QueueId, QueueKey] = {keeper.id: keeper.key for keeper in keepers}
        question = (frozenset(names), period.length.name, period.by)
        try:
            found = await self._remembered.answer(question, lambda: self._examine(request, tuple(names), period))
        except ClientDisconnect:
            return Response(status_code=204)  # for nobody
        held = self._hall.service.calibration.of(keepers)
        context = {"names": names, "period": found.period, "health": found.health, "estimates": estimates.judged(held)}
        return self._hall.page(request, "health.html", visitor, key=key, lengths=periods.LENGTHS, **context)

    async def _examine(self, request: Request, queues: Sequence[QueueId], period: Period) -> Examined:
        """Others wait for their turn meanwhile, so nothing is read for somebody who has left."""
        if await request.is_disconnected():
            raise ClientDisconnect
        past = await self._histories.read(queues, period.before[0], period.until)
        return Examined(period, await asyncio.to_thread(examined, past, period))


def examined(past: Past, period: Period) -> Health | None:
    now = past.between(period.since, period.until)
    if now.empty:
        return None
    whole = sum_up(now)
    return Health(
        headlines=headlines(whole, sum_up(past.between(*period.before))),
        drawn=charts.draw(period, [sum_up(part) for part in now.parted(period.starts)], whole),
        conclusions=bars.conclusions(reasons.of_conclusions(now.figures)),
        restarts=bars.restarts(reasons.of_restarts(now.figures)),
        suspects=flakiness.suspects(now.runs),
    )
