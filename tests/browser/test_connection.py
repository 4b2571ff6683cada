"""A page that cannot be up to date says so, and nothing that a user typed is lost."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Visitors
from tests.support.browser import BrowserSession, Chromium
from tests.support.shared_server import SharedServer, SharedServerQueue

LOST = re.compile(r"^Connection lost\. This page shows the state of \d\d:\d\d:\d\d\. Reconnecting…$")
NOT_KNOWN = "The server did not answer, so it is not known whether this was done."
GRAY = "grayscale(1)"


@pytest.fixture
def own_site(chromium: Chromium, tmp_path: Path) -> Iterator[SharedServer]:
    """A server that the test can kill and start again at the same address."""
    assert chromium.browser.is_connected()
    site = SharedServer(tmp_path)
    site.server.port = urlsplit(site.server.url).port or 0
    yield site
    site.close()


@pytest.fixture
def visit(chromium: Chromium, own_site: SharedServer) -> Iterator[BrowserSession]:
    """An administrator of that server."""

    def sign_in() -> BrowserSession:
        visit = BrowserSession(chromium.browser, own_site.server.url)
        visit.sign_in(own_site.token("admin"))
        for text in ("net::ERR", "htmx:", "status of 404"):
            visit.monitor.allow_console_error(text)
        return visit

    visit = chromium.run(sign_in)
    yield visit
    chromium.run(visit.close)


def expect_lost(page: Page, within_ms: int = 5000) -> None:
    expect(page.locator("#connection")).to_have_text(LOST, timeout=within_ms)
    expect(page.get_by_role("main")).to_have_css("filter", GRAY)


def expect_connected(page: Page) -> None:
    expect(page.locator("#connection")).to_be_hidden()
    expect(page.get_by_role("main")).to_have_css("filter", "none")


def test_pages_show_a_lost_connection_and_recover_with_what_was_typed(own_site: SharedServer, visit: BrowserSession):
    queue = own_site.create_queue()
    number = queue.open(title="Lay the rails")
    page = visit.goto(queue.queue_path())
    periodic = visit.context.new_page()
    periodic.goto("/")
    expect(page.locator(".lamp")).not_to_have_css("background-color", "rgba(0, 0, 0, 0)")
    page.get_by_role("link", name="Add to queue").click()
    page.get_by_label("Pull request", exact=True).fill(str(number))
    own_site.server.kill()
    expect_lost(page)
    expect_lost(periodic)
    expect(page.locator(".lamp")).to_have_css("background-color", "rgba(0, 0, 0, 0)")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert").first).to_contain_text("Connection lost. What you typed is kept")
    expect(dialog.get_by_role("button", name="Add to queue")).to_be_disabled()
    expect(page.locator("main a[data-action=pause]")).to_have_attribute("aria-disabled", "true")
    own_site.server.start()
    expect_connected(page)
    expect_connected(periodic)
    expect(page.locator("main a[data-action=pause]")).not_to_have_attribute("aria-disabled", "true")
    expect(page.get_by_label("Pull request", exact=True)).to_have_value(str(number))
    dialog.get_by_role("button", name="Add to queue").click()
    expect(page.get_by_role("status")).to_contain_text(f"#{number} added to the queue.")
    queue.api.close()


def test_disabled_link_opens_nothing(own_site: SharedServer, visit: BrowserSession):
    queue = own_site.create_queue()
    page = visit.goto(queue.queue_path())
    own_site.server.kill()
    expect_lost(page)
    page.get_by_role("link", name="Pause").click(force=True)
    expect(page).to_have_url(f"{visit.base_url}{queue.queue_path()}")
    expect(page.get_by_role("dialog")).to_have_count(0)
    own_site.server.start()
    expect_connected(page)
    queue.api.close()


def test_server_that_hangs_is_noticed(own_site: SharedServer, visit: BrowserSession):
    queue = own_site.create_queue()
    settings = visit.context.new_page()
    settings.goto(queue.queue_path("settings"))
    page = visit.page
    with page.expect_response(lambda response: "hx-request" in response.request.headers):
        visit.goto(queue.queue_path())  # when the stream is open, its first event refreshes the page
    own_site.server.process.send_signal(signal.SIGSTOP)
    expect_lost(page)
    expect_lost(settings)
    own_site.server.process.send_signal(signal.SIGCONT)
    expect_connected(page)
    expect_connected(settings)
    queue.api.close()


@pytest.mark.parametrize("status", [200, 401])
def test_answer_of_a_proxy_does_not_replace_the_page(queue: SharedServerQueue, visitor: Visitors, status: int):
    visit = visitor("read")
    visit.monitor.allow_console_error("status of 401")
    page = visit.goto(queue.queue_path())
    login = "<html><h1>Company login</h1></html>"
    page.route(
        f"**{queue.queue_path()}", lambda route: route.fulfill(status=status, content_type="text/html", body=login)
    )
    queue.update_queue(concurrency=3)
    expect_lost(page)
    expect(page.get_by_text("Running", exact=True)).to_be_visible()
    page.unroute(f"**{queue.queue_path()}")
    expect_connected(page)


def test_ended_session_keeps_an_open_dialog(queue: SharedServerQueue, visitor: Visitors):
    visit = visitor("admin")
    page = visit.goto(queue.queue_path())
    page.get_by_role("link", name="Pause").click()
    page.get_by_label("Reason").fill("Release 2.0")
    other = visit.context.new_page()
    other.goto("/")
    other.get_by_role("button", name="Sign out").click()
    expect(other.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.get_by_role("dialog")).to_contain_text("You are signed out.")
    expect(page.get_by_label("Reason")).to_have_value("Release 2.0")


def test_typed_number_counts_although_one_title_contains_it(queue: SharedServerQueue, visitor: Visitors):
    visit = visitor("admin")
    visit.monitor.allow_console_error("status of 404")
    queue.open(title="Upgrade to version 404404")
    page = visit.goto(queue.queue_path())
    page.get_by_role("link", name="Add to queue").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("radio").first).to_be_visible()
    page.get_by_label("Pull request", exact=True).fill("404404")
    expect(dialog.get_by_role("radio")).to_have_count(1)
    page.get_by_label("Pull request", exact=True).press("Enter")
    expect(dialog.locator("#act-said")).to_contain_text("404404")


def test_refused_stream_is_replaced_by_polling(queue: SharedServerQueue, visitor: Visitors):
    """The page stays true, so that it need not look lost."""
    number = queue.open()
    queue.start_testing(number)
    visit = visitor("read")
    visit.monitor.allow_console_error("status of 503")
    page = visit.page
    page.route("**/live/**", lambda route: route.fulfill(status=503, body="Too many pages are open."))
    page.clock.install()
    with page.expect_request(lambda request: "hx-request" in request.headers):
        visit.goto(queue.pull_request_path(number))
    queue.report(number, "success")
    queue.wait_for("merged", number)
    page.clock.fast_forward("06")
    expect(page.get_by_role("heading", name="Merged", exact=True)).to_be_visible()
    expect_connected(page)


def refuse(route: Route) -> None:
    if route.request.method == "POST":
        route.fulfill(status=502, content_type="text/html", body="<html><p class='said'>Bad gateway</p>")
    else:
        route.continue_()


def abort(route: Route) -> None:
    if route.request.method == "POST":
        route.abort()
    else:
        route.continue_()


@pytest.mark.parametrize("fail", [refuse, abort])
def test_action_without_an_answer_keeps_its_dialog_and_text(queue: SharedServerQueue, visitor: Visitors, fail: object):
    visit = visitor("admin")
    for text in ("status of 502", "net::ERR", "htmx:"):
        visit.monitor.allow_console_error(text)
    page = visit.goto(queue.queue_path())
    page.route("**/actions/pause**", fail)  # pyright: ignore[reportArgumentType, reportCallIssue]
    page.get_by_role("link", name="Pause").click()
    page.get_by_label("Reason").fill("Release 2.0")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Pause").click()
    expect(dialog).to_contain_text(NOT_KNOWN)
    expect(dialog).not_to_contain_text("Bad gateway")
    expect(page.get_by_label("Reason")).to_have_value("Release 2.0")
    page.unroute("**/actions/pause**")
    dialog.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("status")).to_contain_text("Queue paused.")
    expect(dialog).to_have_count(0)


def test_refused_action_keeps_its_dialog_and_text(queue: SharedServerQueue, visitor: Visitors):
    visit = visitor("admin")
    visit.monitor.allow_console_error("status of 404")
    page = visit.goto(queue.queue_path())
    page.get_by_role("link", name="Add to queue").click()
    page.get_by_label("Pull request", exact=True).fill("404404")
    page.get_by_label("Don’t batch").check()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Add to queue").click()
    expect(dialog.locator("#act-said")).to_contain_text("404404")
    expect(page.get_by_label("Pull request", exact=True)).to_have_value("404404")
    expect(page.get_by_label("Don’t batch")).to_be_checked()
    expect(page.get_by_role("status")).to_be_empty()


def test_page_of_a_deleted_queue_is_replaced(queue: SharedServerQueue, visitor: Visitors):
    visit = visitor("admin")
    visit.monitor.allow_console_error("status of 404")
    page = visit.goto(queue.queue_path())
    expect(page.get_by_text("Running", exact=True)).to_be_visible()
    queue.api.post("deleteQueue")
    expect(page.get_by_role("heading", level=1)).to_have_text("This queue was deleted")
    expect(page.get_by_text("Running", exact=True)).to_have_count(0)
    expect(page).to_have_title("This queue was deleted · Mergeyard")
    expect_connected(page)
    page.get_by_role("link", name="Back to queues").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Queues")


def test_ended_session_leads_to_sign_in_and_back(site: SharedServer, queue: SharedServerQueue, visitor: Visitors):
    visit = visitor("read")
    page = visit.goto(queue.queue_path())
    other = visit.context.new_page()
    other.goto("/")
    other.get_by_role("button", name="Sign out").click()
    expect(other.get_by_role("heading", level=1)).to_have_text("Sign in")
    queue.update_queue(concurrency=3)
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("Token").fill(site.token("read"))
    page.get_by_label("Token").press("Enter")
    expect(page).to_have_url(f"{visit.base_url}{queue.queue_path()}")
