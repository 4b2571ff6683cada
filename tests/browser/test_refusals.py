"""What is not there, not allowed or not possible is told, with what to do about it."""

from playwright.sync_api import expect

from tests.browser.conftest import Visitors
from tests.support.grounds import Grounds, Track


def test_a_queue_that_nobody_is_in_says_how_to_begin(track: Track, visitor: Visitors):
    page = visitor("admin").go(track.page())
    expect(page.get_by_text("Nothing is under test.")).to_be_visible()
    expect(page.get_by_text("Nobody has left this queue yet.")).to_be_visible()


def test_who_may_only_look_is_offered_nothing_else(track: Track, visitor: Visitors):
    number = track.open()
    track.test(number)
    visit = visitor("read")
    page = visit.go(track.page())
    expect(page.get_by_role("article")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("button")).to_have_count(0)
    expect(page.get_by_role("link", name="Administration")).to_have_count(0)
    visit.go(track.pull_page(number))
    expect(page.get_by_text("Your token may only look")).to_be_visible()
    visit.go(track.page("settings"))
    expect(page.get_by_text("You may read these.")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("textbox")).to_have_count(0)


def test_who_may_not_is_told_what_they_lack(visitor: Visitors):
    visit = visitor("read")
    visit.alarm.expect("status of 403")
    page = visit.go("/administration/tokens")
    expect(page.get_by_role("heading", level=1)).to_have_text("You may not do this")
    expect(page.get_by_text("lacks the scope “admin”")).to_be_visible()


def test_nothing_is_seen_of_foreign_repositories(grounds: Grounds, track: Track, visitor: Visitors):
    visit = visitor.with_token(grounds.token("read", name="Stranger", repo="git.local/acme/other"))
    visit.alarm.expect("status of 404")
    page = visit.go("/")
    expect(page.get_by_role("heading", name="No queue")).to_be_visible()
    expect(page.get_by_text("acme/app")).to_have_count(0)
    visit.go(track.page())
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing is here")


def test_what_cannot_be_done_is_said_where_it_was_tried(track: Track, visitor: Visitors):
    visit = visitor("admin")
    visit.alarm.expect("status of 404")
    page = visit.go(track.page())
    page.get_by_role("button", name="Submit…").click()
    page.get_by_label("Number").fill("404404")
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("404404")
    expect(page).to_have_url(f"{visit.home}{track.page()}")
