"""The pages of webhooks: the list, one webhook with its deliveries, and one delivery."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mergeyard.domain.access import Scope
from mergeyard.domain.webhooks import Delivery, DisabledReason, EventType, Webhook, WebhookKind
from mergeyard.ports.store import MAX_DELIVERIES_PER_WEBHOOK
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.webhooks.webhooks import WebhookChanges, WebhookClient
from mergeyard.web.admin.fields import WebhookForm
from mergeyard.web.rendering import PageContext
from mergeyard.web.user_sessions import CurrentUser, read_user_form

WEBHOOKS_URL = "/administration/webhooks"
KIND_LABELS = {WebhookKind.WEBHOOK: "A program, as signed JSON", WebhookKind.SLACK: "Slack, as a message"}


class WebhooksPage:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._webhooks = context.service.webhook_services.webhooks

    def routes(self) -> Sequence[Route]:
        return (
            Route(WEBHOOKS_URL, self.show, methods=["GET"]),
            Route(WEBHOOKS_URL, self.create, methods=["POST"]),
            Route(f"{WEBHOOKS_URL}/new", self.show_form, methods=["GET"]),
        )

    async def show(self, request: Request) -> Response:
        user = await self._context.authenticate(request, Scope.ADMIN)
        webhooks = await self._webhooks.list_visible(WebhookClient(user.token))
        return self._context.render_page(request, "admin/webhooks.html", user, webhooks=webhooks)

    async def show_form(self, request: Request) -> Response:
        return self._render_form(request, await self._context.authenticate(request, Scope.ADMIN), WebhookForm())

    async def create(self, request: Request) -> Response:
        """Responds with a page instead of a redirect, because the secret is shown only once."""
        user = await self._context.authenticate(request, Scope.ADMIN)
        form = WebhookForm.from_form(await read_user_form(user, request))
        try:
            webhook, secret = await self._create_webhook(user, form)
        except RequestRefused as refused:
            return self._render_form(request, user, form, refused.detail)
        self._context.service.background.start(self._context.service.webhook_subscriptions.refresh())
        return self._context.render_page(request, "admin/webhook_created.html", user, webhook=webhook, secret=secret)

    async def _create_webhook(self, user: CurrentUser, form: WebhookForm) -> tuple[Webhook, str | None]:
        settings = form.parse_changes(user, self._context.service.repositories)
        kind, url = form.parse_kind(), form.parse_url()
        return await self._webhooks.create(WebhookClient(user.token), kind, url, settings, lambda _: b"")

    def _render_form(self, request: Request, user: CurrentUser, form: WebhookForm, error: str = "") -> Response:
        return self._context.render_form(
            request,
            "admin/webhook_new.html",
            user,
            error,
            form=form,
            error=error,
            kinds=KIND_LABELS,
            events=tuple(EventType),
        )


WEBHOOK_ROUTE = f"{WEBHOOKS_URL}/{{webhook}}"
DELIVERIES_SHOWN = 50
DISABLED_MESSAGES = {
    DisabledReason.ASKED: "An administrator disabled it.",
    DisabledReason.FAILING: "Nothing could be delivered for three days.",
    DisabledReason.GONE: "The receiver responded that it no longer exists (410 Gone).",
}
decode_delivery = msgspec.json.Decoder(Delivery).decode


class WebhookPage:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._webhooks = context.service.webhook_services.webhooks
        self._tester = context.service.webhook_services.tester

    def routes(self) -> Sequence[Route]:
        return (
            Route(WEBHOOK_ROUTE, self.show, methods=["GET"]),
            Route(WEBHOOK_ROUTE, self.change, methods=["POST"]),
            Route(f"{WEBHOOK_ROUTE}/enable", self.enable, methods=["POST"]),
            Route(f"{WEBHOOK_ROUTE}/disable", self.disable, methods=["POST"]),
            Route(f"{WEBHOOK_ROUTE}/test", self.test, methods=["POST"]),
            Route(f"{WEBHOOK_ROUTE}/resend", self.resend, methods=["POST"]),
            Route(f"{WEBHOOK_ROUTE}/delete", self.confirm_delete, methods=["GET"]),
            Route(f"{WEBHOOK_ROUTE}/delete", self.delete, methods=["POST"]),
        )

    async def show(self, request: Request) -> Response:
        user = await self._context.authenticate(request, Scope.ADMIN)
        webhook = await self._find_webhook(request, user)
        return await self._render(request, user, webhook, WebhookForm.from_webhook(webhook))

    async def change(self, request: Request) -> Response:
        user = await self._context.authenticate(request, Scope.ADMIN)
        form = WebhookForm.from_form(await read_user_form(user, request))
        webhook = await self._find_webhook(request, user)
        try:
            changes = form.parse_changes(user, self._context.service.repositories)
            await self._update(user, webhook, replace(changes, url=form.parse_url()) if form.url else changes)
        except RequestRefused as refused:
            return await self._render(request, user, webhook, form, refused.detail)
        return RedirectResponse(_webhook_url(webhook), 303)

    async def enable(self, request: Request) -> Response:
        return await self._set_enabled(request, enabled=True)

    async def disable(self, request: Request) -> Response:
        return await self._set_enabled(request, enabled=False)

    async def test(self, request: Request) -> Response:
        user = await self._context.authenticate(request, Scope.ADMIN)
        await read_user_form(user, request)
        webhook = await self._find_webhook(request, user)
        encoded = await self._tester.send_test(WebhookClient(user.token), webhook.id, msgspec.json.encode)
        message = _describe_delivery(decode_delivery(encoded))
        return self._context.report_success(request, message, f"{_webhook_url(webhook)}#deliveries")

    async def resend(self, request: Request) -> Response:
        user = await self._context.authenticate(request, Scope.ADMIN)
        event = (await read_user_form(user, request)).get("event")
        webhook = await self._find_webhook(request, user)
        encoded = await self._tester.resend_event(WebhookClient(user.token), webhook.id, event, msgspec.json.encode)
        message = _describe_delivery(decode_delivery(encoded))
        return self._context.report_success(request, message, f"{_webhook_url(webhook)}#deliveries")

    async def confirm_delete(self, request: Request) -> Response:
        user = await self._context.authenticate(request, Scope.ADMIN)
        webhook = await self._find_webhook(request, user)
        return self._context.render_page(request, "admin/webhook_delete.html", user, webhook=webhook)

    async def delete(self, request: Request) -> Response:
        user = await self._context.authenticate(request, Scope.ADMIN)
        await read_user_form(user, request)
        webhook = await self._find_webhook(request, user)
        await self._webhooks.delete(WebhookClient(user.token), webhook.id, b"")
        self._refresh_subscriptions()
        return RedirectResponse(WEBHOOKS_URL, 303)

    async def _set_enabled(self, request: Request, *, enabled: bool) -> Response:
        user = await self._context.authenticate(request, Scope.ADMIN)
        await read_user_form(user, request)
        webhook = await self._find_webhook(request, user)
        await self._update(user, webhook, WebhookChanges(enabled=enabled))
        return RedirectResponse(_webhook_url(webhook), 303)

    async def _update(self, user: CurrentUser, webhook: Webhook, changes: WebhookChanges) -> None:
        await self._webhooks.update(WebhookClient(user.token), webhook.id, changes, lambda _: b"")
        self._refresh_subscriptions()

    def _refresh_subscriptions(self) -> None:
        """For this process; other replicas refresh periodically."""
        self._context.service.background.start(self._context.service.webhook_subscriptions.refresh())

    async def _find_webhook(self, request: Request, user: CurrentUser) -> Webhook:
        return (await self._webhooks.find(WebhookClient(user.token), request.path_params["webhook"])).webhook

    async def _render(
        self, request: Request, user: CurrentUser, webhook: Webhook, form: WebhookForm, error: str = ""
    ) -> Response:
        return self._context.render_form(
            request,
            "admin/webhook.html",
            user,
            error,
            webhook=webhook,
            disabled_message=DISABLED_MESSAGES[webhook.disabled.reason] if webhook.disabled else "",
            deliveries=await self._webhooks.list_deliveries(WebhookClient(user.token), webhook.id, DELIVERIES_SHOWN),
            form=form,
            error=error,
            events=tuple(EventType),
        )


def _describe_delivery(delivery: Delivery) -> str:
    response = "no response" if delivery.status is None else f"the receiver responded {delivery.status}"
    detail = f" ({delivery.detail})" if delivery.detail else ""
    return f"{'Delivered' if delivery.delivered else 'Not delivered'}: {response}{detail}."


def _webhook_url(webhook: Webhook) -> str:
    return f"{WEBHOOKS_URL}/{webhook.id}"


class DeliveryPage:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._webhooks = context.service.webhook_services.webhooks
        self._tester = context.service.webhook_services.tester

    def routes(self) -> Sequence[Route]:
        return (Route(f"{WEBHOOK_ROUTE}/events/{{event}}", self.show, methods=["GET"]),)

    async def show(self, request: Request) -> Response:
        user = await self._context.authenticate(request, Scope.ADMIN)
        requester, event = WebhookClient(user.token), request.path_params["event"]
        webhook = (await self._webhooks.find(requester, request.path_params["webhook"])).webhook
        deliveries = await self._webhooks.list_deliveries(requester, webhook.id, MAX_DELIVERIES_PER_WEBHOOK)
        attempts = [delivery for delivery in deliveries if delivery.event == event]
        if not attempts:
            detail = f"This event is not among the last {MAX_DELIVERIES_PER_WEBHOOK} delivery attempts of this webhook."
            raise RequestRefused(Code.EVENT_NOT_FOUND, detail)
        payload = await self._tester.read_payload(requester, webhook.id, event)
        return self._context.render_page(
            request,
            "admin/delivery.html",
            user,
            webhook=webhook,
            attempts=attempts,
            payload="" if payload is None else msgspec.json.format(payload, indent=2).decode(),
        )
