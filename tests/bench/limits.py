"""The limits of the measured figures: ratios that must hold on any machine, and the ratios that were recorded last."""

from collections.abc import Iterator, Mapping

MAX_DECISION_RATIO = 4
MIN_PLACEMENT_SPEEDUP = 100

MIN_RATIOS = {
    "submit_64_queues_over_naive": (
        4.0,
        "as many submissions to 64 queues as with one transaction for each",
    ),
    "submit_one_queue_over_naive": (
        4.0,
        "as many submissions to one queue as with one transaction for each",
    ),
    "read_over_echo": (0.4, "as many pull requests read as a bare Starlette application echoes"),
}
MAX_RATIOS = {
    "branch_over_plain_git": (1.3, "the time of plain git for building a test branch"),
    "branch_100k_over_20k": (1.5, "the time of 20,000 files for building a test branch of 100,000 files"),
    "create_last_over_tenth": (1.5, "the time of the tenth queue for creating the last one"),
    "read_p99_during_upload_over_quiet": (5.0, "the 99th percentile of reads without an upload during an upload"),
}
MAX_FIGURES = {
    "bytes_per_waiting_pr": (3072.0, "bytes for one more waiting pull request"),
    "idle_cpu_percent": (3.0, "per cent of a processor for queues in which nothing happens, git included"),
    "idle_mib": (150.0, "MiB for queues in which nothing happens"),
    "queue_page_server_ms": (50.0, "milliseconds of the server for the page of a queue of a thousand pull requests"),
}
"""Figures that do not depend on the machine, or that every machine reaches."""


def exceeded_limits(numbers: Mapping[str, float]) -> Iterator[str]:
    for name, number in numbers.items():
        if name.startswith("decision_ratio_") and number > MAX_DECISION_RATIO:
            mode, most, _, least = name.removeprefix("decision_ratio_").split("_")
            yield (
                f"In {mode} mode a decision among {int(most):,} waiting pull requests costs {number:.1f} times "
                f"what it costs among {int(least):,}; the limit is {MAX_DECISION_RATIO} times."
            )
        if name.startswith("lane_placement_speedup_") and number < MIN_PLACEMENT_SPEEDUP:
            targets = name.removeprefix("lane_placement_speedup_").removesuffix("_targets")
            yield (
                f"Placing a pull request of {int(targets):,} targets by the index is {number:.0f} times as fast as "
                f"comparing it with every batch; the limit is {MIN_PLACEMENT_SPEEDUP} times."
            )
        if name in MIN_RATIOS and number < MIN_RATIOS[name][0]:
            least, description = MIN_RATIOS[name]
            yield f"{number:.2f} times {description}; the minimum is {least:g} times."
        if name in MAX_RATIOS and number > MAX_RATIOS[name][0]:
            most, description = MAX_RATIOS[name]
            yield f"{number:.2f} times {description}; the maximum is {most:g} times."
    yield from exceeded_figures(numbers)


def exceeded_figures(numbers: Mapping[str, float]) -> Iterator[str]:
    for name, number in numbers.items():
        if name in MAX_FIGURES and number > MAX_FIGURES[name][0]:
            most, description = MAX_FIGURES[name]
            yield f"{number:,.0f} {description}; the maximum is {most:,.0f}."


RECORDED = {
    "submit_64_queues_over_naive": 4.7,
    "submit_one_queue_over_naive": 5.7,
    "read_over_echo": 0.55,
    "branch_over_plain_git": 1.3,
    "create_last_over_tenth": 1.0,
}
"""Measured on two shared cores. Record the figures of `make bench` here when something became faster."""
MAX_LOSS = 1 / 3


def fallen_ratios(numbers: Mapping[str, float], recorded: Mapping[str, float] = RECORDED) -> Iterator[str]:
    """Describes the ratios that are more than a third worse than recorded: less where more is better, else more."""
    for name, before in recorded.items():
        now = numbers[name]
        worst = before * (1 - MAX_LOSS) if name in MIN_RATIOS else before / (1 - MAX_LOSS)
        if now < worst if name in MIN_RATIOS else now > worst:
            yield f"{name} is {now:.2f}, but was recorded as {before:.2f}: find out what made it slower."
