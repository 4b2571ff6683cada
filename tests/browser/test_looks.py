"""Every page can be read by everybody: by eye or ear, in the light and in the dark, on a desk and on a phone."""

from collections.abc import Mapping

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitors
from tests.support.chromium import Visit
from tests.support.grounds import OWN_CHECKS, Grounds, Track
from tests.support.looking import flaws_of

LONG = "Replace-the-signal-box-and-everything-that-hangs-on-it-" * 3


def look_at(visit: Visit, pages: Mapping[str, str]) -> None:
    flaws = list[str]()
    for name, address in pages.items():
        page = visit.go(address)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        flaws += flaws_of(page, name)
    assert not flaws, "\n".join(flaws)


@pytest.mark.long
def test_a_queue_at_work_and_all_that_is_in_it(track: Track, visitor: Visitors):
    track.update_queue(concurrency=2)
    merged, failed, cancelled = track.open(title="Lay the rails"), track.open(title=LONG), track.open()
    track.merge(merged)
    track.test(failed)
    track.report(failed, "failure", url="https://ci.example.com/7", description="2 of 90 tests failed")
    track.wait_for("failed", failed)
    track.submit(cancelled)
    track.cancel(cancelled)
    testing = [track.open(title="Paint the wagons"), track.open(title=LONG, author=LONG)]
    track.test(*testing)
    track.report(testing[0], "success", ("unit",))
    waiting, draft = track.open(), track.open(draft=True)
    track.submit(draft)
    track.line_up(waiting)
    visit = visitor("admin")
    pages = {
        "queues": "/",
        "API": "/docs",
        "health": track.page("health"),
        "settings": track.page("settings"),
        "pull request failed": track.pull_page(failed),
        "pull request testing": track.pull_page(testing[0]),
        "run": f"/runs/{track.pull(testing[0])['testRunId']}",
        "what to do": f"/actions?queue={track.page().removeprefix('/queues/')}&number={waiting}",
        "queue": track.page(),
    }
    look_at(visit, pages)
    visit.page.get_by_role("button", name="Submit…").click()
    assert flaws_of(visit.page, "submitting") == []


def test_lanes(grounds: Grounds, visitor: Visitors):
    track = grounds.track(mode="parallel", batch=True, batchingMinSize=2, batchingMaxWaitTimeMinutes=0)
    lanes = [track.open(title=f"Repair the {target}") for target in ("bridge", "tunnel", "platform")]
    for number, targets in zip(lanes, (("bridge",), ("tunnel",), ("bridge", "tunnel", LONG)), strict=True):
        track.upload_targets(number, *targets)
    track.test(*lanes)
    visit = visitor("read")
    look_at(visit, {"queue with lanes": track.page(), "pull request in a lane": track.pull_page(lanes[2])})
    track.api.close()


def test_a_search_for_the_guilty_one(grounds: Grounds, visitor: Visitors):
    track = grounds.track()
    track.merge(track.open())
    track.update_queue(batch=True, batchingMinSize=4, batchingMaxWaitTimeMinutes=60)
    suspects = [track.open(title=title) for title in ("Lay the rails", LONG, "Paint the wagons", "Oil the switch")]
    track.test(*suspects)
    track.report(suspects[0], "failure")
    visit = visitor("read")
    page = visit.go(track.page())
    search = page.get_by_role("region", name="Search for the guilty one")
    expect(search.get_by_text("testing").first).to_be_visible()
    probes = [tip for branch, tip in track.ci.branches().items() if f"/pr-{suspects[0]}/" in branch]
    track.ci.report(min(probes, key=lambda tip: len(track.origin.files(tip))), "success")
    expect(search.get_by_text("passed")).to_be_visible()
    moved = f"view-transition-name: pr-{suspects[0]};"
    expect(page.locator(f"li[style='{moved}']")).to_have_count(1)
    expect(page.locator(f"[style='{moved}']")).to_have_count(1)
    look_at(visit, {"queue with a search": track.page(), "pull request under suspicion": track.pull_page(suspects[3])})
    track.api.close()


def test_what_a_check_wrote(grounds: Grounds, visitor: Visitors):
    track = grounds.track(OWN_CHECKS)
    number = track.open({"bad": "1"})
    track.submit(number)
    track.wait_for("failed", number)
    visit = visitor("read")
    visit.alarm.expect("status of 404")
    run = f"/runs/{track.pull(number)['testRunId']}"
    look_at(visit, {"output": f"{run}/output/unit", "silence": f"{run}/output/lint", "no output": f"{run}/output/e2e"})
    track.api.close()


@pytest.mark.long
def test_the_administration(grounds: Grounds, track: Track, visitor: Visitors):
    made = track.api.post("createWebhook", url="http://127.0.0.1:9/hook", description=LONG)
    grounds.token("read", "submit", name=LONG[:100], repo="git.local/acme/app")
    webhook = f"/administration/webhooks/{made['id']}"
    track.api.post("testWebhook", id=made["id"])
    visit = visitor("admin")
    page = visit.go("/administration/tokens")
    revoke = page.get_by_role("link", name="Revoke").first.get_attribute("href") or ""
    visit.go(webhook)
    delivery = page.get_by_role("region", name="Deliveries").get_by_role("link").first.get_attribute("href") or ""
    pages = {
        "new queue": "/queues/new",
        "tokens": "/administration/tokens",
        "revoking a token": revoke,
        "webhooks": "/administration/webhooks",
        "new webhook": "/administration/webhooks/new",
        "webhook": webhook,
        "delivery": delivery,
        "deleting a webhook": f"{webhook}/delete",
        "hosts": "/administration/hosts",
        "audit log": "/administration/audit",
    }
    look_at(visit, pages)


def test_what_is_shown_once(visitor: Visitors):
    page = visitor("admin").go("/administration/tokens")
    page.get_by_text("New token").click()
    page.get_by_label("Name", exact=True).fill("Heidi")
    page.get_by_role("button", name="Make the token").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Token made")
    assert flaws_of(page, "token made") == []


def test_the_door_and_what_is_not_there(track: Track, visitor: Visitors):
    visit = visitor("read")
    visit.alarm.expect("status of 40")
    unknown = track.open()
    pages = {
        "empty queue": track.page(),
        "pull request unknown": track.pull_page(unknown),
        "nothing here": "/nowhere",
        "not allowed": "/administration/tokens",
    }
    look_at(visit, pages)
    look_at(visitor.stranger(), {"sign in": "/sign-in"})
