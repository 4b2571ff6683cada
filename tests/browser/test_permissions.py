"""What does not exist or is not allowed is explained, with what to do about it."""

from playwright.sync_api import expect

from tests.browser.conftest import Visitors
from tests.support.shared_server import SharedServer, SharedServerQueue


def test_empty_queue_says_how_to_start(queue: SharedServerQueue, visitor: Visitors):
    page = visitor("admin").goto(queue.queue_path())
    expect(page.get_by_role("listitem").filter(has_text="Nothing is being tested")).to_be_visible()
    expect(page.get_by_text("Nothing has finished yet.")).to_be_visible()


def test_reader_is_offered_no_actions(queue: SharedServerQueue, visitor: Visitors):
    number = queue.open()
    queue.start_testing(number)
    visit = visitor("read")
    page = visit.goto(queue.queue_path())
    expect(page.get_by_role("article")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("button")).to_have_count(0)
    expect(page.locator("main [data-changes]")).to_have_count(0)
    expect(page.get_by_role("link", name="Administration")).to_have_count(0)
    visit.goto(queue.pull_request_path(number))
    expect(page.get_by_text("Read-only access")).to_be_visible()
    visit.goto(queue.queue_path("settings"))
    expect(page.get_by_text("Read-only.")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("textbox")).to_have_count(0)


def test_missing_scope_is_named(visitor: Visitors):
    visit = visitor("read")
    visit.monitor.allow_console_error("status of 403")
    page = visit.goto("/administration/tokens")
    expect(page.get_by_role("heading", level=1)).to_have_text("Permission denied")
    expect(page.get_by_text("This needs the scope “admin”.")).to_be_visible()


def test_other_repositories_are_not_visible(site: SharedServer, queue: SharedServerQueue, visitor: Visitors):
    visit = visitor.with_token(site.token("read", name="Stranger", repo="git.local/acme/other"))
    visit.monitor.allow_console_error("status of 404")
    page = visit.goto("/")
    expect(page.get_by_role("heading", name="No queue")).to_be_visible()
    expect(page.get_by_text("acme/app")).to_have_count(0)
    visit.goto(queue.queue_path())
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
