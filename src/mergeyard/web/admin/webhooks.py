"""The pages of webhooks: the list, one webhook with its deliveries, and one delivery."""

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import RedirectResponse, Response

from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.states import REASON_MESSAGES, PullRequestState, Reason
from mergeyard.domain.webhooks import Delivery, DisabledReason, EventType, Webhook, WebhookKind
from mergeyard.ports.store import MAX_DELIVERIES_PER_WEBHOOK
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.webhooks.delivery import encode_slack_message
from mergeyard.service.webhooks.events import EventPayload, WebhookEvent
from mergeyard.service.webhooks.webhooks import WebhookChanges, WebhookClient
from mergeyard.web.admin.fields import EVENT_PRESETS, WebhookForm
from mergeyard.web.rendering import PageRequest

WEBHOOKS_URL = "/administration/webhooks"
KIND_LABELS = {WebhookKind.WEBHOOK: "JSON (signed)", WebhookKind.SLACK: "Slack"}
EVENT_MEANINGS = {
    EventType.PR_SUBMITTED: "a pull request was submitted and is not ready",
    EventType.PR_UPDATED: "a person changed the priority or another option",
    EventType.PR_QUEUED: "a pull request is queued",
    EventType.PR_TESTING: "a test run started",
    EventType.PR_TESTS_PASSED: "the tests passed",
    EventType.PR_PENDING_FAILURE: "the tests failed, cause not confirmed",
    EventType.PR_FAILED: "a pull request failed and left the queue",
    EventType.PR_CANCELLED: "a pull request was removed",
    EventType.PR_MERGED: "a pull request merged",
    EventType.QUEUE_CREATED: "a queue was created",
    EventType.QUEUE_UPDATED: "settings of a queue changed",
    EventType.QUEUE_DELETED: "a queue was deleted",
    EventType.QUEUE_STATE_CHANGED: "a queue was paused, drained or resumed",
}
DELIVERIES_SHOWN = 50
DISABLED_MESSAGES = {
    DisabledReason.ASKED: "An administrator disabled it.",
    DisabledReason.FAILING: "Mergeyard disabled it after three days of failed deliveries.",
    DisabledReason.GONE: "Mergeyard disabled it because the receiver responded 410 Gone.",
}
decode_delivery = msgspec.json.Decoder(Delivery).decode


async def show_all(page: PageRequest) -> Response:
    webhooks = await page.service.webhooks.list_visible(WebhookClient(page.user.token))
    return page.render("admin/webhooks.html", webhooks=webhooks, event_count=len(EventType))


async def show_new(page: PageRequest) -> Response:
    return _render_new(page, WebhookForm())


async def create(page: PageRequest) -> Response:
    """Responds with a page instead of a redirect, because the secret is shown only once."""
    form = WebhookForm.from_form(page.form)
    try:
        settings = form.parse_changes(page)
        webhook, secret = await page.service.webhooks.create(
            WebhookClient(page.user.token), form.parse_kind(), form.parse_url(), settings, lambda _: b""
        )
    except RequestRefused as refused:
        return _render_new(page, form, refused.detail)
    _refresh_subscriptions(page)
    return page.render("admin/webhook_created.html", webhook=webhook, secret=secret)


def _render_new(page: PageRequest, form: WebhookForm, error: str = "") -> Response:
    return page.render_form(
        "admin/webhook_new.html",
        error,
        form=form,
        error=error,
        kinds=KIND_LABELS,
        presets=EVENT_PRESETS,
        events=EVENT_MEANINGS,
        slack_preview=preview_slack_message(),
    )


class SlackPreview(Struct, frozen=True):
    headline: str
    message: str
    footer: str


def preview_slack_message() -> SlackPreview:
    """The message about an invented pull request, as the sender would encode it."""
    event = WebhookEvent(
        type=EventType.PR_FAILED,
        timestamp="",
        repository="github.com/acme/app",
        target_branch="main",
        state=PullRequestState.FAILED,
        reason=Reason.TEST_RUN_FAILED,
        details_url="",
        pr_number=PullRequestNumber(12),
        author="ada",
    )
    payload = EventPayload(event, REASON_MESSAGES[Reason.TEST_RUN_FAILED], "Fix the login page")
    message = msgspec.json.decode(encode_slack_message(payload))
    section, context = message["blocks"]
    _, _, text = section["text"]["text"].partition("\n")
    return SlackPreview(message["text"], text.partition(" <")[0], context["elements"][0]["text"])


