"""Counts what batches cost and save, by the engine itself: the figures of `docs/batching-and-lanes.md`."""

from itertools import count
from random import Random

from msgspec import Struct

from mergeyard.domain.states import CheckState
from tests.support.story import Story

PULL_REQUESTS = 48
SIZES = (1, 2, 4, 8, 16)
GOOD_OF_A_HUNDRED = (100, 99, 95, 90, 80)
WORLDS = range(20)


class Cost(Struct, frozen=True):
    runs: int
    """How many tests were begun."""
    rounds: int
    """How often everybody waited for a test: each takes equally long."""


def rows() -> list[tuple[str, ...]]:
    """Runs for each pull request that merged, and rounds until all were done; per rate of good ones, by size."""
    return [(f"{rate}%", *(_cell(rate, size) for size in SIZES)) for rate in GOOD_OF_A_HUNDRED]


def _cell(rate: int, size: int) -> str:
    worlds = [_bad_ones(rate, seed) for seed in (WORLDS if rate < 100 else range(1))]
    costs = [cost(size, bad) for bad in worlds]
    merged = sum(PULL_REQUESTS - len(bad) for bad in worlds)
    return f"{sum(cost.runs for cost in costs) / merged:.2f}, {sum(cost.rounds for cost in costs) / len(costs):.0f}"


def _bad_ones(rate: int, seed: int) -> set[int]:
    chance = Random(seed)
    return {number for number in range(1, PULL_REQUESTS + 1) if chance.randrange(100) >= rate}


def cost(size: int, bad: set[int]) -> Cost:
    """All are submitted at once; tests never flake, and a test is red when a bad one is in it."""
    story = Story(batch=size, batching_max_wait_time_minutes=0)
    story.submit(*range(1, PULL_REQUESTS + 1))
    begun = set[str]()
    for rounds in count():
        runs = story.world.runs_in_progress()
        if not runs:
            assert set(story.merged()) == set(range(1, PULL_REQUESTS + 1)) - bad
            return Cost(len(begun), rounds)
        begun |= {run.id for run in runs}
        for run in runs:
            red = any(member.number in bad for member in run.stack)
            story.late_result(run, CheckState.FAILED if red else CheckState.PASSED)
    raise AssertionError("counting never ends")


if __name__ == "__main__":
    for row in rows():
        print(f"| {' | '.join(row)} |")
