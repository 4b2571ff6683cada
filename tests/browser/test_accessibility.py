"""Every page is accessible: for screen readers, in light and dark themes, on large and small screens."""

from collections.abc import Mapping

from playwright.sync_api import expect

from tests.browser.conftest import Visitors
from tests.support.browser import BrowserSession, find_page_flaws
from tests.support.shared_server import HOST_WITH_LOCAL_CHECKS, SharedServer, SharedServerQueue

LONG = "Replace-the-signal-box-and-everything-that-hangs-on-it-" * 3


def assert_accessible(visit: BrowserSession, pages: Mapping[str, str]) -> None:
    flaws = list[str]()
    for name, address in pages.items():
        page = visit.goto(address)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        flaws += find_page_flaws(page, name)
    assert not flaws, "\n".join(flaws)


def test_pages_of_a_working_queue_are_accessible(queue: SharedServerQueue, visitor: Visitors):
    queue.update_queue(concurrency=2)
    merged, failed, cancelled = queue.open(title="Lay the rails"), queue.open(title=LONG), queue.open()
    queue.merge(merged)
    queue.start_testing(failed)
    queue.report(failed, "failure", url="https://ci.example.com/7", description="2 of 90 tests failed")
    queue.wait_for("failed", failed)
    queue.submit(cancelled)
    queue.cancel(cancelled)
    testing = [queue.open(title="Paint the wagons"), queue.open(title=LONG, author=LONG)]
    queue.start_testing(*testing)
    queue.report(testing[0], "success", ("unit",))
    waiting, draft = queue.open(), queue.open(draft=True)
    queue.submit(draft)
    queue.submit_in_order(waiting)
    visit = visitor("admin")
    name = queue.queue_path().removeprefix("/queues/")
    pages = {
        "queues": "/",
        "API": "/docs",
        "health": queue.queue_path("health"),
        "settings": queue.queue_path("settings"),
        "pull request failed": queue.pull_request_path(failed),
        "pull request testing": queue.pull_request_path(testing[0]),
        "run": f"/runs/{queue.submission(testing[0])['testRunId']}",
        "what to do": f"/actions?queue={name}&number={waiting}",
        "add to queue": f"/actions/submit?queue={name}",
        "resubmit": f"/actions/submit?queue={name}&number={failed}",
        "set priority": f"/actions/priority?queue={name}&number={waiting}",
        "remove": f"/actions/cancel?queue={name}&number={testing[0]}",
        "pause": f"/actions/pause?queue={name}",
        "queue": queue.queue_path(),
    }
    assert_accessible(visit, pages)
    visit.page.get_by_role("link", name="Add to queue").click()
    expect(visit.page.get_by_role("radio").first).to_be_visible()
    assert find_page_flaws(visit.page, "submitting") == []
    visit.page.keyboard.press("Escape")
    visit.page.get_by_role("button", name="Keyboard shortcuts").click()
    assert find_page_flaws(visit.page, "shortcuts") == []
    visit.page.keyboard.press("Escape")
    visit.page.evaluate("showConnection(true)")
    assert find_page_flaws(visit.page, "connection lost") == []


def test_pages_with_lanes_are_accessible(site: SharedServer, visitor: Visitors):
    queue = site.create_queue(mode="parallel", batch=True, batchingMinSize=2, batchingMaxWaitTimeMinutes=0)
    lanes = [queue.open(title=f"Repair the {target}") for target in ("bridge", "tunnel", "platform")]
    for number, targets in zip(lanes, (("bridge",), ("tunnel",), ("bridge", "tunnel", LONG)), strict=True):
        queue.upload_impacted_targets(number, *targets)
    queue.start_testing(*lanes)
    visit = visitor("read")
    assert_accessible(
        visit, {"queue with lanes": queue.queue_path(), "pull request in a lane": queue.pull_request_path(lanes[2])}
    )
    queue.api.close()


def test_page_with_a_bisection_is_accessible(site: SharedServer, visitor: Visitors):
    queue = site.create_queue()
    queue.merge(queue.open())
    queue.update_queue(batch=True, batchingMinSize=4, batchingMaxWaitTimeMinutes=60)
    suspects = [queue.open(title=title) for title in ("Lay the rails", LONG, "Paint the wagons", "Oil the switch")]
    queue.start_testing(*suspects)
    queue.report(suspects[0], "failure")
    visit = visitor("read")
    page = visit.goto(queue.queue_path())
    search = page.get_by_role("region", name="Bisection progress")
    expect(search.get_by_text("testing").first).to_be_visible()
    probes = [tip for branch, tip in queue.ci.test_branches().items() if f"/pr-{suspects[0]}/" in branch]
    queue.ci.report(min(probes, key=lambda tip: len(queue.origin.files(tip))), "success")
    expect(search.get_by_text("passed")).to_be_visible()
    moved = f"view-transition-name: pr-{suspects[0]};"
    expect(page.locator(f"li[style='{moved}']")).to_have_count(1)
    expect(page.locator(f"[style='{moved}']")).to_have_count(1)
    assert_accessible(
        visit,
        {
            "queue with a search": queue.queue_path(),
            "pull request under suspicion": queue.pull_request_path(suspects[3]),
        },
    )
    queue.api.close()


def test_page_of_a_check_output_is_accessible(site: SharedServer, visitor: Visitors):
    queue = site.create_queue(HOST_WITH_LOCAL_CHECKS)
    number = queue.open({"bad": "1"})
    queue.submit(number)
    queue.wait_for("failed", number)
    visit = visitor("read")
    visit.monitor.allow_console_error("status of 404")
    run = f"/runs/{queue.submission(number)['testRunId']}"
    assert_accessible(
        visit, {"output": f"{run}/output/unit", "silence": f"{run}/output/lint", "no output": f"{run}/output/e2e"}
    )
    queue.api.close()


def test_administration_pages_are_accessible(site: SharedServer, queue: SharedServerQueue, visitor: Visitors):
    made = queue.api.post("createWebhook", url="http://127.0.0.1:9/hook", description=LONG)
    site.token("read", "submit", name=LONG[:100], repo="git.local/acme/app")
    webhook = f"/administration/webhooks/{made['id']}"
    queue.api.post("testWebhook", id=made["id"])
    visit = visitor("admin")
    page = visit.goto("/administration/tokens")
    revoke = page.get_by_role("link", name="Revoke").first.get_attribute("href") or ""
    visit.goto(webhook)
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
    assert_accessible(visit, pages)


def test_page_with_a_new_secret_is_accessible(visitor: Visitors):
    page = visitor("admin").goto("/administration/tokens")
    page.locator("summary", has_text="Create token").click()
    page.get_by_label("Name", exact=True).fill("Heidi")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Token created")
    assert find_page_flaws(page, "token made") == []


def test_sign_in_and_error_pages_are_accessible(queue: SharedServerQueue, visitor: Visitors):
    visit = visitor("read")
    visit.monitor.allow_console_error("status of 40")
    unknown = queue.open()
    pages = {
        "empty queue": queue.queue_path(),
        "pull request unknown": queue.pull_request_path(unknown),
        "nothing here": "/nowhere",
        "not allowed": "/administration/tokens",
    }
    assert_accessible(visit, pages)
    assert_accessible(visitor.anonymous(), {"sign in": "/sign-in"})
