"""Every planted bug is noticed: by a story, or by a law in one of the first worlds."""

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


def who_notices() -> str | None:
    """A few worlds first, which kill the grossest at once, then all stories, then more worlds."""
    return a_world(range(QUICK_WORLDS)) or a_story() or a_world(range(QUICK_WORLDS, WORLDS))


def a_world(seeds: range) -> str | None:
    broken = ((seed, play(seed).broken) for seed in seeds)
    return next((f"world {seed}: {law}" for seed, law in broken if law is not None), None)


def a_story() -> str | None:
    for story in STORIES:
        try:
            story()
        except Exception:
            return story.__name__
    return None


STORIES = tuple(stories())


DEAR = {"cancel forgets batchmates", "others left out in silence", "tested without those ahead"}
"""Noticed by a world, but not by one of the first, nor by a story."""
EVERY_DAY = [bug for bug in BUGS if bug.bug not in DEAR][::4]
SELDOM = [pytest.param(bug, marks=pytest.mark.long) for bug in BUGS if bug not in EVERY_DAY]


@pytest.mark.parametrize("bug", [*EVERY_DAY, *SELDOM], ids=lambda bug: bug.bug)
def test_a_planted_bug_is_noticed(bug: Planted, record_property: Callable[[str, str], None]):
    with planted(bug):
        killer = who_notices()
    assert killer is not None, f"nobody notices: {bug.bug}"
    record_property("killed_by", killer)


@pytest.mark.long
def test_without_a_planted_bug_nobody_complains():
    assert who_notices() is None
