"""Tables of the measured figures: the engine in microseconds, and the server next to what it is compared with."""

from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table

from mergeyard.domain.config import Mode
from tests.bench.busy_queue import CONCURRENCY, KINDS
from tests.bench.limits import MAX_DECISION_RATIO, MAX_RATIOS, MIN_PLACEMENT_SPEEDUP, MIN_RATIOS
from tests.bench.placement import ACTIVE_BATCHES


def engine_table(numbers: Mapping[str, float], sizes: Sequence[int], targets_each: Sequence[int]) -> Table:
    table = Table(title="Microseconds", show_header=False, expand=True)
    table.add_column()
    for _ in range(5):
        table.add_column(justify="right")
    for mode in Mode:
        _add_decisions(table, numbers, mode, sizes)
    _add_placement(table, numbers, targets_each)
    return table


def _add_decisions(table: Table, numbers: Mapping[str, float], mode: Mode, sizes: Sequence[int]) -> None:
    most, least = max(sizes), min(sizes)
    title = f"{mode.capitalize()} mode, {CONCURRENCY} runs in progress; waiting:"
    table.add_row(title, *_counts(sizes), f"{most:,} ÷ {least:,}", style="bold")
    for kind in ("decision", *KINDS, "pending_tasks"):
        times = [numbers.get(f"{kind}_us_{mode}_{waiting}_waiting") for waiting in sizes]
        slowest, fastest = times[sizes.index(most)], times[sizes.index(least)]
        if slowest is not None and fastest is not None:
            limit = f" (≤ {MAX_DECISION_RATIO})" if kind == "decision" else ""
            table.add_row(
                _TITLES.get(kind, kind.replace("_", " ")), *map(_time, times), f"{slowest / fastest:.2f}{limit}"
            )
    table.add_section()


def _add_placement(table: Table, numbers: Mapping[str, float], targets_each: Sequence[int]) -> None:
    table.add_row(f"One more after {ACTIVE_BATCHES:,} batches; targets each:", *_counts(targets_each), style="bold")
    for name, title in _PLACEMENT_TITLES.items():
        table.add_row(title, *(_time(numbers[f"{name}_us_{targets}_targets"]) for targets in targets_each))
    speedups = (f"{numbers[f'lane_placement_speedup_{targets}_targets']:,.0f}×" for targets in targets_each)
    table.add_row("times as fast", *speedups, "", f"(≥ {MIN_PLACEMENT_SPEEDUP}×)")


_TITLES = {"decision": "mean decision", "pending_tasks": "(deriving the tasks, in addition)"}
_PLACEMENT_TITLES = {
    "lane_query": "found in the index",
    "lane_placement": "found and claimed in the index",
    "naive_placement": "every pair compared",
}


def _counts(counts: Iterable[int]) -> list[str]:
    return [f"{count:,}" for count in counts]


def _time(microseconds: float | None) -> str:
    return "" if microseconds is None else f"{microseconds:,.0f}"


def service_table(numbers: Mapping[str, float]) -> Table:
    table = Table("", "", "compared with", "", "ratio", title="Server and git", expand=True, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for title, figure, reference, reference_figure, ratio in COMPARISONS:
        if ratio not in numbers:
            continue
        ratio_cell = f"{numbers[ratio]:.2f} {_limit(ratio)}"
        table.add_row(title, _number(numbers[figure]), reference, _number(numbers[reference_figure]), ratio_cell)
    table.add_section()
    for title, name in FIGURES.items():
        if name in numbers:
            table.add_row(title, _number(numbers[name]))
    return table


COMPARISONS = (
    (
        "submissions per second, 64 queues",
        "submit_per_second_64_queues",
        "a naive endpoint",
        "naive_submit_per_second_64_queues",
        "submit_64_queues_over_naive",
    ),
    (
        "",
        "submit_per_second_64_queues",
        "one that reads no repository",
        "blind_submit_per_second_64_queues",
        "submit_64_queues_over_blind",
    ),
    (
        "submissions per second, one queue",
        "submit_per_second_one_queue",
        "a naive endpoint",
        "naive_submit_per_second_one_queue",
        "submit_one_queue_over_naive",
    ),
    (
        "",
        "submit_per_second_one_queue",
        "one that reads no repository",
        "blind_submit_per_second_one_queue",
        "submit_one_queue_over_blind",
    ),
    (
        "pull requests read per second",
        "read_per_second",
        "Starlette's echo",
        "echo_per_second",
        "read_over_echo",
    ),
    (
        "",
        "read_per_second",
        "uvicorn alone",
        "plain_uvicorn_per_second",
        "read_over_uvicorn",
    ),
    (
        "reads during an upload of 18 MB, 99th percentile: ms",
        "read_p99_ms_during_upload",
        "without upload",
        "read_p99_ms",
        "read_p99_during_upload_over_quiet",
    ),
    (
        "an event decided, stored and returned: ms",
        "decided_and_durable_ms",
        "a naive endpoint",
        "naive_durable_ms",
        "decided_and_durable_over_naive",
    ),
    (
        "test branch of the tenth pull request, 20,000 files: ms",
        "branch_ms_20k",
        "plain git",
        "plain_git_ms_20k",
        "branch_over_plain_git",
    ),
    (
        "the same, 100,000 files: ms",
        "branch_ms_100k",
        "20,000 files",
        "branch_ms_20k",
        "branch_100k_over_20k",
    ),
    (
        "start with 100,000 journal entries: ms",
        "start_ms_long_journal",
        "with one entry",
        "start_ms",
        "start_long_journal_over_short",
    ),
    (
        "creating the last of many queues: ms",
        "create_last_queue_ms",
        "the tenth",
        "create_tenth_queue_ms",
        "create_last_over_tenth",
    ),
)
FIGURES = {
    "bytes per waiting pull request (≤ 3,072)": "bytes_per_waiting_pr",
    "  with twenty impacted targets": "bytes_per_waiting_pr_with_20_targets",
    "page of a queue of a thousand, CPU time of the server: ms (≤ 50)": "queue_page_server_ms",
    "queues in which nothing happens": "idle_queues",
    "  processor time, git included: per cent (≤ 3)": "idle_cpu_percent",
    "  memory: MiB (≤ 150)": "idle_mib",
    "fifty stacked runs, 20,000 files: ms": "stack_of_50_ms",
    "  one of them ÷ plain git": "stack_of_50_over_plain_git",
    "  the last ten ÷ the first ten": "stack_last_ten_over_first_ten",
    "submissions per second on PostgreSQL, one replica": "submit_postgres_per_second_1_replicas",
    "  two replicas ÷ one": "submit_postgres_2_replicas_over_one",
    "  four replicas ÷ one": "submit_postgres_4_replicas_over_one",
    "eight writers to one queue on four replicas, per second": "submit_postgres_per_second_8_writers_one_queue",
    "  version conflicts per decision": "conflicts_per_decision_8_writers_one_queue",
    "from the kill of a replica until others hold its leases: s": "takeover_seconds",
    "test branch of the tenth pull request, 20,000 files, pushed: ms": "branch_pushed_ms_20k",
    "from the last status to merged: ms": "status_to_merged_ms",
    "  status saved": "status_saved_ms",
    "  pull request read": "status_prs_read_ms",
    "  landed: target branch read, pushed, read again": "status_landing_ms",
    "  one decision, on average": "status_decision_ms",
}


def _limit(ratio: str) -> str:
    if ratio in MIN_RATIOS:
        return f"(≥ {MIN_RATIOS[ratio][0]:g})"
    return f"(≤ {MAX_RATIOS[ratio][0]:g})" if ratio in MAX_RATIOS else ""


def _number(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"
