"""Users who work while servers are killed: all that `People` do, preferring actions that lead to a chosen boundary."""

from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import Any

import httpx2

from mergeyard.web.user_sessions import SESSION_COOKIE, derive_csrf_token
from tests.replicas.people import People
from tests.support.api_client import ApiClient, HasUrl
from tests.support.environment import QueueEnvironment
from tests.support.webhooks import WebhookReceiver

Actions = Mapping[Callable[[], None], Collection[str]]
"""What a user can do, and which effects that has, sooner or later."""

PRIORITIES = range(20, 90)
"""Priorities that no pull request has by default."""
UNKNOWN_PR = 999_999
"""The number of a pull request that does not exist."""


class Users(People):
    def __init__(self, queue: QueueEnvironment, random: Random) -> None:
        super().__init__(queue, random)
        self._priorities = random.sample(PRIORITIES, len(PRIORITIES))
        self._actions: dict[Callable[[], None], Collection[str]] = {
            self._change_priority: ("response:submitPullRequest",),
            self._upload_impacted_targets: ("response:setImpactedTargets", "store.commit:impacted_targets"),
            self._cancel: ("response:cancelPullRequest", "git.push:branch_deleted", "store.commit:run_ended"),
            self._restart: ("response:restartTestsOnPullRequest", "git.push:branch_deleted", "check.stop"),
            self._pause_or_run: ("response:updateQueue",),
            self._send_invalid_request: ("response:refusal",),
        }
        if queue.api.post("getQueue")["directMergeMode"] != "off":
            self._actions[self._prepare_direct_merge] = ("git.push:landing",)

    def add_actions(self, actions: Actions) -> None:
        self._actions |= actions

    def act_towards(self, effects: Collection[str]) -> None:
        """One action of a user, then the CI works. Mostly an action that leads to one of these effects."""
        leading = [action for action, follows in self._actions.items() if not set(follows).isdisjoint(effects)]
        if leading and self._random.random() < 0.7:
            self._random.choice(leading)()
        elif self._random.random() < 0.8:
            self._act()
        else:
            self._random.choice(list(self._actions))()
        self._queue.ci.report_new_branches()

    def _change_priority(self) -> None:
        """No priority twice: with equal ones it would be open which pull request must be first."""
        if self._live and self._priorities:
            number, priority = self._random.choice(self._live), self._priorities.pop()
            self._ask("submitPullRequest", pr={"number": number}, priority=priority)

    def _upload_impacted_targets(self) -> None:
        if self._live and not self._parallel:
            self._ask("setImpactedTargets", pr={"number": self._random.choice(self._live)}, impactedTargets=["front"])

    def _send_invalid_request(self) -> None:
        self._ask("cancelPullRequest", pr={"number": UNKNOWN_PR})

    def _prepare_direct_merge(self) -> None:
        """The CI passes a head that contains the tip, before it is submitted; the queue must be empty otherwise."""
        while self._live:
            self._ask("cancelPullRequest", pr={"number": self._live.pop()})
        number = self._queue.open_pr({f"files/{self._random.getrandbits(32):08x}": "1"})
        self._queue.ci.report(self._queue.origin.tip(f"refs/pull/{number}/head"), "success")
        self._ask("submitPullRequest", pr={"number": number})
        self._live.append(number)


SCRATCH = "scratch"
"""A branch whose queue is created and deleted repeatedly."""


class Administrators:
    def __init__(self, server: HasUrl, api: ApiClient, random: Random, receiver: WebhookReceiver, token: str) -> None:
        self._server = server
        self._api = api
        self._random = random
        self._receiver = receiver
        self._token = token
        self._webhook: str | None = None
        self._has_scratch_queue = False

    @property
    def actions(self) -> Actions:
        webhook_created = ("response:createWebhook", "store.commit:consumer_started", "store.commit:webhook")
        webhook_deleted = ("response:deleteWebhook", "store.commit:webhook_deleted", "store.commit:consumer_deleted")
        queue_created = ("response:createQueue", "store.commit:queue_created")
        queue_deleted = ("response:deleteQueue", "store.commit:queue_deleted")
        pages = ("response:page", "store.commit:session", "store.commit:token", "store.commit:session_deleted")
        return {
            self._create_or_delete_queue: (*queue_created, *queue_deleted),
            self._create_or_delete_webhook: (*webhook_created, *webhook_deleted),
            self._switch_webhook: ("response:updateWebhook", "store.commit:stalled_cleared", "store.commit:webhook"),
            self._test_webhook: ("response:testWebhook", "store.commit:delivery"),
            self._resend_event: ("response:resendWebhookEvent", "store.commit:delivery"),
            self._use_pages: pages,
        }

    def _create_or_delete_queue(self) -> None:
        path = "deleteQueue" if self._has_scratch_queue else "createQueue"
        self._api.post(path, targetBranch=SCRATCH)
        self._has_scratch_queue = not self._has_scratch_queue

    def _create_or_delete_webhook(self) -> None:
        if self._webhook is None:
            self._ensure_webhook()
            return
        self._api.post("deleteWebhook", id=self._webhook)
        self._webhook = None

    def _ensure_webhook(self) -> str:
        if self._webhook is None:
            self._webhook = str(self._api.post("createWebhook", url=self._receiver.url)["id"])
        return self._webhook

    def _switch_webhook(self) -> None:
        self._api.post("updateWebhook", id=self._ensure_webhook(), enabled=self._random.random() < 0.7)

    def _test_webhook(self) -> None:
        self._api.post("testWebhook", id=self._ensure_webhook())

    def _resend_event(self) -> None:
        webhook = self._ensure_webhook()
        deliveries: list[dict[str, Any]] = self._api.post("listWebhookDeliveries", id=webhook)["deliveries"]
        event_ids = [delivery["eventId"] for delivery in deliveries if delivery["type"] != "webhook.test"]
        if event_ids:
            self._api.post("resendWebhookEvent", id=webhook, eventId=self._random.choice(event_ids))

    def _use_pages(self) -> None:
        """Requests of pages have no idempotency key: when the server is killed, this user gives up."""
        try:
            with httpx2.Client(base_url=self._server.url, timeout=20, verify=False) as browser:
                assert browser.post("/sign-in", data={"token": self._token, "next": "/"}).is_redirect
                csrf = {"csrf": derive_csrf_token(browser.cookies[SESSION_COOKIE].encode())}
                form = {"name": "Visitor", "scope": "read", "lifetime": "7 days"}
                assert browser.post("/administration/tokens", data=csrf | form).is_success
                assert browser.post("/sign-out", data=csrf).is_redirect
        except httpx2.TransportError:
            return
