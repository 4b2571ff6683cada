"""What if, in a browser: a slider that is moved has the past replayed, and the page says so meanwhile."""

from playwright.sync_api import expect

from tests.browser.conftest import Visitors
from tests.support.grounds import Track
from tests.support.looking import flaws_of


def test_moving_a_slider_replays_the_past(track: Track, visitor: Visitors):
    track.update_queue(concurrency=1)
    track.merge(track.open())
    visit = visitor("read")
    page = visit.go(track.page("health"))
    page.get_by_role("link", name="What if…").click()
    expect(page.get_by_role("heading", name="Nothing is replayed yet")).to_be_visible()
    assert flaws_of(page, "what if, not asked yet") == []
    page.get_by_label("Runs at once, as a slider").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Runs at once", exact=True)).to_have_value("2")
    expect(page.get_by_role("heading", name="hardly known")).to_be_visible()
    expect(page.get_by_role("row", name="Runs 1 1 1")).to_be_visible()
    expect(page.locator("#said")).to_be_empty()
    assert "concurrency=2" in page.url
    assert flaws_of(page, "what if") == []
    page.reload()
    expect(page.get_by_label("Runs at once", exact=True)).to_have_value("2")
    expect(page.get_by_role("heading", name="hardly known")).to_be_visible()


def test_what_is_typed_moves_the_slider_and_what_does_not_fit_is_explained(track: Track, visitor: Visitors):
    visit = visitor("read")
    visit.alarm.expect("status of 422")
    page = visit.go(track.page("whatif"))
    number = page.get_by_label("Runs at once", exact=True)
    number.fill("30")
    expect(page.get_by_label("Runs at once, as a slider")).to_have_value("30")
    number.fill("many")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Give a whole number from 1 to 1,000.")
    expect(number).to_have_value("many")
