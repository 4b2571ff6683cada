"""Text from users is shown as written and is never interpreted."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitors
from tests.support.api_client import ApiClient
from tests.support.shared_server import SharedServer, SharedServerQueue

TITLE = """</title></bdi><img src=x onerror=alert(1)>{{ 7 * 7 }}"""
AUTHOR = """"><script>alert(2)</script>"""
BRANCH = """<svg/onload=alert`3`>'"&amp;"""
CHECK = """<iframe/srcdoc="<script>alert(4)</script>">"""
DESCRIPTION = """'-alert(5)-'</script><script>alert(5)//"""
TOKEN = """<b onmouseover="alert(6)">Mallory</b>"""
WEBHOOK = """<details open ontoggle=alert(7)>"""
TARGET = """<math><a xlink:href="javascript:alert(8)">x</a>"""
ADDRESS = 'https://ci.example.org/"onmouseover=alert(9)//<script>alert(9)</script>'
REVERSED = "safe\u202egnp.exe"

INTERPRETED = "[onerror], [onload], [ontoggle], [onmouseover], iframe, bdi *"


def assert_harmless(page: Page, *texts: str) -> None:
    for text in texts:
        expect(page.get_by_text(text).first).to_be_visible()
    expect(page.locator(INTERPRETED)).to_have_count(0)
    expect(page.locator("a[href^='javascript:' i], a[href^='data:' i]")).to_have_count(0)


def as_mallory(site: SharedServer, queue: SharedServerQueue) -> ApiClient:
    return ApiClient(site.server, site.token("admin", name=TOKEN), site.host_log, queue.api.queue)


def test_hostile_pull_request_from_submission_to_failure(
    site: SharedServer, queue: SharedServerQueue, visitor: Visitors
):
    queue.update_queue(requiredStatuses=["unit", CHECK])
    first = queue.open(title=REVERSED, author=REVERSED)
    queue.start_testing(first)
    queue.report(first, "success", ("unit", CHECK))
    number = queue.open(title=TITLE, author=AUTHOR, branch=BRANCH)
    mallory = as_mallory(site, queue)
    mallory.post("submitPullRequest", pr={"number": number})
    mallory.close()
    queue.wait_for("testing", number)
    visit = visitor("admin")
    assert_harmless(visit.goto(queue.queue_path()), TITLE, AUTHOR, REVERSED)
    queue.report(number, "success", ("unit",), description=DESCRIPTION, url=ADDRESS)
    page = visit.goto(queue.pull_request_path(number))
    assert_harmless(page, TITLE, AUTHOR, BRANCH, CHECK, DESCRIPTION, TOKEN)
    expect(page).to_have_title(f"● #{number} · position 1 · {TITLE} · Mergeyard")
    queue.report(number, "failure", (CHECK,), description=DESCRIPTION, url=ADDRESS)
    expect(page.get_by_role("region", name="Failed checks")).to_contain_text(CHECK)
    assert_harmless(page, TITLE, CHECK, DESCRIPTION)
    page.get_by_role("link", name="View run").click()
    assert_harmless(page, TITLE, CHECK, DESCRIPTION)


def test_hostile_impacted_target(site: SharedServer, visitor: Visitors):
    queue = site.create_queue(mode="parallel")
    number = queue.open()
    queue.upload_impacted_targets(number, TARGET)
    queue.start_testing(number)
    visit = visitor("read")
    assert_harmless(visit.goto(queue.pull_request_path(number)), TARGET)
    assert_harmless(visit.goto(f"/runs/{queue.submission(number)['testRunId']}"), TARGET)
    queue.api.close()


def test_hostile_texts_in_administration_and_settings(site: SharedServer, queue: SharedServerQueue, visitor: Visitors):
    mallory = as_mallory(site, queue)
    mallory.post("createWebhook", url="http://127.0.0.1:9/<script>", description=WEBHOOK)
    mallory.post("updateQueue", requiredStatuses=[CHECK])
    mallory.post("updateQueue", state="PAUSED")
    mallory.close()
    visit = visitor("admin")
    assert_harmless(visit.goto("/administration/tokens"), TOKEN)
    assert_harmless(visit.goto("/administration/webhooks"), WEBHOOK)
    assert_harmless(visit.goto("/administration/audit"), TOKEN)
    assert_harmless(visit.goto(queue.queue_path()), TOKEN)
    expect(visit.goto(queue.queue_path("settings")).get_by_role("textbox", name="Required checks")).to_have_value(CHECK)
    assert_harmless(visit.page)


def test_hostile_address_and_token_name(site: SharedServer, visitor: Visitors):
    visit = visitor.with_token(site.token("admin", name=TOKEN))
    visit.monitor.allow_console_error("status of 404")
    assert_harmless(visit.goto("/queues/git.local/acme/<script>alert(1)</script>:main"), TOKEN)
    assert_harmless(visit.goto("/sign-in?next=javascript:alert(1)"))
    assert_harmless(visit.goto("/administration/audit?actor=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"))
