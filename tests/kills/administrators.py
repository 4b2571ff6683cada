"""What administrators do while servers die: queues, webhooks, sessions and tokens come and go."""

from random import Random
from typing import Any

import httpx

from mergeyard.web.visiting import COOKIE, csrf_of
from tests.kills.crowd import Deeds
from tests.support.api import Api, Service
from tests.support.receiver import Receiver

SCRATCH = "scratch"
"""A branch whose queue comes and goes."""


class Administrators:
    def __init__(self, server: Service, api: Api, random: Random, receiver: Receiver, token: str) -> None:
        self._server = server
        self._api = api
        self._random = random
        self._receiver = receiver
        self._token = token
        self._webhook: str | None = None
        self._scratch_is_there = False

    @property
    def deeds(self) -> Deeds:
        webhook_made = ("answer:createWebhook", "store.commit:telling_begun", "store.commit:webhook")
        webhook_dropped = ("answer:deleteWebhook", "store.commit:webhook_dropped", "store.commit:teller_forgotten")
        queue_made = ("answer:createQueue", "store.commit:queue_created")
        queue_dropped = ("answer:deleteQueue", "store.commit:queue_deleted")
        pages = ("answer:page", "store.commit:session", "store.commit:token", "store.commit:session_dropped")
        return {
            self._make_or_drop_queue: (*queue_made, *queue_dropped),
            self._make_or_drop_webhook: (*webhook_made, *webhook_dropped),
            self._switch_webhook: ("answer:updateWebhook", "store.commit:heart_taken", "store.commit:webhook"),
            self._test_webhook: ("answer:testWebhook", "store.commit:delivery"),
            self._send_again: ("answer:resendWebhookEvent", "store.commit:delivery"),
            self._visit: pages,
        }

    def _make_or_drop_queue(self) -> None:
        path = "deleteQueue" if self._scratch_is_there else "createQueue"
        self._api.post(path, targetBranch=SCRATCH)
        self._scratch_is_there = not self._scratch_is_there

    def _make_or_drop_webhook(self) -> None:
        if self._webhook is None:
            self._there_is_one()
            return
        self._api.post("deleteWebhook", id=self._webhook)
        self._webhook = None

    def _there_is_one(self) -> str:
        if self._webhook is None:
            self._webhook = str(self._api.post("createWebhook", url=self._receiver.url)["id"])
        return self._webhook

    def _switch_webhook(self) -> None:
        self._api.post("updateWebhook", id=self._there_is_one(), enabled=self._random.random() < 0.7)

    def _test_webhook(self) -> None:
        self._api.post("testWebhook", id=self._there_is_one())

    def _send_again(self) -> None:
        webhook = self._there_is_one()
        told: list[dict[str, Any]] = self._api.post("listWebhookDeliveries", id=webhook)["deliveries"]
        known = [delivery["eventId"] for delivery in told if delivery["type"] != "webhook.test"]
        if known:
            self._api.post("resendWebhookEvent", id=webhook, eventId=self._random.choice(known))

    def _visit(self) -> None:
        """Pages have no keys: whoever sees none reloads, or gives up, as this one does."""
        try:
            with httpx.Client(base_url=self._server.url, timeout=20, verify=False) as browser:
                assert browser.post("/sign-in", data={"token": self._token, "next": "/"}).is_redirect
                proof = {"csrf": csrf_of(browser.cookies[COOKIE].encode())}
                wishes = {"name": "Visitor", "scope": "read", "lifetime": "7 days"}
                assert browser.post("/administration/tokens", data=proof | wishes).is_success
                assert browser.post("/sign-out", data=proof).is_redirect
        except httpx.TransportError:
            return
