"""What must hold of the numbers on any machine, however fast it is."""

from collections.abc import Iterator, Mapping

DEARER_AT_MOST = 4
FASTER_AT_LEAST = 100


def broken_promises(numbers: Mapping[str, float]) -> Iterator[str]:
    for name, number in numbers.items():
        if name.startswith("turn_ratio_") and number > DEARER_AT_MOST:
            mode, most, _, least = name.removeprefix("turn_ratio_").split("_")
            yield (
                f"In {mode} mode a turn among {int(most):,} waiting pull requests costs {number:.1f} times "
                f"what it costs among {int(least):,}; at most {DEARER_AT_MOST} times was promised."
            )
        if name.startswith("lane_placement_speedup_") and number < FASTER_AT_LEAST:
            targets = name.removeprefix("lane_placement_speedup_").removesuffix("_targets")
            yield (
                f"Placing a pull request of {int(targets):,} targets by the index is {number:.0f} times as fast as "
                f"asking every other one; at least {FASTER_AT_LEAST} times was promised."
            )
