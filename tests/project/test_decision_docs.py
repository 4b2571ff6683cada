"""The diagrams and figures on the pages about decisions and batching are those of the engine."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeyard.domain.config import Mode
from tests.project import batching_figures
from tests.project.batching_figures import PASS_RATES_PERCENT, SIZES, cost
from tests.support.story import Story

HOW_IT_DECIDES = (Path(__file__).parents[2] / "docs" / "understand" / "how-it-decides.md").read_text()


def diagrams() -> list[list[str]]:
    """The drawn part of each diagram, by row."""
    texts = re.findall(r"^```text\n(.*?)^```$", HOW_IT_DECIDES, re.MULTILINE | re.DOTALL)
    return [[re.split(r" {2,}", line)[-1] for line in text.splitlines()] for text in texts]


def three_submitted() -> Story:
    story = Story(concurrency=3)
    story.submit(1, 2, 3)
    return story


def results_in_any_order() -> Iterator[str]:
    story = three_submitted()
    yield story.queue_text()
    story.tests_pass(2)
    yield story.queue_text()
    story.tests_pass(1)
    yield story.queue_text()
    assert story.landings() == ((1, 2),)


def first_fails() -> Iterator[str]:
    story = three_submitted()
    yield story.queue_text()
    story.tests_fail(1)
    yield story.queue_text()
    assert story.state(1) == "failed"


def second_fails() -> Iterator[str]:
    story = three_submitted()
    yield story.queue_text()
    story.tests_fail(2)
    yield story.queue_text()
    story.tests_pass(1)
    yield story.queue_text()
    assert story.states(1, 2) == ("merged", "failed")


def base_is_broken() -> Iterator[str]:
    story = Story.on_an_untested_base()
    story.submit(1)
    story.tests_fail(1)
    yield story.queue_text()
    story.tests_fail()
    yield story.queue_text()
    story.submit(2)
    yield story.queue_text()
    story.tests_pass(2)
    yield story.queue_text()
    assert story.merged_prs() == (2,)


def batch_is_bisected() -> Iterator[str]:
    story = Story(batch=4, bisection_concurrency=2)
    story.submit(1, 2, 3, 4)
    yield story.queue_text()
    for failed, tested in ((True, (1, 2, 3, 4)), (True, (1, 2, 3)), (False, (1, 2)), (False, (4,)), (False, (1, 2))):
        (story.tests_fail if failed else story.tests_pass)(*tested)
        yield story.queue_text()
    story.tests_fail(3)
    yield story.queue_text()
    assert story.states(1, 2, 3, 4) == ("merged", "merged", "failed", "merged")


def four_in_three_lanes() -> Iterator[str]:
    story = Story(mode=Mode.PARALLEL)
    for number, targets in ((1, ("fe",)), (2, ("be",)), (3, ("fe", "be")), (4, ("docs",))):
        story.impacts(number, *targets)
    story.submit(1, 2, 3, 4)
    yield story.queue_text()
    story.tests_fail(1)
    yield story.queue_text()


def pending_failure_depth_of_two() -> Iterator[str]:
    story = Story(can_optimistically_merge=True, pending_failure_depth=2)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1)
    yield story.queue_text()
    story.tests_fail(2)
    yield story.queue_text()
    story.tests_pass(3)
    yield story.queue_text()
    assert story.landings() == ((1, 2, 3),)


STORIES = (
    results_in_any_order,
    first_fails,
    second_fails,
    base_is_broken,
    batch_is_bisected,
    four_in_three_lanes,
    pending_failure_depth_of_two,
)


def test_every_diagram_is_what_the_queue_draws():
    assert diagrams() == [list(story()) for story in STORIES]


BATCHING = (Path(__file__).parents[2] / "docs" / "admins" / "batching-and-lanes.md").read_text()
COST_TABLE = [tuple(row.split(" | ")) for row in re.findall(r"^\| (\d+% \| .+) \|$", BATCHING, re.MULTILINE)]


def test_table_has_every_pass_rate_and_every_batch_size():
    assert [row[0] for row in COST_TABLE] == [f"{rate}%" for rate in PASS_RATES_PERCENT]
    assert {len(row) for row in COST_TABLE} == {1 + len(SIZES)}


@pytest.mark.parametrize(("size", "cell"), list(zip(SIZES, COST_TABLE[0][1:], strict=True))[2:])
def test_page_has_the_cost_of_batches_where_all_pass(size: int, cell: str):
    measured = cost(size, bad=set())
    assert f"{measured.runs / batching_figures.PULL_REQUESTS:.2f}, {measured.rounds}" == cell


@pytest.mark.long
def test_page_has_the_cost_of_batches_at_every_pass_rate():
    assert batching_figures.rows() == COST_TABLE
