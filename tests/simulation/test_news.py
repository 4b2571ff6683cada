"""What a forge tells reaches whoever works for the repository, whichever replica it was told to."""

import pytest

from mergeyard.api.times import written
from mergeyard.domain.config import Config
from mergeyard.domain.instants import SECOND, later
from tests.simulation.campaign import without_noise
from tests.simulation.script import Push, Script, Submit
from tests.simulation.timing import START
from tests.simulation.world import World

PUSHED = 25 * SECOND
"""Long after one look of the watch at its forge, and long before the next."""
SOON = 5 * SECOND


@pytest.mark.parametrize("seed", range(6))
def test_a_push_is_noticed_in_seconds_whichever_replica_the_forge_tells_of_it(seed: int):
    acts = (Submit(at=1000, pr=1), Push(at=PUSHED, pr=1))
    world = World(Script(seed=seed, config=Config(batch=True), replicas=3, has_forge=True, acts=acts))
    with without_noise():
        world.play()
        told = world.api.post("getSubmittedPullRequest", pr={"number": 1})
    world.close()
    assert told["reason"]["code"] == "pr_pushed"
    assert told["stateChangedAt"] < written(later(START, PUSHED + SOON))
