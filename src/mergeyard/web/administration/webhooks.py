"""Webhooks: all that the visitor may see, and the form for a new one."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.domain.tokens import Scope
from mergeyard.domain.webhooks import EventType, Webhook, WebhookKind
from mergeyard.service.errors import Refused
from mergeyard.service.telling.webhooks import Asker
from mergeyard.web.administration.wishes import WebhookWishes
from mergeyard.web.forms import filled_in_by
from mergeyard.web.hall import Hall
from mergeyard.web.visiting import Visitor

PAGE = "/administration/webhooks"
KINDS = {WebhookKind.WEBHOOK: "A program, with signed JSON", WebhookKind.SLACK: "Slack, with a message"}


class WebhooksPage:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self._webhooks = hall.service.office.webhooks

    def routes(self) -> Sequence[Route]:
        return (
            Route(PAGE, self.show, methods=["GET"]),
            Route(PAGE, self.create, methods=["POST"]),
            Route(f"{PAGE}/new", self.begin, methods=["GET"]),
        )

    async def show(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        webhooks = await self._webhooks.seen_by(Asker(visitor.token))
        return self._hall.page(request, "administration/webhooks.html", visitor, webhooks=webhooks)

    async def begin(self, request: Request) -> Response:
        return self._form(request, await self._hall.visitor(request, Scope.ADMIN), WebhookWishes())

    async def create(self, request: Request) -> Response:
        """Answered at once, not by a redirect: nobody could show the secret later."""
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        wishes = WebhookWishes.in_form(await filled_in_by(visitor, request))
        try:
            made, secret = await self._made(visitor, wishes)
        except Refused as refused:
            return self._form(request, visitor, wishes, refused.detail)
        self._hall.service.background.start(self._hall.service.subscriptions.refresh())
        return self._hall.page(request, "administration/webhook_made.html", visitor, webhook=made, secret=secret)

    async def _made(self, visitor: Visitor, wishes: WebhookWishes) -> tuple[Webhook, str | None]:
        understood = wishes.understood(visitor, self._hall.service.sites)
        kind, address = wishes.of_kind(), wishes.address()
        return await self._webhooks.create(Asker(visitor.token), kind, address, understood, lambda _: b"")

    def _form(self, request: Request, visitor: Visitor, wishes: WebhookWishes, trouble: str = "") -> Response:
        return self._hall.form(
            request,
            "administration/webhook_new.html",
            visitor,
            trouble,
            wishes=wishes,
            trouble=trouble,
            kinds=KINDS,
            events=tuple(EventType),
        )
