"""A page that is open tells by itself what happens."""

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitors
from tests.support.grounds import Track


def stays(page: Page) -> list[str]:
    """Every address that it is led to from now on; the list must stay empty."""
    led = list[str]()
    page.on("framenavigated", lambda frame: led.append(frame.url))
    return led


def test_a_pull_request_is_watched_from_submit_to_merged_without_a_reload(track: Track, visitor: Visitors):
    first, second = track.open(title="Lay the rails"), track.open(title="Paint the wagons")
    page = visitor("read", "submit").go(track.page())
    led = stays(page)
    for place, number in enumerate((first, second), 1):
        page.get_by_role("button", name="Submit…").click()
        page.get_by_label("Number").fill(str(number))
        page.get_by_role("button", name="Submit", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text(f"Pull request #{number} was submitted.")
        expect(page.get_by_role("article", name=f"Batch {place}, testing")).to_be_visible()
    track.report(second, "success")
    expect(page.get_by_role("article", name="Batch 2, passed")).to_contain_text("Paint the wagons")
    track.report(first, "success")
    ended = page.get_by_role("region", name="Recently concluded").get_by_role("listitem")
    expect(ended.filter(has_text="Lay the rails")).to_contain_text("merged")
    expect(ended.filter(has_text="Paint the wagons")).to_contain_text("merged")
    expect(page.get_by_role("article")).to_have_count(0)
    assert led == []


def test_the_page_of_a_pull_request_follows_it_and_explains_its_failure(track: Track, visitor: Visitors):
    track.merge(track.open())
    number = track.open(title="Break the switch")
    visit = visitor("read", "submit")
    visit.alarm.expect("status of 404")
    page = visit.go(track.pull_page(number))
    expect(page.get_by_role("heading", level=1)).to_have_text(f"#{number} was never submitted")
    page.get_by_role("button", name=f"Submit to {track.target}").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Break the switch")
    led = stays(page)
    expect(page.get_by_role("heading", name="testing", exact=True)).to_be_visible()
    track.report(number, "success", ("lint",))
    track.report(number, "failure", ("unit",), url="https://ci.example.com/7", description="2 of 90 tests failed")
    blame = page.get_by_role("region", name="What failed")
    expect(blame).to_contain_text("2 of 90 tests failed")
    expect(blame.get_by_role("link", name=re.compile("unit"))).to_have_attribute("href", "https://ci.example.com/7")
    expect(blame).not_to_contain_text("lint")
    expect(blame).to_contain_text("What to do next: repair it, push, and submit it again.")
    expect(page.get_by_role("heading", name="failed", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Submit again")).to_be_visible()
    assert led == []


def test_an_open_run_shows_each_status_as_it_comes_in(track: Track, visitor: Visitors):
    number = track.open()
    track.test(number)
    page = visitor("read").go(track.pull_page(number))
    page.get_by_role("link", name=re.compile(r"^Run ")).first.click()
    expect(page.get_by_text("0 of 2 required statuses reported")).to_be_visible()
    led = stays(page)
    track.report(number, "success", ("unit",))
    expect(page.get_by_text("1 of 2 required statuses reported")).to_be_visible()
    track.report(number, "success", ("lint",))
    expect(page.get_by_role("heading", name="passed", exact=True)).to_be_visible()
    assert led == []


def test_a_page_follows_again_after_an_answer_that_was_no_stream(track: Track, visitor: Visitors):
    number = track.open()
    track.test(number)
    visit = visitor("read")
    visit.alarm.expect("status of 502")
    page = visit.page
    page.clock.install()
    page.route("**/live/**", lambda route: route.fulfill(status=502, body="<html>Bad gateway"), times=1)
    with page.expect_request(lambda request: "hx-request" in request.headers):
        visit.go(track.pull_page(number))
    with page.expect_response("**/live/**") as line:
        page.clock.fast_forward("06")
    assert line.value.ok
    track.report(number, "success")
    expect(page.get_by_role("heading", name="merged", exact=True)).to_be_visible()
