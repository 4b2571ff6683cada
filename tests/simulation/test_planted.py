"""Every planted bug of the service breaks a promise in one of the first worlds, which keeps it without the bug."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.simulation.campaign import play_script
from tests.simulation.generator import draw
from tests.simulation.planted import BUGS, Planted, planted
from tests.simulation.script import Script

WORLDS = 400
SEEDS_PER_STORY = 40
"""A story shows its bug only with some timings, and every change of the service changes the timing of a seed."""
QUICK = [bug for bug in BUGS if bug.story]
LONG = [pytest.param(bug, marks=pytest.mark.long) for bug in BUGS if bug not in QUICK]


def scripts_for(bug: Planted) -> Iterator[Script]:
    if bug.story is None:
        return (draw(seed) for seed in range(WORLDS))
    return (replace(bug.story, seed=seed) for seed in range(SEEDS_PER_STORY))


@pytest.mark.parametrize("bug", [*QUICK, *LONG], ids=lambda bug: bug.bug)
def test_planted_bug_is_detected(bug: Planted):
    with planted(bug):
        broken = next((script for script in scripts_for(bug) if play_script(script).broken), None)
    assert broken is not None, f"not detected: {bug.bug}"
    assert play_script(broken).broken == ()
