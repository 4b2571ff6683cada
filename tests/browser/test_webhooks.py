"""The page of a webhook says how sending went, as often as it is asked to."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import Visitors
from tests.support.grounds import Track
from tests.support.patience import eventually
from tests.support.receiver import Receiver


def test_an_event_is_sent_again_and_again_and_each_time_it_is_said_how_it_went(track: Track, visitor: Visitors):
    with Receiver().open() as receiver:
        topics = [{"repo": track.api.queue["repo"], "branch": track.target}]
        made = track.api.post("createWebhook", url=receiver.url, queues=topics)
        track.update_queue(state="PAUSED")
        eventually(lambda: receiver.receipts)
        page = visitor("admin").go(f"/administration/webhooks/{made['id']}")
        for times in (2, 3):
            page.get_by_role("button", name=re.compile("^Send again")).last.click()
            expect(page.get_by_role("status")).to_contain_text("Delivered")
            eventually(lambda times=times: len(receiver.receipts) == times)
        page.get_by_role("button", name="Send a test").click()
        eventually(lambda: len(receiver.receipts) == 4)
        track.api.post("deleteWebhook", id=made["id"])
    assert len({receipt.id for receipt in receiver.receipts}) == 2
