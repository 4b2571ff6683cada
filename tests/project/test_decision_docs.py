"""The diagrams and numbers on the pages about decisions, batching, priorities and what-if are those of the code."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeyard.cli.whatif import METRIC_ROWS
from mergeyard.domain.config import DEFAULT_PRIORITY, LOWEST_PRIORITY, MIN_AGED_PRIORITY, PRIORITIES, Config, Mode
from mergeyard.engine.batching import POINTS_PER_HOUR
from mergeyard.engine.preemption import MAX_PREEMPTIONS
from mergeyard.simulation.history import REPLAYABLE_SETTINGS
from tests.project import batching_figures
from tests.project.batching_figures import PASS_RATES_PERCENT, SIZES, cost
from tests.support.story import Story

DOCS = Path(__file__).parents[2] / "docs"
HOW_IT_DECIDES = (DOCS / "understand" / "how-it-decides.md").read_text()


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


BATCHING = (DOCS / "admins" / "batching-and-lanes.md").read_text()
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


# Priorities and what-if

NUMBERS = {3: "three", 10: "ten"}


def test_page_has_the_priorities_and_how_they_age():
    page = (DOCS / "admins" / "priorities.md").read_text()
    assert {
        name: int(number) for name, number in re.findall(r"^\| `(\w+)` \| (\d+) \|", page, re.MULTILINE)
    } == PRIORITIES
    assert re.findall(r"^\| `\w+` \| (\d+) \|.*default", page, re.MULTILINE) == [str(DEFAULT_PRIORITY)]
    assert f"Any number from 0 (first) to {LOWEST_PRIORITY} (last)" in page
    assert f"makes the number smaller by {POINTS_PER_HOUR}, down to {MIN_AGED_PRIORITY}." in page
    hours = (PRIORITIES["low"] - PRIORITIES["medium"]) // POINTS_PER_HOUR
    assert f"after {NUMBERS[hours]} hours a `low` pull request" in page
    assert f"interrupted {NUMBERS[MAX_PREEMPTIONS]} times already" in page


def test_page_lists_the_settings_that_can_be_replayed():
    section = (
        (DOCS / "admins" / "whatif.md").read_text().partition("## Settings you can propose\n")[2].partition(". ")[0]
    )
    named = [re.sub(r"([A-Z])", r"_\1", name).lower() for name in re.findall(r"`(\w+)`", section)]
    assert sorted(named) == sorted(REPLAYABLE_SETTINGS)


def test_sample_output_of_whatif_has_the_lines_that_the_command_prints():
    page = (DOCS / "admins" / "whatif.md").read_text()
    (sample,) = re.findall(r"^```\n(\d.*?)^```$", page, re.MULTILINE | re.DOTALL)
    heading, *lines = sample.splitlines()
    assert re.fullmatch(r"\d+ pull requests since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", heading)
    cells = [re.split(r" {2,}", line.strip()) for line in lines]
    assert ["ACTUAL", "REPLAYED UNCHANGED", "WITH THE CHANGE", "DIFFERENCE"] in cells
    assert [row[0] for row in cells if len(row) == 5] == list(METRIC_ROWS)
    assert lines[-1].startswith("Confidence: ")


@pytest.mark.parametrize("page", sorted((DOCS / "admins").glob("*.md")), ids=lambda page: page.stem)
def test_settings_named_by_a_page_exist(page: Path):
    """Every word in camel case is a setting of a queue, or one of the other names that the API and CI systems have."""
    words = re.findall(r"`([a-z]+(?:[A-Z][a-z]+)+)`", page.read_text())
    settings = {re.sub(r"_(\w)", lambda found: found[1].upper(), name) for name in Config.__struct_fields__}
    others = {"setImpactedTargets", "getQueue", "requiredStatusesSource", "cancelDeletedBranchBuilds", "rebaseWhen"}
    assert set(words) <= settings | others
