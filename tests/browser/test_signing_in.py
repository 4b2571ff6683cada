"""Coming in: with a token, or through an identity provider, with the cookies and rules of a real browser."""

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitors
from tests.support.grounds import Grounds, Track


def test_a_token_leads_to_the_page_that_was_wanted(grounds: Grounds, track: Track, visitor: Visitors):
    visit = visitor.stranger()
    visit.alarm.expect("status of 401")
    page = visit.go(track.page())
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("Token").fill("my_mistyped")
    page.get_by_role("button", name="Sign in with the token").click()
    expect(page.get_by_role("alert")).to_contain_text("This token is unknown")
    page.get_by_label("Token").fill(grounds.token("read"))
    page.get_by_role("button", name="Sign in with the token").click()
    expect(page).to_have_url(f"{visit.home}{track.page()}")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def through_the_provider(page: Page) -> None:
    page.get_by_role("link", name="Sign in with Acme").click()
    page.get_by_role("link", name="Let me in").click()


def test_an_identity_provider_leads_there_too(grounds: Grounds, track: Track, visitor: Visitors):
    visit = visitor.stranger(grounds.provider.issuer)
    page = visit.go(track.page())
    through_the_provider(page)
    expect(page).to_have_url(f"{visit.home}{track.page()}")
    expect(page.get_by_text(re.compile(r"^ada \([0-9a-f]{8}\)$"))).to_be_visible()
    expect(page.get_by_role("button", name="Submit…")).to_be_visible()
    expect(page.get_by_role("button", name="Pause…")).to_have_count(0)
    assert [cookie.get("name") for cookie in visit.context.cookies()] == ["mergeyard_session"]


def test_who_is_in_no_permitted_group_may_try_again(grounds: Grounds, visitor: Visitors):
    visit = visitor.stranger(grounds.provider.issuer)
    visit.alarm.expect("status of 403")
    usual, grounds.provider.visitor = grounds.provider.visitor, {"sub": "8", "preferred_username": "bob"}
    page = visit.go("/sign-in")
    through_the_provider(page)
    expect(page.get_by_role("alert")).to_contain_text("none of your groups may come in here")
    grounds.provider.visitor = usual
    through_the_provider(page)
    expect(page).to_have_url(f"{visit.home}/")
