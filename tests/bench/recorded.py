"""The ratios as they were measured last, for whoever wants to know whether something became slower."""

from collections.abc import Iterator, Mapping

from tests.bench.promises import AT_LEAST

RECORDED = {
    "submit_64_queues_over_naive": 4.7,
    "submit_one_queue_over_naive": 5.7,
    "read_over_echo": 0.55,
    "branch_over_plain_git": 1.3,
}
"""On two shared cores; write down what `make bench` shows when it became faster."""
A_THIRD = 1 / 3


def fallen(numbers: Mapping[str, float], recorded: Mapping[str, float] = RECORDED) -> Iterator[str]:
    """Those that are worse by more than a third: fewer where more is better, else as much dearer."""
    for name, then in recorded.items():
        now = numbers[name]
        worst = then * (1 - A_THIRD) if name in AT_LEAST else then / (1 - A_THIRD)
        if now < worst if name in AT_LEAST else now > worst:
            yield f"{name} is {now:.2f}, and was {then:.2f} when it was recorded: find out what made it slower."
