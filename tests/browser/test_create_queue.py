"""The first ten minutes: a new queue asks for its required checks, and says in red that nothing merges without them."""

from playwright.sync_api import expect

from tests.browser.conftest import Visitors
from tests.support.browser import find_page_flaws
from tests.support.shared_server import HOST, SharedServer, SharedServerQueue

RED = "rgb(179, 38, 30)"
NOTHING_MERGES = "No required checks: nothing can merge"


def test_new_queue_without_checks_says_so_in_red_until_checks_are_chosen(site: SharedServer, visitor: Visitors):
    site.origins[HOST].branch("without-checks", base="main", files={".mergeyard.toml": "version = 1\n"})
    queue = SharedServerQueue(site, HOST, "without-checks")
    tip = site.origins[HOST].tip("without-checks")
    queue.api.post("reportCommitStatus", sha=tip, context="unit", state="success")
    page = visitor("admin").goto("/queues/new")
    page.get_by_label("Git host").select_option(HOST)
    page.get_by_label("Repository").fill("acme/app")
    page.get_by_label("Branch").fill("without-checks")
    page.get_by_role("button", name="Create queue").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Settings")
    warning = page.get_by_text(NOTHING_MERGES)
    expect(warning).to_be_in_viewport()
    expect(warning).to_have_css("color", RED)
    assert find_page_flaws(page, "new queue without checks") == []
    page.get_by_label("unit", exact=True).check()
    page.get_by_label("Required checks", exact=True).fill("lint")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("1 setting saved.")).to_be_visible()
    expect(page.get_by_text("In force now, from this queue's settings: lint unit")).to_be_visible()
    expect(warning).not_to_be_visible()
    queue.api.post("deleteQueue")
    queue.api.close()


def test_clearing_the_required_checks_warns_in_red(site: SharedServer, visitor: Visitors):
    site.origins[HOST].branch("own-checks", base="main", files={".mergeyard.toml": "version = 1\n"})
    queue = SharedServerQueue(site, HOST, "own-checks")
    queue.create_queue()
    queue.api.post("reportCommitStatus", sha=site.origins[HOST].tip("own-checks"), context="e2e", state="success")
    page = visitor("admin").goto(queue.queue_path("settings"))
    checks, warning = page.get_by_label("Required checks", exact=True), page.get_by_text(NOTHING_MERGES)
    expect(warning).not_to_be_visible()
    checks.fill("")
    expect(warning).to_be_visible()
    expect(warning).to_have_css("color", RED)
    page.get_by_role("link", name="Show checks that ran lately").click()
    page.get_by_label("e2e", exact=True).check()
    expect(warning).not_to_be_visible()
    expect(checks).to_have_value("")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("In force now, from this queue's settings: e2e")).to_be_visible()
    queue.api.close()


def test_setting_without_effect_follows_its_switch(queue: SharedServerQueue, visitor: Visitors):
    page = visitor("admin").goto(queue.queue_path("settings"))
    note = page.locator("#setting-batchingMinSize").get_by_text("No effect while Batching is off.")
    expect(note).to_be_visible()
    page.get_by_label("Batching", exact=True).check()
    expect(note).not_to_be_visible()
