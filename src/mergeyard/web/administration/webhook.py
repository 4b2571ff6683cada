"""One webhook: what it is told, whether that works, and everything that can be done with it."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mergeyard.domain.tokens import Scope
from mergeyard.domain.webhooks import Delivery, EventType, Webhook, WhyDisabled
from mergeyard.service.errors import Refused
from mergeyard.service.telling.webhooks import Asker, Wishes
from mergeyard.web.administration.webhooks import PAGE
from mergeyard.web.administration.wishes import WebhookWishes
from mergeyard.web.forms import filled_in_by
from mergeyard.web.hall import Hall
from mergeyard.web.visiting import Visitor

ONE = f"{PAGE}/{{webhook}}"
DELIVERIES_SHOWN = 50
WHY = {
    WhyDisabled.ASKED: "Somebody disabled it.",
    WhyDisabled.FAILING: "For three days nothing could be delivered.",
    WhyDisabled.GONE: "The receiver said that nothing is wanted there any more.",
}
decode_delivery = msgspec.json.Decoder(Delivery).decode


class WebhookPage:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self._webhooks = hall.service.office.webhooks
        self._trying = hall.service.office.trying

    def routes(self) -> Sequence[Route]:
        return (
            Route(ONE, self.show, methods=["GET"]),
            Route(ONE, self.change, methods=["POST"]),
            Route(f"{ONE}/enable", self.enable, methods=["POST"]),
            Route(f"{ONE}/disable", self.disable, methods=["POST"]),
            Route(f"{ONE}/test", self.test, methods=["POST"]),
            Route(f"{ONE}/resend", self.resend, methods=["POST"]),
            Route(f"{ONE}/delete", self.ask, methods=["GET"]),
            Route(f"{ONE}/delete", self.delete, methods=["POST"]),
        )

    async def show(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        webhook = await self._named(request, visitor)
        return await self._page(request, visitor, webhook, WebhookWishes.of(webhook))

    async def change(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        typed = WebhookWishes.in_form(await filled_in_by(visitor, request))
        webhook = await self._named(request, visitor)
        try:
            wishes = typed.understood(visitor, self._hall.service.sites)
            await self._update(visitor, webhook, replace(wishes, url=typed.address()) if typed.url else wishes)
        except Refused as refused:
            return await self._page(request, visitor, webhook, typed, refused.detail)
        return RedirectResponse(_page_of(webhook), 303)

    async def enable(self, request: Request) -> Response:
        return await self._set(request, Wishes(enabled=True))

    async def disable(self, request: Request) -> Response:
        return await self._set(request, Wishes(enabled=False))

    async def test(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        await filled_in_by(visitor, request)
        webhook = await self._named(request, visitor)
        answer = await self._trying.test(Asker(visitor.token), webhook.id, msgspec.json.encode)
        return self._hall.done(request, in_words(decode_delivery(answer)), f"{_page_of(webhook)}#deliveries")

    async def resend(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        event = (await filled_in_by(visitor, request)).get("event")
        webhook = await self._named(request, visitor)
        answer = await self._trying.resend(Asker(visitor.token), webhook.id, event, msgspec.json.encode)
        return self._hall.done(request, in_words(decode_delivery(answer)), f"{_page_of(webhook)}#deliveries")

    async def ask(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        webhook = await self._named(request, visitor)
        return self._hall.page(request, "administration/webhook_delete.html", visitor, webhook=webhook)

    async def delete(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        await filled_in_by(visitor, request)
        webhook = await self._named(request, visitor)
        await self._webhooks.delete(Asker(visitor.token), webhook.id, b"")
        self._spread()
        return RedirectResponse(PAGE, 303)

    async def _set(self, request: Request, wishes: Wishes) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        await filled_in_by(visitor, request)
        webhook = await self._named(request, visitor)
        await self._update(visitor, webhook, wishes)
        return RedirectResponse(_page_of(webhook), 303)

    async def _update(self, visitor: Visitor, webhook: Webhook, wishes: Wishes) -> None:
        await self._webhooks.update(Asker(visitor.token), webhook.id, wishes, lambda _: b"")
        self._spread()

    def _spread(self) -> None:
        """Others find out by themselves, a little later."""
        self._hall.service.background.start(self._hall.service.subscriptions.refresh())

    async def _named(self, request: Request, visitor: Visitor) -> Webhook:
        return (await self._webhooks.find(Asker(visitor.token), request.path_params["webhook"])).webhook

    async def _page(
        self, request: Request, visitor: Visitor, webhook: Webhook, wishes: WebhookWishes, trouble: str = ""
    ) -> Response:
        return self._hall.form(
            request,
            "administration/webhook.html",
            visitor,
            trouble,
            webhook=webhook,
            why=WHY[webhook.disabled.why] if webhook.disabled else "",
            deliveries=await self._webhooks.deliveries(Asker(visitor.token), webhook.id, DELIVERIES_SHOWN),
            wishes=wishes,
            trouble=trouble,
            events=tuple(EventType),
        )


def in_words(delivery: Delivery) -> str:
    answer = "nobody answered" if delivery.status is None else f"the answer was {delivery.status}"
    said = f" ({delivery.words})" if delivery.words else ""
    return f"{'Delivered' if delivery.delivered else 'Not delivered'}: {answer}{said}."


def _page_of(webhook: Webhook) -> str:
    return f"{PAGE}/{webhook.id}"
