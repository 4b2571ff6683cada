"""Whatever people write is shown as they wrote it, and never does anything."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitors
from tests.support.api import Api
from tests.support.grounds import Grounds, Track

TITLE = """</title></bdi><img src=x onerror=alert(1)>{{ 7 * 7 }}"""
AUTHOR = """"><script>alert(2)</script>"""
BRANCH = """<svg/onload=alert`3`>'"&amp;"""
CHECK = """<iframe/srcdoc="<script>alert(4)</script>">"""
DESCRIPTION = """'-alert(5)-'</script><script>alert(5)//"""
TOKEN = """<b onmouseover="alert(6)">Mallory</b>"""
WEBHOOK = """<details open ontoggle=alert(7)>"""
TARGET = """<math><a xlink:href="javascript:alert(8)">x</a>"""
ADDRESS = 'https://ci.example.org/"onmouseover=alert(9)//<script>alert(9)</script>'
TURNED = "safe\u202egnp.exe"

MADE_OF_TEXT = "[onerror], [onload], [ontoggle], [onmouseover], iframe, bdi *"


def harmless(page: Page, *texts: str) -> None:
    for text in texts:
        expect(page.get_by_text(text).first).to_be_visible()
    expect(page.locator(MADE_OF_TEXT)).to_have_count(0)
    expect(page.locator("a[href^='javascript:' i], a[href^='data:' i]")).to_have_count(0)


def as_mallory(grounds: Grounds, track: Track) -> Api:
    return Api(grounds.server, grounds.token("admin", name=TOKEN), grounds.host_log, track.api.queue)


def test_a_pull_request_from_its_submission_to_its_failure(grounds: Grounds, track: Track, visitor: Visitors):
    track.update_queue(requiredStatuses=["unit", CHECK])
    first = track.open(title=TURNED, author=TURNED)
    track.test(first)
    track.report(first, "success", ("unit", CHECK))
    number = track.open(title=TITLE, author=AUTHOR, branch=BRANCH)
    track.upload_targets(number, TARGET)
    mallory = as_mallory(grounds, track)
    mallory.post("submitPullRequest", pr={"number": number})
    mallory.close()
    track.wait_for("testing", number)
    visit = visitor("admin")
    harmless(visit.go(track.page()), TITLE, AUTHOR, TURNED)
    track.report(number, "success", ("unit",), description=DESCRIPTION, url=ADDRESS)
    page = visit.go(track.pull_page(number))
    harmless(page, TITLE, AUTHOR, BRANCH, CHECK, DESCRIPTION, TARGET, TOKEN)
    expect(page).to_have_title(f"#{number} {TITLE} · Mergeyard")
    track.report(number, "failure", (CHECK,), description=DESCRIPTION, url=ADDRESS)
    expect(page.get_by_role("region", name="What failed")).to_contain_text(CHECK)
    harmless(page, TITLE, CHECK, DESCRIPTION)
    page.get_by_role("link", name="See the run").click()
    harmless(page, TITLE, CHECK, DESCRIPTION, TARGET)


def test_the_administration_and_the_settings(grounds: Grounds, track: Track, visitor: Visitors):
    mallory = as_mallory(grounds, track)
    mallory.post("createWebhook", url="http://127.0.0.1:9/<script>", description=WEBHOOK)
    mallory.post("updateQueue", requiredStatuses=[CHECK])
    mallory.post("updateQueue", state="PAUSED")
    mallory.close()
    visit = visitor("admin")
    harmless(visit.go("/administration/tokens"), TOKEN)
    harmless(visit.go("/administration/webhooks"), WEBHOOK)
    harmless(visit.go("/administration/audit"), TOKEN)
    harmless(visit.go(track.page()), TOKEN)
    expect(visit.go(track.page("settings")).get_by_label("Required statuses")).to_have_value(CHECK)
    harmless(visit.page)


def test_an_address_and_the_name_of_a_visitor(grounds: Grounds, visitor: Visitors):
    visit = visitor.with_token(grounds.token("admin", name=TOKEN))
    visit.alarm.expect("status of 404")
    harmless(visit.go("/queues/git.local/acme/<script>alert(1)</script>:main"), TOKEN)
    harmless(visit.go("/sign-in?next=javascript:alert(1)"))
    harmless(visit.go("/administration/audit?actor=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"))
