"""Sign-in with a token or through an identity provider, with the cookies and rules of a real browser."""

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitors
from tests.support.shared_server import SharedServer, SharedServerQueue


def test_sign_in_with_a_token_leads_to_the_requested_page(
    site: SharedServer, queue: SharedServerQueue, visitor: Visitors
):
    visit = visitor.anonymous()
    visit.monitor.allow_console_error("status of 401")
    page = visit.goto(queue.queue_path())
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("Token").fill("my_mistyped")
    page.get_by_role("button", name="Sign in with token").click()
    expect(page.get_by_role("alert")).to_contain_text("Invalid, revoked or expired token.")
    page.get_by_label("Token").fill(site.token("read"))
    page.get_by_role("button", name="Sign in with token").click()
    expect(page).to_have_url(f"{visit.base_url}{queue.queue_path()}")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def sign_in_at_provider(page: Page) -> None:
    page.get_by_role("link", name="Sign in with Acme").click()
    page.get_by_role("link", name="Let me in").click()


def test_sign_in_at_the_provider_leads_to_the_requested_page(
    site: SharedServer, queue: SharedServerQueue, visitor: Visitors
):
    visit = visitor.anonymous(site.provider.issuer)
    page = visit.goto(queue.queue_path())
    sign_in_at_provider(page)
    expect(page).to_have_url(f"{visit.base_url}{queue.queue_path()}")
    expect(page.get_by_text(re.compile(r"^ada \([0-9a-f]{8}\)$"))).to_be_visible()
    expect(page.get_by_role("link", name="Add to queue")).to_be_visible()
    expect(page.get_by_role("link", name="Pause")).to_have_count(0)
    assert [cookie.get("name") for cookie in visit.context.cookies()] == ["mergeyard_session"]


def test_user_without_a_permitted_group_can_try_again(site: SharedServer, visitor: Visitors):
    visit = visitor.anonymous(site.provider.issuer)
    visit.monitor.allow_console_error("status of 403")
    usual, site.provider.user_claims = site.provider.user_claims, {"sub": "8", "preferred_username": "bob"}
    page = visit.goto("/sign-in")
    sign_in_at_provider(page)
    expect(page.get_by_role("alert")).to_contain_text("None of your groups has access to Mergeyard")
    site.provider.user_claims = usual
    sign_in_at_provider(page)
    expect(page).to_have_url(f"{visit.base_url}/")
