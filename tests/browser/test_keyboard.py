"""Everything can be done without a mouse."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitors
from tests.support.grounds import Track

MOST_TABS = 60


def reach(page: Page, name: str) -> None:
    """By tabulator alone, and where one is must be seen."""
    target = page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name)).first
    target.wait_for()
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if target.evaluate("element => element === document.activeElement"):
            ring = target.evaluate("element => getComputedStyle(element).outlineStyle")
            assert ring != "none", f"nobody sees that {name} has the focus"
            return
    raise AssertionError(f"{name} is not reached by {MOST_TABS} tabs")


def test_the_content_is_one_key_away(track: Track, visitor: Visitors):
    page = visitor("admin").go(track.page())
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


def test_pausing_and_resuming(track: Track, visitor: Visitors):
    page = visitor("admin").go(track.page())
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


def test_submitting_changing_the_priority_and_taking_out(track: Track, visitor: Visitors):
    number = track.open(title="Lay the rails")
    visit = visitor("admin")
    page = visit.go(track.page())
    reach(page, "Submit…")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Number")).to_be_focused()
    page.keyboard.type(str(number))
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text(f"Pull request #{number} was submitted.")
    visit.go(track.pull_page(number))
    reach(page, "high")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="high")).to_have_attribute("aria-current", "true")
    assert track.pull(number)["priorityName"] == "high"
    visit.alarm.agree_to(f"Take #{number} out of the queue? It loses its place.")
    reach(page, "Take it out")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="cancelled", exact=True)).to_be_visible()


def test_the_theme_stays_as_it_was_chosen(visitor: Visitors):
    page = visitor.stranger().go("/sign-in")
    reach(page, "Switch between light and dark")
    page.keyboard.press("Space")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
