"""What must hold of the numbers on any machine, however fast it is."""

from collections.abc import Iterator, Mapping

DEARER_AT_MOST = 4
FASTER_AT_LEAST = 100

AT_LEAST = {
    "submit_64_queues_over_naive": (5.0, "as many submissions to 64 queues as one transaction for each would take"),
    "submit_one_queue_over_naive": (5.0, "as many submissions to one queue as one transaction for each would take"),
    "read_over_echo": (0.5, "as many pull requests read as a bare Starlette application can echo"),
}
AT_MOST = {
    "branch_over_plain_git": (1.3, "the time of plain git to build a test branch"),
    "branch_100k_over_20k": (1.5, "the time that it takes among 20,000 files to build a test branch among 100,000"),
    "read_p99_during_upload_over_calm": (3.0, "the time of a quiet hour until 99 of 100 are read beside an upload"),
}
ABSOLUTELY = {
    "bytes_per_waiting_pull": (3072.0, "bytes for one more that waits"),
    "queue_page_server_ms": (50.0, "milliseconds of the server for the page of a queue of a thousand"),
}
"""What no machine changes, or what every machine is fast enough for."""


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
        if name in AT_LEAST and number < AT_LEAST[name][0]:
            least, words = AT_LEAST[name]
            yield f"It was {number:.2f} times {words}; at least {least:g} times was promised."
        if name in AT_MOST and number > AT_MOST[name][0]:
            most, words = AT_MOST[name]
            yield f"It took {number:.2f} times {words}; at most {most:g} times was promised."
        if name in ABSOLUTELY and number > ABSOLUTELY[name][0]:
            most, words = ABSOLUTELY[name]
            yield f"It took {number:,.0f} {words}; at most {most:,.0f} were promised."
