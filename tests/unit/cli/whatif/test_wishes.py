"""Wishes on the command line: settings by any of their names, each with a value that it can have."""

from typing import Any

import pytest
import typer

from mergeyard.cli.whatif.wishes import read_wish
from mergeyard.sim.replaying.replayable import REPLAYABLE


@pytest.mark.parametrize(
    ("typed", "wish"),
    [
        ("concurrency=20", ("concurrency", 20)),
        ("batch=true", ("batch", True)),
        ("batch=off", ("batch", False)),
        ("batchingMinSize=8", ("batching_min_size", 8)),
        ("batching_min_size=8", ("batching_min_size", 8)),
        ("batching-min-size=8", ("batching_min_size", 8)),
        ("canOptimisticallyMerge=yes", ("can_optimistically_merge", True)),
        ("mode=PARALLEL", ("mode", "parallel")),
        ("speculation=best_first", ("speculation", "best_first")),
    ],
)
def test_a_wish_is_read(typed: str, wish: tuple[str, Any]):
    assert read_wish(typed) == wish


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("colour=red", "colour is no setting that can be replayed. These are: mode, concurrency"),
        ("mergeMethod=squash", "mergeMethod is no setting that can be replayed"),
        ("concurrency", " is no whole number from 1 to 1000"),
        ("concurrency=0", "0 is no whole number from 1 to 1000"),
        ("batch=maybe", "maybe is neither on nor off"),
        ("mode=sideways", "sideways is none of single, parallel"),
    ],
)
def test_what_cannot_be_wished_for_is_told(typed: str, words: str):
    with pytest.raises(typer.BadParameter, match=words):
        read_wish(typed)


def test_every_setting_that_can_be_replayed_can_be_wished_for():
    values = {"mode": "single", "optimization_mode": "off", "speculation": "chain"}
    for name in REPLAYABLE:
        switch = name in ("batch", "can_optimistically_merge")
        assert read_wish(f"{name}={values.get(name, 'on' if switch else '3')}")[0] == name
