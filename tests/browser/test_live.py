"""Open pages update themselves."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitors
from tests.support.shared_server import SharedServerQueue

pytestmark = pytest.mark.long


def record_navigations(page: Page) -> list[str]:
    """Every address the page navigates to from now on."""
    navigations = list[str]()
    page.on("framenavigated", lambda frame: navigations.append(frame.url))
    return navigations


def test_queue_page_follows_a_pr_from_submit_to_merged_without_a_reload(queue: SharedServerQueue, visitor: Visitors):
    first, second = queue.open(title="Lay the rails"), queue.open(title="Paint the wagons")
    page = visitor("read", "submit").goto(queue.queue_path())
    navigations = record_navigations(page)
    for place, number in enumerate((first, second), 1):
        page.get_by_role("link", name="Add to queue").click()
        page.get_by_label("Pull request", exact=True).fill(str(number))
        page.get_by_role("button", name="Add to queue").click()
        expect(page.get_by_role("status")).to_contain_text(f"#{number} added to the queue.")
        expect(page.get_by_role("article", name=f"Batch {place}, testing")).to_be_visible()
    queue.report(second, "success")
    expect(page.get_by_role("article", name="Batch 2, passed")).to_contain_text("Paint the wagons")
    queue.report(first, "success")
    ended = page.get_by_role("region", name="Recently finished").get_by_role("listitem")
    expect(ended.filter(has_text="Lay the rails")).to_contain_text("Merged")
    expect(ended.filter(has_text="Paint the wagons")).to_contain_text("Merged")
    expect(page.get_by_role("article")).to_have_count(0)
    assert navigations == []


def test_pull_request_page_updates_and_explains_the_failure(queue: SharedServerQueue, visitor: Visitors):
    queue.merge(queue.open())
    number = queue.open(title="Break the switch")
    visit = visitor("read", "submit")
    visit.monitor.allow_console_error("status of 404")
    page = visit.goto(queue.pull_request_path(number))
    expect(page.get_by_role("heading", level=1)).to_have_text(f"#{number} is not in a queue")
    page.get_by_role("link", name=f"Add to queue {queue.target_branch}").click()
    page.get_by_role("dialog").get_by_role("button", name="Add to queue").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Break the switch")
    navigations = record_navigations(page)
    expect(page.get_by_role("heading", name="Testing", exact=True)).to_be_visible()
    queue.report(number, "success", ("lint",))
    queue.report(number, "failure", ("unit",), url="https://ci.example.com/7", description="2 of 90 tests failed")
    blame = page.get_by_role("region", name="Failed checks")
    expect(blame).to_contain_text("2 of 90 tests failed")
    expect(blame.get_by_role("link", name=re.compile("unit"))).to_have_attribute("href", "https://ci.example.com/7")
    expect(blame).not_to_contain_text("lint")
    expect(blame).to_contain_text("Next: push a fix and resubmit.")
    expect(page.get_by_role("heading", name="Failed", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Resubmit")).to_be_visible()
    assert navigations == []


def test_list_of_pull_requests_follows_a_pr_to_its_merge(queue: SharedServerQueue, visitor: Visitors):
    number = queue.open(title="Lay the rails")
    queue.start_testing(number)
    page = visitor("read").goto(f"/pulls?queue={queue.queue_path().removeprefix('/queues/')}")
    row = page.get_by_role("row").filter(has_text="Lay the rails")
    expect(row).to_contain_text("Testing")
    navigations = record_navigations(page)
    queue.merge(number)
    expect(row).to_contain_text("Merged")
    assert navigations == []


RECORD_TIMES = """() => {
  window.shownTimes = new Set();
  const record = () => {
    const times = document.querySelectorAll("time[data-clock], time[data-full]");
    for (const time of times) window.shownTimes.add(time.textContent);
  };
  record();
  new MutationObserver(record).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
"""An observer is called when the script that changed the page has ended, so before the browser draws it."""


def test_times_are_never_shown_in_utc_while_a_page_updates(queue: SharedServerQueue, visitor: Visitors):
    number = queue.open()
    queue.start_testing(number)
    page = visitor("read").goto(queue.pull_request_path(number))
    expect(page.locator("time[data-full]").first).to_be_visible()
    page.evaluate(RECORD_TIMES)
    queue.report(number, "success", ("unit",))
    expect(page.get_by_text("1 of 2 checks reported")).to_be_visible()
    shown = page.evaluate("[...window.shownTimes]")
    assert shown
    assert not [text for text in shown if "UTC" in text]


def test_run_page_shows_each_status_as_it_is_reported(queue: SharedServerQueue, visitor: Visitors):
    number = queue.open()
    queue.start_testing(number)
    page = visitor("read").goto(queue.pull_request_path(number))
    page.get_by_role("link", name=re.compile(r"^Test run for ")).first.click()
    expect(page.get_by_text("0 of 2 checks reported")).to_be_visible()
    navigations = record_navigations(page)
    queue.report(number, "success", ("unit",))
    expect(page.get_by_text("1 of 2 checks reported")).to_be_visible()
    queue.report(number, "success", ("lint",))
    expect(page.get_by_role("heading", name="Passed", exact=True)).to_be_visible()
    assert navigations == []


def test_page_reconnects_after_a_response_that_is_no_event_stream(queue: SharedServerQueue, visitor: Visitors):
    number = queue.open()
    queue.start_testing(number)
    visit = visitor("read")
    visit.monitor.allow_console_error("status of 502")
    page = visit.page
    page.clock.install()
    page.route("**/live/**", lambda route: route.fulfill(status=502, body="<html>Bad gateway"), times=1)
    with page.expect_request(lambda request: "hx-request" in request.headers):
        visit.goto(queue.pull_request_path(number))
    with page.expect_response("**/live/**") as stream:
        page.clock.fast_forward("06")
    assert stream.value.ok
    queue.report(number, "success")
    expect(page.get_by_role("heading", name="Merged", exact=True)).to_be_visible()