async def show(page: PageRequest) -> Response:
    webhook = await _find_webhook(page)
    return await _render(page, webhook, WebhookForm.from_webhook(webhook))


async def change(page: PageRequest) -> Response:
    form, webhook = WebhookForm.from_form(page.form), await _find_webhook(page)
    try:
        changes = form.parse_changes(page)
        return await _update(page, webhook, replace(changes, url=form.parse_url()) if form.url else changes)
    except RequestRefused as refused:
        return await _render(page, webhook, form, refused.detail)


async def enable(page: PageRequest) -> Response:
    return await _update(page, await _find_webhook(page), WebhookChanges(enabled=True))


async def disable(page: PageRequest) -> Response:
    return await _update(page, await _find_webhook(page), WebhookChanges(enabled=False))


async def _update(page: PageRequest, webhook: Webhook, changes: WebhookChanges) -> Response:
    await page.service.webhooks.update(WebhookClient(page.user.token), webhook.id, changes, lambda _: b"")
    _refresh_subscriptions(page)
    return RedirectResponse(f"{WEBHOOKS_URL}/{webhook.id}", 303)


async def send_test(page: PageRequest) -> Response:
    webhook, client = await _find_webhook(page), WebhookClient(page.user.token)
    return _report(page, webhook, await page.service.webhooks.send_test(client, webhook.id, msgspec.json.encode))


async def resend(page: PageRequest) -> Response:
    webhook, client = await _find_webhook(page), WebhookClient(page.user.token)
    encode, event = msgspec.json.encode, page.form.get("event")
    return _report(page, webhook, await page.service.webhooks.resend_event(client, webhook.id, event, encode))


def _report(page: PageRequest, webhook: Webhook, encoded_delivery: bytes) -> Response:
    delivery = decode_delivery(encoded_delivery)
    response = "no response" if delivery.status is None else f"the receiver responded {delivery.status}"
    detail = f" ({delivery.detail})" if delivery.detail else ""
    message = f"{'Delivered' if delivery.delivered else 'Not delivered'}: {response}{detail}."
    return page.report_success(message, f"{WEBHOOKS_URL}/{webhook.id}#deliveries")


async def confirm_delete(page: PageRequest) -> Response:
    return page.render("admin/webhook_delete.html", webhook=await _find_webhook(page))


async def delete(page: PageRequest) -> Response:
    webhook = await _find_webhook(page)
    await page.service.webhooks.delete(WebhookClient(page.user.token), webhook.id, b"")
    _refresh_subscriptions(page)
    return RedirectResponse(WEBHOOKS_URL, 303)


def _refresh_subscriptions(page: PageRequest) -> None:
    """For this process; other replicas refresh periodically."""
    page.service.background.start(page.service.webhook_subscriptions.refresh())


async def _find_webhook(page: PageRequest) -> Webhook:
    return (await page.service.webhooks.find(WebhookClient(page.user.token), page.path_parameter("webhook"))).webhook


async def _render(page: PageRequest, webhook: Webhook, form: WebhookForm, error: str = "") -> Response:
    client = WebhookClient(page.user.token)
    return page.render_form(
        "admin/webhook.html",
        error,
        webhook=webhook,
        disabled_message=DISABLED_MESSAGES[webhook.disabled.reason] if webhook.disabled else "",
        deliveries=await page.service.webhooks.list_deliveries(client, webhook.id, DELIVERIES_SHOWN),
        form=form,
        error=error,
        presets=EVENT_PRESETS,
        events=EVENT_MEANINGS,
    )


async def show_delivery(page: PageRequest) -> Response:
    client, event, webhook = WebhookClient(page.user.token), page.path_parameter("event"), await _find_webhook(page)
    deliveries = await page.service.webhooks.list_deliveries(client, webhook.id, MAX_DELIVERIES_PER_WEBHOOK)
    attempts = [delivery for delivery in deliveries if delivery.event == event]
    if not attempts:
        detail = f"This event is not among the last {MAX_DELIVERIES_PER_WEBHOOK} delivery attempts of this webhook."
        raise RequestRefused(Code.EVENT_NOT_FOUND, detail)
    payload = await page.service.webhooks.read_payload(client, webhook.id, event)
    text = "" if payload is None else msgspec.json.format(payload, indent=2).decode()
    return page.render("admin/delivery.html", webhook=webhook, attempts=attempts, payload=text)
