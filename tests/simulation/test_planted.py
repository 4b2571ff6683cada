"""Every planted bug of the service breaks a promise in one of the first worlds."""

import pytest

from tests.simulation.campaign import play_script
from tests.simulation.generator import draw
from tests.simulation.planted import BUGS, Planted, planted

WORLDS = 400
QUICK = [bug for bug in BUGS if bug.story]
LONG = [pytest.param(bug, marks=pytest.mark.long) for bug in BUGS if bug not in QUICK]


@pytest.mark.parametrize("bug", [*QUICK, *LONG], ids=lambda bug: bug.bug)
def test_planted_bug_is_detected(bug: Planted):
    scripts = (draw(seed) for seed in range(WORLDS)) if bug.story is None else (bug.story,)
    with planted(bug):
        assert any(play_script(script).broken for script in scripts), f"not detected: {bug.bug}"


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.story], ids=lambda bug: bug.bug)
def test_script_of_a_bug_keeps_every_promise_without_the_bug(bug: Planted):
    assert bug.story
    assert play_script(bug.story).broken == ()
