"""The rounds of a comparison: each policy with each seed, in this process or in others."""

import pytest

from benchmarks.policy_race import rounds
from benchmarks.policy_race.rounds import Round, list_rounds, run_round, run_rounds
from benchmarks.policy_race.workload import Workload

pytestmark = pytest.mark.long

SMALL = Workload(rate=10, hours=1)


def test_there_is_a_round_for_every_policy_and_seed_last_policy_first():
    raced = [(each.policy, each.seed) for each in list_rounds(SMALL, range(1, 3), ["oracle", "serial"])]
    assert raced == [("serial", 1), ("serial", 2), ("oracle", 1), ("oracle", 2)]


def test_other_processes_compute_the_same_metrics():
    large = Workload(rate=rounds.MIN_CHANGES_FOR_PROCESSES, hours=0.5, parts=3000)
    planned = list_rounds(large, [1, 2], ["oracle"])
    found = {result.round.seed: result.metrics for result in run_rounds(planned)}
    assert found == {each.seed: run_round(each).metrics for each in planned}


@pytest.mark.parametrize("policy", ["oracle", "serial"])
def test_a_workload_without_changes_can_be_raced(policy: str):
    assert run_round(Round(Workload(rate=0.1, hours=0.1), 1, policy)).metrics.changes == 0
