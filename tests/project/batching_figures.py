"""Measures the cost of batches with the engine itself: the figures of `docs/admins/batching-and-lanes.md`."""

from itertools import count
from random import Random

from msgspec import Struct

from mergeyard.domain.states import CheckState
from tests.support.story import Story

PULL_REQUESTS = 48
SIZES = (1, 2, 4, 8, 16)
PASS_RATES_PERCENT = (100, 99, 95, 90, 80)
SEEDS = range(20)


class Cost(Struct, frozen=True):
    runs: int
    """How many test runs were started."""
    rounds: int
    """How many times all pull requests waited for runs; all runs take equally long."""


def rows() -> list[tuple[str, ...]]:
    """Runs per merged pull request, and rounds until all were done; a row per pass rate, a column per batch size."""
    return [(f"{rate}%", *(_cell(rate, size) for size in SIZES)) for rate in PASS_RATES_PERCENT]


def _cell(rate: int, size: int) -> str:
    bad_sets = [_bad_numbers(rate, seed) for seed in (SEEDS if rate < 100 else range(1))]
    costs = [cost(size, bad) for bad in bad_sets]
    merged = sum(PULL_REQUESTS - len(bad) for bad in bad_sets)
    return f"{sum(cost.runs for cost in costs) / merged:.2f}, {sum(cost.rounds for cost in costs) / len(costs):.0f}"


def _bad_numbers(rate: int, seed: int) -> set[int]:
    rng = Random(seed)
    return {number for number in range(1, PULL_REQUESTS + 1) if rng.randrange(100) >= rate}


def cost(size: int, bad: set[int]) -> Cost:
    """All are submitted at once; runs never flake, and a run fails when it contains a bad pull request."""
    story = Story(batch=size, batching_max_wait_time_minutes=0)
    story.submit(*range(1, PULL_REQUESTS + 1))
    started = set[str]()
    for rounds in count():
        runs = story.world.runs_in_progress()
        if not runs:
            assert set(story.merged_prs()) == set(range(1, PULL_REQUESTS + 1)) - bad
            return Cost(len(started), rounds)
        started |= {run.id for run in runs}
        for run in runs:
            failed = any(member.number in bad for member in run.stack)
            story.late_result(run, CheckState.FAILED if failed else CheckState.PASSED)
    raise AssertionError("unreachable: the loop ends when no run is in progress")


if __name__ == "__main__":
    for row in rows():
        print(f"| {' | '.join(row)} |")
