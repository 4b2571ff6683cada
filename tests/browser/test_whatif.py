"""The what-if page: moving a slider replays the history."""

from playwright.sync_api import expect

from tests.browser.conftest import Visitors
from tests.support.browser import find_page_flaws
from tests.support.shared_server import SharedServerQueue


def test_moving_a_slider_replays_the_history(queue: SharedServerQueue, visitor: Visitors):
    queue.update_queue(concurrency=1)
    queue.merge(queue.open())
    visit = visitor("read")
    page = visit.goto(queue.queue_path("health"))
    page.get_by_role("link", name="What if…").click()
    expect(page.get_by_role("heading", name="Change a setting to see its effect")).to_be_visible()
    assert find_page_flaws(page, "what if, not asked yet") == []
    page.get_by_label("Concurrency, as a slider").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Concurrency", exact=True)).to_have_value("2")
    expect(page.get_by_role("heading", name="Confidence: low")).to_be_visible()
    expect(page.get_by_role("row", name="Runs 1 1 1")).to_be_visible()
    expect(page.locator("#said")).to_be_empty()
    assert "concurrency=2" in page.url
    assert find_page_flaws(page, "what if") == []
    page.reload()
    expect(page.get_by_label("Concurrency", exact=True)).to_have_value("2")
    expect(page.get_by_role("heading", name="Confidence: low")).to_be_visible()


def test_typed_number_moves_the_slider_and_an_invalid_one_is_explained(queue: SharedServerQueue, visitor: Visitors):
    visit = visitor("read")
    visit.monitor.allow_console_error("status of 422")
    page = visit.goto(queue.queue_path("whatif"))
    number = page.get_by_label("Concurrency", exact=True)
    number.fill("30")
    expect(page.get_by_label("Concurrency, as a slider")).to_have_value("30")
    number.fill("many")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Enter a number from 1 to 1000.")
    expect(number).to_have_value("many")
