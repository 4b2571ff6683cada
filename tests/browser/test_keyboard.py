"""Every action works with the keyboard alone."""

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
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


def test_pause_and_resume_by_keyboard(queue: SharedServerQueue, visitor: Visitors):
    page = visitor("admin").goto(queue.queue_path())
    state = page.get_by_role("region", name="State of the queue")
    reach(page, "Pause…")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Pause…")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(state).to_contain_text("Paused")
    reach(page, "Resume…")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(state).to_contain_text("Running")


def test_submit_change_priority_and_remove_by_keyboard(queue: SharedServerQueue, visitor: Visitors):
    number = queue.open(title="Lay the rails")
    visit = visitor("admin")
    page = visit.goto(queue.queue_path())
    reach(page, "Submit…")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Number")).to_be_focused()
    page.keyboard.type(str(number))
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text(f"Pull request #{number} was submitted.")
    visit.goto(queue.pull_request_path(number))
    reach(page, "high")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="high")).to_have_attribute("aria-current", "true")
    assert queue.submission(number)["priorityName"] == "high"
    visit.monitor.accept_dialog(f"Remove #{number} from the queue? It loses its position.")
    reach(page, "Remove from queue")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Removed", exact=True)).to_be_visible()


def test_chosen_theme_is_kept(visitor: Visitors):
    page = visitor.anonymous().goto("/sign-in")
    reach(page, "Switch between light and dark")
    page.keyboard.press("Space")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
