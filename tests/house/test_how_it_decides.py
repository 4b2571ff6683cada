"""The boxes on the page about deciding are what the queue draws when their stories are played."""

import re
from collections.abc import Iterator
from pathlib import Path

from mergeyard.domain.config import Mode
from tests.support.story import Story

PAGE = (Path(__file__).parents[2] / "docs" / "how-it-decides.md").read_text()


def boxes() -> list[list[str]]:
    """What is drawn in each, line by line."""
    texts = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [[re.split(r" {2,}", line)[-1] for line in text.splitlines()] for text in texts]


def three() -> Story:
    story = Story(concurrency=3)
    story.submit(1, 2, 3)
    return story


def results_in_any_order() -> Iterator[str]:
    story = three()
    yield story.picture()
    story.tests_pass(2)
    yield story.picture()
    story.tests_pass(1)
    yield story.picture()
    assert story.landings() == ((1, 2),)


def the_first_is_red() -> Iterator[str]:
    story = three()
    yield story.picture()
    story.tests_fail(1)
    yield story.picture()
    assert story.state(1) == "failed"


def the_second_is_red() -> Iterator[str]:
    story = three()
    yield story.picture()
    story.tests_fail(2)
    yield story.picture()
    story.tests_pass(1)
    yield story.picture()
    assert story.states(1, 2) == ("merged", "failed")


def the_base_is_broken() -> Iterator[str]:
    story = Story.on_an_unseen_base()
    story.submit(1)
    story.tests_fail(1)
    yield story.picture()
    story.tests_fail()
    yield story.picture()
    story.submit(2)
    yield story.picture()
    story.tests_pass(2)
    yield story.picture()
    assert story.merged() == (2,)


def a_batch_is_searched() -> Iterator[str]:
    story = Story(batch=4, bisection_concurrency=2)
    story.submit(1, 2, 3, 4)
    yield story.picture()
    for red, tested in ((True, (1, 2, 3, 4)), (True, (1, 2, 3)), (False, (1, 2)), (False, (4,)), (False, (1, 2))):
        (story.tests_fail if red else story.tests_pass)(*tested)
        yield story.picture()
    story.tests_fail(3)
    yield story.picture()
    assert story.states(1, 2, 3, 4) == ("merged", "merged", "failed", "merged")


def four_in_lanes() -> Iterator[str]:
    story = Story(mode=Mode.PARALLEL)
    for number, targets in ((1, ("fe",)), (2, ("be",)), (3, ("fe", "be")), (4, ("docs",))):
        story.impacts(number, *targets)
    story.submit(1, 2, 3, 4)
    yield story.picture()
    story.tests_fail(1)
    yield story.picture()


def two_deep() -> Iterator[str]:
    story = Story(can_optimistically_merge=True, pending_failure_depth=2)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1)
    yield story.picture()
    story.tests_fail(2)
    yield story.picture()
    story.tests_pass(3)
    yield story.picture()
    assert story.landings() == ((1, 2, 3),)


STORIES = (
    results_in_any_order,
    the_first_is_red,
    the_second_is_red,
    the_base_is_broken,
    a_batch_is_searched,
    four_in_lanes,
    two_deep,
)


def test_every_box_is_what_the_queue_draws():
    assert boxes() == [list(story()) for story in STORIES]
