"""The page of a webhook shows the result of each delivery that is sent again."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import Visitors
from tests.support.polling import eventually
from tests.support.shared_server import SharedServerQueue
from tests.support.webhooks import WebhookReceiver


def test_event_can_be_sent_again_repeatedly_and_each_result_is_shown(queue: SharedServerQueue, visitor: Visitors):
    with WebhookReceiver().serve() as receiver:
        topics = [{"repo": queue.api.queue["repo"], "branch": queue.target_branch}]
        made = queue.api.post("createWebhook", url=receiver.url, queues=topics)
        queue.update_queue(state="PAUSED")
        eventually(lambda: receiver.received)
        page = visitor("admin").goto(f"/administration/webhooks/{made['id']}")
        for times in (2, 3):
            page.get_by_role("button", name=re.compile("^Resend")).last.click()
            expect(page.get_by_role("status")).to_contain_text("Delivered")
            eventually(lambda times=times: len(receiver.received) == times)
        page.get_by_role("button", name="Send test event").click()
        eventually(lambda: len(receiver.received) == 4)
        queue.api.post("deleteWebhook", id=made["id"])
    assert len({receipt.id for receipt in receiver.received}) == 2
