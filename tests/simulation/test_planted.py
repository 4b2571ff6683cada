"""Every planted bug of the service is noticed by a promise, in one of the first worlds."""

import pytest

from tests.simulation.campaign import played
from tests.simulation.drawing import draw
from tests.simulation.planted import BUGS, Planted, planted

WORLDS = 400
EVERY_DAY = [bug for bug in BUGS if bug.story]
SELDOM = [pytest.param(bug, marks=pytest.mark.long) for bug in BUGS if bug not in EVERY_DAY]


@pytest.mark.parametrize("bug", [*EVERY_DAY, *SELDOM], ids=lambda bug: bug.bug)
def test_a_planted_bug_is_noticed(bug: Planted):
    scripts = (draw(seed) for seed in range(WORLDS)) if bug.story is None else (bug.story,)
    with planted(bug):
        assert any(played(script).broken for script in scripts), f"nobody notices: {bug.bug}"


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.story], ids=lambda bug: bug.bug)
def test_without_the_bug_nothing_is_wrong_with_its_story(bug: Planted):
    assert bug.story
    assert played(bug.story).broken == ()
