"""One event that was sent to a webhook: what it held, how often it was tried, and what was answered."""

from collections.abc import Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.domain.tokens import Scope
from mergeyard.ports.store import DELIVERIES_KEPT
from mergeyard.service.errors import Code, Refused
from mergeyard.service.telling.webhooks import Asker
from mergeyard.web.administration.webhook import ONE
from mergeyard.web.hall import Hall


class DeliveryPage:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self._office = hall.service.office

    def routes(self) -> Sequence[Route]:
        return (Route(f"{ONE}/events/{{event}}", self.show, methods=["GET"]),)

    async def show(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        asker, event = Asker(visitor.token), request.path_params["event"]
        webhook = (await self._office.webhooks.find(asker, request.path_params["webhook"])).webhook
        deliveries = await self._office.webhooks.deliveries(asker, webhook.id, DELIVERIES_KEPT)
        attempts = [delivery for delivery in deliveries if delivery.event == event]
        if not attempts:
            words = f"This event is not among the last {DELIVERIES_KEPT} attempts of this webhook."
            raise Refused(Code.EVENT_NOT_FOUND, words)
        payload = await self._office.trying.payload(asker, webhook.id, event)
        return self._hall.page(
            request,
            "administration/delivery.html",
            visitor,
            webhook=webhook,
            attempts=attempts,
            payload="" if payload is None else msgspec.json.format(payload, indent=2).decode(),
        )
