"""Every planted bug is detected: by a story, or by a law in one of the first worlds."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator

import pytest

import tests.story
from tests.model.campaign import play
from tests.model.planted import BUGS, Planted, planted

QUICK_WORLDS = 12
WORLDS = 150


def stories() -> Iterator[Callable[[], None]]:
    for module in pkgutil.iter_modules(tests.story.__path__, "tests.story."):
        for name, story in inspect.getmembers(importlib.import_module(module.name), inspect.isfunction):
            if name.startswith("test_") and not inspect.signature(story).parameters:
                yield story


def detect() -> str | None:
    """A few worlds first, which detect most bugs quickly, then all stories, then more worlds."""
    return detect_in_worlds(range(QUICK_WORLDS)) or detect_in_stories() or detect_in_worlds(range(QUICK_WORLDS, WORLDS))


def detect_in_worlds(seeds: range) -> str | None:
    broken = ((seed, play(seed).broken) for seed in seeds)
    return next((f"world {seed}: {law}" for seed, law in broken if law is not None), None)


def detect_in_stories() -> str | None:
    for story in STORIES:
        try:
            story()
        except Exception:
            return story.__name__
    return None


STORIES = tuple(stories())


SLOW = {
    "a speculative run counts before its assumption holds",
    "cancel forgets batchmates",
    "excluded pull requests not recorded",
    "tested without those ahead",
}
"""Detected by a world, but neither by one of the first nor by a story."""
QUICK = [bug for bug in BUGS if bug.bug not in SLOW][::6]
LONG = [pytest.param(bug, marks=pytest.mark.long) for bug in BUGS if bug not in QUICK]


@pytest.mark.parametrize("bug", [*QUICK, *LONG], ids=lambda bug: bug.bug)
def test_planted_bug_is_detected(bug: Planted, record_property: Callable[[str, str], None]):
    with planted(bug):
        detected_by = detect()
    assert detected_by is not None, f"not detected: {bug.bug}"
    record_property("detected_by", detected_by)


@pytest.mark.long
def test_without_a_planted_bug_no_test_fails():
    assert detect() is None
