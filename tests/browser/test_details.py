"""Pages of pull requests, runs and check outputs say only what is so, and lead to the exact place."""

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitors
from tests.support.browser import find_page_flaws
from tests.support.shared_server import HOST_WITH_LOCAL_CHECKS, SharedServer, SharedServerQueue

FIX_IT = re.compile(r"push a fix|fix them|resubmit|submit again", re.IGNORECASE)


def a_failed_batch(site: SharedServer, size: int) -> tuple[SharedServerQueue, list[int]]:
    """The target branch passes on its own, so the batch is bisected as soon as it fails."""
    queue = site.create_queue(batch=True, batchingMinSize=size, batchingMaxWaitTimeMinutes=30, bisectionConcurrency=1)
    merged = [queue.open() for _ in range(size)]
    queue.start_testing(*merged)
    queue.report(merged[0], "success")
    queue.wait_for("merged", *merged)
    members = [queue.open(title=f"Member {index}") for index in range(size)]
    queue.start_testing(*members)
    queue.report(members[0], "failure")
    return queue, members


def test_innocent_member_of_a_failed_batch_is_not_told_to_fix_anything(site: SharedServer, visitor: Visitors):
    queue, (first, second) = a_failed_batch(site, 2)
    page = visitor("read", "submit").goto(queue.pull_request_path(second))
    now = page.locator("section.now")
    expect(now).to_contain_text(
        "Bisecting the failed batch: this pull request is a possible culprit. No action is needed yet."
    )
    expect(page.locator("#live")).not_to_contain_text(FIX_IT)
    assert find_page_flaws(page, "bisecting") == []
    link = page.get_by_role("link", name="View the bisection")
    address = link.get_attribute("href") or ""
    assert address.startswith(f"{queue.queue_path()}#bisection-")
    queue.report(first, "failure")
    queue.wait_for("failed", first)
    queue.wait_for("testing", second)
    expect(now).not_to_contain_text("Bisecting")
    expect(page.locator("#live")).not_to_contain_text(FIX_IT)
    queue.api.close()


def test_suspect_is_told_that_it_is_the_likely_culprit(site: SharedServer, visitor: Visitors):
    queue, (first, second) = a_failed_batch(site, 2)
    page = visitor("read").goto(queue.pull_request_path(second))
    queue.report(first, "success")
    expect(page.locator("section.now")).to_contain_text(
        "the likely culprit. The queue tests it again before it decides."
    )
    expect(page.locator("#live")).not_to_contain_text(FIX_IT)
    expect(page.locator("section.now")).to_contain_text("No estimate")
    queue.api.close()


def is_in_view(page: Page, line: int) -> bool:
    return page.evaluate(
        """(id) => {
            const line = document.getElementById(id).getBoundingClientRect();
            const frame = document.querySelector(".terminal").getBoundingClientRect();
            return line.top >= frame.top && line.bottom <= frame.bottom;
        }""",
        f"L{line}",
    )


def test_output_of_a_check_has_links_to_lines_and_a_search(site: SharedServer, visitor: Visitors):
    queue = site.create_queue(HOST_WITH_LOCAL_CHECKS)
    number = queue.open({"bad": "1"})
    queue.submit(number)
    queue.wait_for("failed", number)
    address = f"/runs/{queue.submission(number)['testRunId']}/output/unit"
    page = visitor("read").goto(address)
    assert is_in_view(page, 202)
    assert not is_in_view(page, 7)
    page = visitor("read").goto(f"{address}#L7")
    assert is_in_view(page, 7)
    plain, target = (
        page.locator(line).evaluate("(line) => getComputedStyle(line).backgroundColor") for line in ("#L8", "#L7")
    )
    assert plain != target
    page.get_by_role("link", name="first match of “failed”").click()
    assert is_in_view(page, 202)
    page.get_by_label("Search the output").fill("19")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("navigation", name="Matches")).to_contain_text("1 of 12 matching lines")
    page.get_by_role("link", name="Next").click()
    expect(page.locator(".current")).to_have_id("L119")
    assert is_in_view(page, 119)
    page.get_by_role("link", name="Do not wrap lines").click()
    expect(page.locator("pre.unwrapped")).to_be_visible()
    expect(page.get_by_label("Search the output")).to_have_value("19")
    assert find_page_flaws(page, "output") == []
    queue.api.close()
