"""Every action works with the keyboard alone."""

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitors
from tests.support.shared_server import SharedServerQueue

MAX_TABS = 60


def reach(page: Page, name: str) -> None:
    """Presses Tab until the element has the focus, which must be visible."""
    target = page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name)).first
    target.wait_for()
    for _ in range(MAX_TABS):
        page.keyboard.press("Tab")
        if target.evaluate("element => element === document.activeElement"):
            ring = target.evaluate("element => getComputedStyle(element).outlineStyle")
            assert ring != "none", f"the focus of {name} is not visible"
            return
    raise AssertionError(f"{name} is not reached with {MAX_TABS} tabs")


def test_first_tab_stop_skips_to_the_content(queue: SharedServerQueue, visitor: Visitors):
    page = visitor("admin").goto(queue.queue_path())
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


def test_pause_and_resume_by_keyboard(queue: SharedServerQueue, visitor: Visitors):
    page = visitor("admin").goto(queue.queue_path())
    state = page.get_by_role("region", name="State of the queue")
    reach(page, "Pause")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Pause")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("Release 2.0")
    page.keyboard.press("Enter")
    expect(state).to_contain_text("Paused")
    expect(state).to_contain_text("Release 2.0")
    reach(page, "Resume")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    page.keyboard.press("Enter")
    expect(state).to_contain_text("Running")


def test_submit_change_priority_and_remove_by_keyboard(queue: SharedServerQueue, visitor: Visitors):
    number = queue.open(title="Lay the rails")
    queue.open(title="Paint the wagons")
    visit = visitor("admin")
    visit.monitor.allow_console_error("status of 409")
    page = visit.goto(queue.queue_path())
    reach(page, "Add to queue")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Pull request", exact=True)).to_be_focused()
    expect(page.get_by_role("radio")).to_have_count(2)
    page.keyboard.type("rails")
    expect(page.get_by_role("radio")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("Pull request", exact=True)).to_have_value(f"#{number}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text(f"#{number} added to the queue.")
    reach(page, f"Actions for #{number}")
    page.keyboard.press("Enter")
    reach(page, "Set priority")
    page.keyboard.press("Enter")
    expect(page.get_by_role("combobox", name="Priority")).to_be_focused()
    page.keyboard.type("urgent")
    reach(page, "Set priority")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=f"Set priority of #{number} to urgent?")).to_be_focused()
    page.keyboard.press("Enter")  # once too often: the dangerous button has no focus yet
    assert queue.submission(number)["priorityName"] == "medium"
    reach(page, "Set priority")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text(f"#{number} is now urgent.")
    assert queue.submission(number)["priorityName"] == "urgent"
    visit.goto(f"/actions/cancel?queue={queue.queue_path().removeprefix('/queues/')}&number={number}")
    reach(page, "Remove from queue")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Removed", exact=True)).to_be_visible()


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_shortcuts_lead_to_pages_and_dialogs(queue: SharedServerQueue, visitor: Visitors):
    visit = visitor("admin")
    page = visit.goto(queue.queue_path())
    press(page, "s")
    expect(page.get_by_role("heading", name="Add to queue")).to_be_visible()
    press(page, "g", "h", "?")
    expect(page.get_by_label("Pull request", exact=True)).to_have_value("gh?")
    press(page, "Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    press(page, "?")
    expect(page.get_by_role("heading", name="Keyboard shortcuts")).to_be_visible()
    press(page, "Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    press(page, "g", "h")
    page.wait_for_url(f"{visit.base_url}/health")
    press(page, "g", "m")
    page.wait_for_url(f"{visit.base_url}/pulls?author=@me")
    press(page, "g", "q")
    page.wait_for_url(f"{visit.base_url}/")
    press(page, "Control+g", "q", "/")
    expect(page.get_by_role("searchbox", name="Find a pull request")).to_be_focused()
    expect(page).to_have_url(f"{visit.base_url}/")


def test_rows_of_a_list_are_reached_and_opened_by_key(queue: SharedServerQueue, visitor: Visitors):
    first, second = queue.open(title="Lay the rails"), queue.open(title="Paint the wagons")
    queue.merge(first, second)
    page = visitor("read").goto(queue.queue_path())
    rows = page.locator(".wait > li")
    press(page, "j", "j", "k")
    expect(rows.first.get_by_role("link").first).to_be_focused()
    press(page, "k", "j")
    expect(rows.nth(1).get_by_role("link").first).to_be_focused()
    address = rows.nth(1).get_by_role("link").first.get_attribute("href") or ""
    press(page, "Enter")
    expect(page).to_have_url(re.compile(re.escape(address)))


def test_jump_box_leads_to_a_pull_request(queue: SharedServerQueue, visitor: Visitors):
    number = queue.open(title="Lay the rails")
    queue.submit(number)
    page = visitor("read").goto("/")
    press(page, "/")
    page.keyboard.type(f"#{number}")
    press(page, "Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Lay the rails")


def test_shortcuts_can_be_switched_off(queue: SharedServerQueue, visitor: Visitors):
    page = visitor("read").goto(queue.queue_path())
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_label("Use these shortcuts").uncheck()
    page.get_by_role("button", name="Close").click()
    page.reload()
    press(page, "?", "/")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("searchbox")).not_to_be_focused()


def test_times_are_local_or_utc_as_chosen(queue: SharedServerQueue, visitor: Visitors):
    number = queue.open()
    queue.submit(number)
    visit = visitor("read")
    tab = visit.context.new_cdp_session(visit.page)
    tab.send("Emulation.setTimezoneOverride", {"timezoneId": "America/Los_Angeles"})  # pyright: ignore[reportUnknownMemberType]
    page = visit.goto(queue.pull_request_path(number))
    time = page.locator("time").first
    expect(time).to_have_attribute("title", re.compile(r"GMT-[78]$"))
    page.get_by_role("button", name="Times: local").click()
    expect(time).to_have_attribute("title", re.compile(r"UTC$"))
    page.reload()
    expect(page.get_by_role("button", name="Times: UTC")).to_be_visible()
    expect(time).to_have_attribute("title", re.compile(r"UTC$"))


def test_chosen_theme_is_kept(visitor: Visitors):
    page = visitor.anonymous().goto("/sign-in")
    reach(page, "Switch between light and dark")
    page.keyboard.press("Space")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
