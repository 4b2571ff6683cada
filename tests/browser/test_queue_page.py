"""The page of a queue and the list of its pull requests, as users find their way through them."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitors
from tests.support.browser import find_page_flaws
from tests.support.shared_server import SharedServer, SharedServerQueue

WAITING = 300
LANE_LENGTH = 8


def hidden_part(page: Page) -> int:
    """How many pixels of the track are outside of its visible part."""
    return page.locator(".track > .scroll").evaluate("element => element.scrollWidth - element.clientWidth")


def right_edges(page: Page) -> list[float]:
    wagons = page.get_by_role("article").all()
    return [box["x"] + box["width"] for wagon in wagons if (box := wagon.bounding_box()) is not None]


def submit_lane(site: SharedServer) -> SharedServerQueue:
    """A parallel queue with one long lane, and a short one beside it."""
    queue = site.create_queue(mode="parallel", concurrency=LANE_LENGTH + 1)
    for target in ("bridge",) * LANE_LENGTH + ("tunnel",):
        number = queue.open(title=f"Repair the {target}")
        queue.upload_impacted_targets(number, target)
        queue.start_testing(number)
    return queue


def test_the_250th_of_300_waiting_pull_requests_is_found(queue: SharedServerQueue, visitor: Visitors):
    queue.update_queue(concurrency=1)
    queue.api.post("updateQueue", state="PAUSED")
    numbers = [queue.open(title=f"Change {place}") for place in range(1, WAITING + 1)]
    for number in numbers:
        queue.submit(number)
    queue.eventually(lambda: all(each["reason"]["code"] == "queue_paused" for each in queue.enqueued()))
    page = visitor("read").goto(queue.queue_path())
    page.get_by_role("link", name=f"Show all {WAITING}").click()
    expect(page.get_by_role("heading", name=f"{WAITING} pull requests")).to_be_visible()
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_role("table").get_by_role("link", name=f"#{numbers[50]} ")).to_be_visible()
    page.get_by_role("main").get_by_label("Search").fill(f"#{numbers[249]}")
    page.get_by_role("main").get_by_label("Search").press("Enter")
    expect(page.get_by_role("heading", name="1 pull request", exact=True)).to_be_visible()
    page.get_by_role("table").get_by_role("link", name="Change 250").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Change 250")


def test_list_of_pull_requests_is_accessible(queue: SharedServerQueue, visitor: Visitors):
    queue.merge(queue.open(title="Lay the rails"))
    queue.start_testing(queue.open(title="Paint-the-wagons-" * 12))
    page = visitor("read").goto("/pulls?author=@me&state=open")
    assert find_page_flaws(page, "my pull requests") == []
    page.goto(f"/pulls?queue={queue.queue_path().removeprefix('/queues/')}")
    expect(page.get_by_role("table")).to_contain_text("Merged")
    assert find_page_flaws(page, "pull requests") == []


def test_members_of_a_batch_under_bisection_are_counted_and_named(site: SharedServer, visitor: Visitors):
    queue = site.create_queue()
    queue.merge(queue.open())
    queue.update_queue(batch=True, batchingMinSize=4, batchingMaxWaitTimeMinutes=60, bisectionConcurrency=1)
    members = [queue.open(title=f"Member {place}") for place in (1, 2, 3, 4)]
    queue.start_testing(*members)
    page = visitor("read", "submit").goto(queue.queue_path())
    queue.report(members[0], "failure", ("unit",), url="https://ci.example.com/9")
    progress = page.get_by_role("region", name="Bisection progress")
    for place, number in enumerate(members, start=1):
        member = progress.get_by_role("rowheader", name=f"#{number} Member {place}")
        expect(member).to_contain_text("Ada · possible culprit")
        expect(progress.get_by_role("link", name=f"Actions for #{number}")).to_be_visible()
    expect(progress.get_by_role("link", name="unit")).to_have_attribute("href", "https://ci.example.com/9")
    expect(page.get_by_text("About 2 more rounds")).to_be_visible()
    expect(page.locator("dl.figures > div", has=page.get_by_text("Bisecting", exact=True))).to_have_text("Bisecting4")
    queue.api.close()


def test_queue_without_required_checks_leads_to_the_setting(queue: SharedServerQueue, visitor: Visitors):
    queue.origin.commit(queue.target_branch, {".mergeyard.toml": "version = 1\n"})
    queue.submit(queue.open(title="Lay the rails"))
    queue.update_queue(requiredStatuses=None)  # the server reads what the branch requires again
    page = visitor("admin").goto(queue.queue_path())
    expect(page.get_by_role("alert").filter(has_text="No required checks: nothing can merge.")).to_be_visible()
    expect(page.get_by_role("region", name="Not ready")).to_contain_text("Lay the rails")
    page.get_by_role("link", name="Configure required checks").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Settings")


def test_all_checks_of_a_wagon_are_listed_on_request(queue: SharedServerQueue, visitor: Visitors):
    number = queue.open()
    queue.start_testing(number)
    page = visitor("read").goto(queue.queue_path())
    queue.report(number, "success", ("unit",))
    wagon = page.get_by_role("article")
    expect(wagon.get_by_text("1/2")).to_be_visible()
    expect(wagon.get_by_text("lint")).to_be_hidden()
    wagon.locator("summary").press("Enter")
    expect(wagon.get_by_role("listitem").filter(has_text="unit")).to_contain_text("passed")
    expect(wagon.get_by_role("listitem").filter(has_text="lint")).to_contain_text("pending")
    wagon.get_by_role("link", name="Open the test run").click()
    expect(page).to_have_url(f"{page.url.partition('/runs/')[0]}/runs/{queue.submission(number)['testRunId']}")


def test_lanes_use_the_whole_window_and_can_be_scrolled_in_a_smaller_one(site: SharedServer, visitor: Visitors):
    queue = submit_lane(site)
    page = visitor("read").goto(queue.queue_path())
    expect(page.get_by_role("article")).to_have_count(LANE_LENGTH + 1)
    page.set_viewport_size({"width": 2560, "height": 1200})
    assert hidden_part(page) == 0
    assert 2400 < max(right_edges(page)) <= 2560
    for width in (1920, 1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert hidden_part(page) == 0, "on a phone the track runs downwards"
    page.set_viewport_size({"width": 1440, "height": 900})
    assert hidden_part(page) > 0
    page.locator(".track > .scroll").evaluate("element => element.scrollTo(element.scrollWidth, 0)")
    edge = page.locator(".edge").bounding_box()
    assert edge is not None
    assert max(right_edges(page)) <= edge["x"] + 1, "the fade does not cover the last wagon"
    queue.api.close()


@pytest.mark.parametrize("width", [390, 1440])
def test_page_names_the_queue_and_its_length_in_the_tab(queue: SharedServerQueue, visitor: Visitors, width: int):
    queue.start_testing(queue.open())
    visit = visitor("read")
    visit.page.set_viewport_size({"width": width, "height": 900})
    expect(visit.goto(queue.queue_path())).to_have_title(f"acme/app {queue.target_branch} · 1 queued · Mergeyard")
