"""What if: a form of settings, and what the queue's own past would have been with them."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import MINUTE, later
from mergeyard.domain.repositories import QueueKey
from mergeyard.service.replaying.replays import Replay
from mergeyard.web.hall import Hall
from mergeyard.web.health.periods import LENGTHS, USUAL, Length
from mergeyard.web.remembering import Remembered
from mergeyard.web.whatif import fields
from mergeyard.web.whatif.fields import asked
from mergeyard.web.whatif.shown import shown

Question = tuple[QueueId, str, tuple[tuple[str, Any], ...]]
"""Of which queue, over what, with which wishes. The time is not asked for: a minute ago is good enough."""


class WhatIfPage:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self._remembered = Remembered[Question, Replay](hall.service.clock, MINUTE)

    def routes(self) -> Sequence[Route]:
        return (Route("/whatif/{queue:path}", self.show),)

    async def show(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request)
        key = self._hall.queue(visitor, request.path_params["queue"])
        keeper = await self._hall.service.yard.keeper(key)
        length = LENGTHS.get(request.query_params.get("period", ""), LENGTHS[USUAL])
        questions = asked(request.query_params, keeper.queue.config)
        replay = None
        if questions.wishes is not None:
            try:
                replay = await self._replayed(request, key, keeper.id, length, questions.wishes)
            except ClientDisconnect:
                return Response(status_code=204)  # for nobody
        return self._hall.form(
            request,
            "whatif.html",
            visitor,
            questions.troubles,
            key=key,
            length=length,
            lengths=LENGTHS,
            asked=questions,
            farthest=fields.farthest,
            replay=replay,
            seen=None if replay is None else shown(replay),
        )

    async def _replayed(
        self, request: Request, key: QueueKey, queue: QueueId, length: Length, wishes: Mapping[str, Any]
    ) -> Replay:
        async def find_out() -> Replay:
            """Others wait for their turn meanwhile, so nothing is replayed for somebody who has left."""
            if await request.is_disconnected():
                raise ClientDisconnect
            since = later(self._hall.service.clock.now(), -length.milliseconds)
            return await self._hall.service.replays.replay(key, since, wishes)

        return await self._remembered.answer((queue, length.name, tuple(sorted(wishes.items()))), find_out)
