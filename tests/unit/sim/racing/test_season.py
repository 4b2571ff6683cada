"""All races of a comparison: each policy on each seed, in this process or in others with the same result."""

import pytest

from mergeyard.sim.racing import season
from mergeyard.sim.racing.season import Heat, heats, hold, run
from mergeyard.sim.racing.workload import Workload

SMALL = Workload(rate=10, hours=1)


def test_every_policy_races_on_every_seed_and_the_last_of_the_list_first():
    raced = [(heat.policy, heat.seed) for heat in heats(SMALL, range(1, 3), ["oracle", "serial"])]
    assert raced == [("serial", 1), ("serial", 2), ("oracle", 1), ("oracle", 2)]


def test_other_processes_find_the_same():
    large = Workload(rate=season.WORTH_PROCESSES, hours=0.5, parts=3000)
    coming = heats(large, [1, 2], ["oracle"])
    found = {finish.heat.seed: finish.figures for finish in hold(coming)}
    assert found == {heat.seed: run(heat).figures for heat in coming}


@pytest.mark.parametrize("policy", ["oracle", "serial"])
def test_a_day_on_which_nothing_comes_is_over_at_once(policy: str):
    assert run(Heat(Workload(rate=0.1, hours=0.1), 1, policy)).figures.changes == 0
