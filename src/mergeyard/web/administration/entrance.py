"""The way into administration: which rooms it has, and where a visitor comes first."""

from collections.abc import Sequence
from typing import Protocol

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mergeyard.domain.tokens import Scope
from mergeyard.web.administration.audit import AuditLog
from mergeyard.web.administration.audit_export import AuditExport
from mergeyard.web.administration.deliveries import DeliveryPage
from mergeyard.web.administration.hosts import HostsPage
from mergeyard.web.administration.tokens import TokensPage
from mergeyard.web.administration.webhook import WebhookPage
from mergeyard.web.administration.webhooks import WebhooksPage
from mergeyard.web.hall import Hall


class Room(Protocol):
    def routes(self) -> Sequence[Route]: ...


class Entrance:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    def routes(self) -> Sequence[Route]:
        return (Route("/administration", self.lead_on),)

    async def lead_on(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        return RedirectResponse(f"/administration/{'webhooks' if visitor.token.repos else 'tokens'}", 303)


def rooms(hall: Hall) -> Sequence[Room]:
    return (
        Entrance(hall),
        TokensPage(hall),
        WebhooksPage(hall),
        WebhookPage(hall),
        DeliveryPage(hall),
        HostsPage(hall),
        AuditExport(hall),
        AuditLog(hall),
    )
