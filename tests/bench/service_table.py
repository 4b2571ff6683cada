"""Draws what the server and the test branches cost, each beside what it is measured against."""

from collections.abc import Mapping

from rich.table import Table

from tests.bench.promises import AT_LEAST, AT_MOST


def drawn(numbers: Mapping[str, float]) -> Table:
    table = Table("", "", "against", "", "ratio", title="The server, and git", expand=True, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for title, ours, against, theirs, ratio in COMPARED:
        if ratio not in numbers:
            continue
        shown = f"{numbers[ratio]:.2f} {_limit(ratio)}"
        table.add_row(title, _number(numbers[ours]), against, _number(numbers[theirs]), shown)
    table.add_section()
    for title, name in SHOWN.items():
        if name in numbers:
            table.add_row(title, _number(numbers[name]))
    return table


COMPARED = (
    (
        "submissions per second, 64 queues",
        "submit_per_second_64_queues",
        "a naive endpoint",
        "submit_naively_per_second_64_queues",
        "submit_64_queues_over_naive",
    ),
    (
        "",
        "submit_per_second_64_queues",
        "one that reads no repository",
        "submit_blindly_per_second_64_queues",
        "submit_64_queues_over_blind",
    ),
    (
        "submissions per second, one queue",
        "submit_per_second_one_queue",
        "a naive endpoint",
        "submit_naively_per_second_one_queue",
        "submit_one_queue_over_naive",
    ),
    (
        "",
        "submit_per_second_one_queue",
        "one that reads no repository",
        "submit_blindly_per_second_one_queue",
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
        "bare_per_second",
        "read_over_uvicorn",
    ),
    (
        "99 of 100 read during an upload of 18 MB within ms",
        "read_p99_ms_during_upload",
        "without it",
        "read_p99_ms",
        "read_p99_during_upload_over_calm",
    ),
    (
        "an event decided, durable and told: ms",
        "decided_and_durable_ms",
        "a naive endpoint",
        "naively_durable_ms",
        "decided_and_durable_over_naive",
    ),
    (
        "test branch of the tenth, 20,000 files: ms",
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
        "start with 100,000 entries in the journal: ms",
        "start_ms_long_journal",
        "with none",
        "start_ms",
        "start_long_journal_over_short",
    ),
)
SHOWN = {
    "bytes of one more that waits (≤ 3,072)": "bytes_per_waiting_pull",
    "  with twenty targets": "bytes_per_waiting_pull_with_20_targets",
    "page of a queue of a thousand, the server's own time: ms (≤ 50)": "queue_page_server_ms",
    "fifty runs, one upon the other, 20,000 files: ms": "stack_of_50_ms",
    "  one of them over plain git": "stack_of_50_over_plain_git",
    "  the last ten over the first ten": "stack_last_ten_over_first_ten",
    "submissions per second on PostgreSQL, one replica": "submit_postgres_per_second_1_replicas",
    "  the same through two, as a ratio": "submit_postgres_2_replicas_over_one",
    "  the same through four": "submit_postgres_4_replicas_over_one",
    "eight writers to one queue through four replicas, per second": "submit_postgres_per_second_8_writers_one_queue",
    "  turns decided again, per turn": "turns_lost_per_turn_8_writers_one_queue",
    "from the death of a replica until others work for its repositories: s": "takeover_seconds",
    "test branch of the tenth, 20,000 files, pushed: ms": "branch_pushed_ms_20k",
    "from a status to merged: ms": "status_to_merged_ms",
    "  the status saved": "status_saved_ms",
    "  its pull request read": "status_pulls_read_ms",
    "  landed: the target read, pushed, read again": "status_landing_ms",
    "  a turn saved, on average": "status_turn_ms",
}


def _limit(ratio: str) -> str:
    if ratio in AT_LEAST:
        return f"(≥ {AT_LEAST[ratio][0]:g})"
    return f"(≤ {AT_MOST[ratio][0]:g})" if ratio in AT_MOST else ""


def _number(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"
