"""Metrics from the journal and from finished runs: CI minutes, flaky checks, conclusion reasons, summaries."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.ids import BatchId, QueueId, RunId, Sha
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import CheckState, PullRequestState, Reason, RunStatus
from mergeyard.domain.timestamps import DAY, MINUTE, Instant
from mergeyard.ports.writes import AppendEntries, RunRow
from mergeyard.service import analytics, persistence
from mergeyard.service.analytics import (
    CHUNK_MS,
    MAX_EVIDENCE,
    AnalyticsReader,
    PastRun,
    PeriodRecords,
    ReasonCount,
    decode_past_runs,
    find_flaky_checks,
    is_counted,
    quantile,
    summarize,
)
from mergeyard.service.persistence import encode
from tests.contract.store.builders import NEXT, OTHER, a_decision, a_queue, an_entry, opened
from tests.contract.store.builders import QUEUE as STORED_QUEUE
from tests.support.analytics_rows import QUEUE, a_final_transition, a_past_run, a_restart_transition, a_transition
from tests.support.asynchronous import asynchronous
from tests.support.builders import a_run

PASSED, FAILED, CANCELLED = RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED
BISECTION, BASE = RunKind.BISECTION, RunKind.BASE


def test_every_run_counts_as_spent_whatever_its_result():
    runs = [a_past_run(kind=kind, status=status) for kind in RunKind for status in (PASSED, FAILED, CANCELLED)]
    assert analytics.sum_ci_ms(runs) == 9 * 10 * MINUTE


@pytest.mark.parametrize(
    ("run", "minutes"),
    [
        (a_past_run(tests=1, status=PASSED), 0),
        (a_past_run(tests=4, status=PASSED), 30),
        (a_past_run(tests=4, status=FAILED), -10),
        (a_past_run(tests=1, status=FAILED), 0),
        (a_past_run(tests=4, status=CANCELLED), 0),
        (a_past_run(kind=BASE, tests=0, status=PASSED), 0),
        (a_past_run(kind=BASE, tests=0, status=FAILED), 0),
        (a_past_run(kind=BISECTION, tests=2, status=PASSED), -10),
        (a_past_run(kind=BISECTION, tests=1, status=FAILED), -10),
        (a_past_run(kind=BISECTION, tests=1, status=CANCELLED), -10),
        (a_past_run(kind=BISECTION, has_batch=True, tests=3, status=PASSED), 20),
    ],
    ids=[
        "a batch of one saves nothing",
        "four in a batch save three runs",
        "a failed batch costs a run",
        "a failed batch of one would have cost the same",
        "a cancelled batch saves and costs nothing",
        "a passed base run saves nothing",
        "a failed base run costs nothing",
        "a passed bisection run costs its time",
        "a failed bisection run costs its time",
        "a cancelled bisection run costs its time",
        "a prefix that merges as tested counts as a batch",
    ],
)
def test_batching_saves_the_runs_of_testing_one_by_one(run: PastRun, minutes: int):
    assert analytics.sum_saved_ci_ms([run]) == minutes * MINUTE


def test_savings_are_negative_in_a_period_of_failed_batches():
    runs = [a_past_run(tests=2, status=FAILED), a_past_run(kind=BISECTION), a_past_run(tests=2, minutes=5)]
    assert analytics.sum_saved_ci_ms(runs) == -15 * MINUTE


def test_a_check_that_fails_and_passes_on_the_same_stack_is_flaky():
    (flaky,) = find_flaky_checks(
        [
            a_past_run("first", stack="a", at=1, failed_checks=("e2e",), passed_checks=("unit",)),
            a_past_run("again", stack="a", at=2, passed_checks=("e2e", "unit")),
            a_past_run("other", stack="b", at=3, passed_checks=("e2e", "unit")),
        ]
    )
    assert (flaky.queue, flaky.check, flaky.last_at) == (QUEUE, "e2e", 2)
    assert (flaky.stacks, flaky.failures, flaky.reports) == (1, 1, 3)
    assert [(each.failed_run_id, each.passed_run_id) for each in flaky.evidence] == [("first", "again")]


def test_a_check_that_keeps_failing_is_not_flaky():
    assert (
        find_flaky_checks(
            [a_past_run(stack="a", failed_checks=("e2e",)), a_past_run(stack="a", failed_checks=("e2e",))]
        )
        == []
    )


def test_a_check_that_passes_on_another_stack_is_not_flaky():
    assert (
        find_flaky_checks(
            [a_past_run(stack="a", failed_checks=("e2e",)), a_past_run(stack="b", passed_checks=("e2e",))]
        )
        == []
    )


def test_a_check_that_did_not_report_again_is_not_flaky():
    assert (
        find_flaky_checks(
            [a_past_run(stack="a", failed_checks=("e2e",)), a_past_run(stack="a", passed_checks=("unit",))]
        )
        == []
    )


def test_the_same_stack_in_another_queue_is_a_different_stack():
    other = QueueId("q2")
    assert (
        find_flaky_checks(
            [a_past_run(stack="a", failed_checks=("e2e",)), a_past_run(stack="a", passed_checks=("e2e",), queue=other)]
        )
        == []
    )


def test_evidence_names_the_latest_failed_and_passed_run_in_any_order():
    runs = [
        a_past_run("passed", stack="a", at=9, passed_checks=("e2e",)),
        a_past_run("late", stack="a", at=5, failed_checks=("e2e",)),
        a_past_run("early", stack="a", at=1, failed_checks=("e2e",)),
    ]
    (flaky,) = find_flaky_checks(runs)
    assert (flaky.failures, flaky.evidence[0].failed_run_id, flaky.evidence[0].passed_run_id) == (
        2,
        "late",
        "passed",
    )
    assert find_flaky_checks(reversed(runs)) == [flaky]


def failed_then_passed(stack: str, at: int, *checks: str) -> list[PastRun]:
    return [
        a_past_run(f"failed {stack}", stack=stack, at=at, failed_checks=checks),
        a_past_run(f"passed {stack}", stack=stack, at=at + 1, passed_checks=checks),
    ]


def test_flaky_checks_are_sorted_by_stacks_and_then_by_time():
    runs = (
        failed_then_passed("a", 10, "often")
        + failed_then_passed("b", 20, "often", "early")
        + failed_then_passed("c", 30, "late")
    )
    assert [(flaky.check, flaky.stacks) for flaky in find_flaky_checks(runs)] == [
        ("often", 2),
        ("late", 1),
        ("early", 1),
    ]


def test_only_the_latest_evidence_is_kept():
    runs = [run for count in range(5) for run in failed_then_passed(f"{count}", 10 * count, "e2e")]
    (flaky,) = find_flaky_checks(runs)
    assert (flaky.stacks, len(flaky.evidence)) == (5, MAX_EVIDENCE)
    assert [each.failed_run_id for each in flaky.evidence] == ["failed 4", "failed 3", "failed 2"]


TRANSITIONS = [
    a_final_transition(PullRequestState.FAILED, Reason.TEST_RUN_FAILED),
    a_final_transition(PullRequestState.CANCELLED, Reason.PR_CLOSED),
    a_final_transition(PullRequestState.CANCELLED, Reason.CANCELLED_BY_USER),
    a_final_transition(),
    a_final_transition(),
    a_restart_transition(Reason.BISECTION),
    a_restart_transition(Reason.TARGET_BRANCH_MOVED),
    a_restart_transition(Reason.TARGET_BRANCH_MOVED),
]


def test_conclusion_reasons_are_sorted_by_count_and_then_by_name():
    assert analytics.count_conclusion_reasons(TRANSITIONS) == [
        ReasonCount("merged", "merged_by_queue", 2),
        ReasonCount("cancelled", "cancelled_by_user", 1),
        ReasonCount("cancelled", "pr_closed", 1),
        ReasonCount("failed", "test_run_failed", 1),
    ]


def test_restart_reasons_are_counted_separately():
    assert analytics.count_restart_reasons(TRANSITIONS) == [
        ReasonCount("pending", "target_branch_moved", 2),
        ReasonCount("pending", "bisection", 1),
    ]


RECORDS = PeriodRecords(
    [a_final_transition(at=at) for at in (9, 10, 19, 20, 35)], [a_past_run(at=at) for at in (9, 10, 29, 30)]
)
STARTS = (Instant(10), Instant(20), Instant(30))


def test_records_are_split_into_half_open_intervals():
    parts = RECORDS.split_at(STARTS)
    assert [[transition.at for transition in part.transitions] for part in parts] == [[10, 19], [20], [35]]
    assert [[run.decided_at for run in part.runs] for part in parts] == [[10], [29], [30]]


def test_between_includes_its_start_and_excludes_its_end():
    between = RECORDS.between(Instant(10), Instant(20))
    assert [transition.at for transition in between.transitions] == [10, 19]
    assert [run.decided_at for run in between.runs] == [10]


def test_a_period_in_which_only_a_run_ended_is_not_empty():
    assert PeriodRecords().is_empty
    assert not PeriodRecords(runs=[a_past_run()]).is_empty
    assert not PeriodRecords(transitions=[a_final_transition()]).is_empty


def test_only_conclusions_and_restarts_are_counted():
    assert all(
        map(
            is_counted,
            (
                a_final_transition(),
                a_final_transition(PullRequestState.FAILED),
                a_final_transition(PullRequestState.CANCELLED),
                a_restart_transition(),
            ),
        )
    )
    assert not is_counted(a_transition(PullRequestState.PENDING, PullRequestState.TESTING, Reason.TEST_RUN_STARTED))
    assert not is_counted(a_transition(PullRequestState.PENDING_FAILURE, PullRequestState.PENDING, Reason.BISECTION))


def test_conclusions_are_counted_by_state():
    ends = [
        a_final_transition(),
        a_final_transition(),
        a_final_transition(PullRequestState.FAILED),
        a_final_transition(PullRequestState.CANCELLED),
        a_restart_transition(),
    ]
    summary = summarize(PeriodRecords(ends))
    assert (summary.merged, summary.failed, summary.cancelled, summary.restarts) == (2, 1, 1, 1)


def test_success_rate_ignores_cancelled_submissions():
    assert (
        summarize(
            PeriodRecords(
                [
                    a_final_transition(),
                    a_final_transition(PullRequestState.FAILED),
                    a_final_transition(PullRequestState.CANCELLED),
                ]
            )
        ).success_rate
        == 0.5
    )


def test_time_in_queue_counts_only_merged_submissions():
    ends = [a_final_transition(minutes=minutes) for minutes in range(1, 101)]
    ends += [a_final_transition(PullRequestState.FAILED, minutes=999), a_final_transition(minutes=None)]
    summary = summarize(PeriodRecords(ends))
    assert (summary.median_ms, summary.p95_ms) == (51 * MINUTE, 96 * MINUTE)


def test_runs_per_merge_counts_runs_of_every_kind():
    runs = [a_past_run(kind=kind) for kind in RunKind] + [a_past_run(status=RunStatus.CANCELLED)]
    summary = summarize(PeriodRecords([a_final_transition(), a_final_transition()], runs))
    assert (summary.runs, summary.runs_per_merge, summary.bisection_runs) == (4, 2.0, 1)


def test_a_batch_that_failed_twice_is_one_failed_batch():
    failed = RunStatus.FAILED
    runs = [
        a_past_run(stack="ab", tests=2, status=failed),
        a_past_run(stack="ab", tests=2, status=failed),
        a_past_run(stack="ab", tests=2, status=failed, queue=QueueId("q2")),
        a_past_run(stack="cd", tests=2, status=failed),
        a_past_run(stack="e", tests=1, status=failed),
        a_past_run(stack="fg", tests=2),
        a_past_run(stack="hi", tests=2, kind=RunKind.BISECTION, status=failed),
    ]
    assert summarize(PeriodRecords(runs=runs)).failed_batches == 3


def test_rates_of_an_empty_period_are_none():
    empty = summarize(PeriodRecords())
    assert (empty.success_rate, empty.median_ms, empty.p95_ms, empty.runs_per_merge) == (None, None, None, None)
    assert (empty.merged, empty.ci_ms, empty.saved_ci_ms) == (0, 0, 0)


@pytest.mark.parametrize(
    ("ordered", "share", "found"),
    [([], 0.5, None), ([7], 0.5, 7), ([7], 0.95, 7), ([1, 2, 3], 0.5, 2), ([1, 2, 3], 1.0, 3)],
)
def test_a_quantile_is_one_of_the_values(ordered: list[int], share: float, found: int | None):
    assert quantile(ordered, share) == found


def a_decided_run(*stack: int, tests: int = 1, kind: RunKind = RunKind.BATCH) -> Run:
    checks = {"unit": CheckState.PASSED, "e2e": CheckState.FAILED, "slow": CheckState.PENDING}
    run = a_run(*stack, tests=tests, status=RunStatus.FAILED, kind=kind)
    return replace(run, batch=BatchId(7), started_at=Instant(10), decided_at=Instant(40), checks=checks)


def decoded(run: Run) -> PastRun:
    (past_run,) = decode_past_runs(QUEUE, [encode(run)])
    return past_run


def test_a_run_that_used_the_checks_of_a_head_is_no_past_run():
    tested, direct = a_decided_run(1), replace(a_decided_run(2), used_head_checks=True)
    assert [run.id for run in decode_past_runs(QUEUE, [encode(direct), encode(tested)])] == [tested.id]


def test_a_past_run_has_its_duration_and_its_checks():
    past_run = decoded(a_decided_run(1, 2, tests=2))
    assert (past_run.queue, past_run.id, past_run.kind, past_run.status) == (
        QUEUE,
        "run of 1+2",
        RunKind.BATCH,
        RunStatus.FAILED,
    )
    assert (past_run.tested_count, past_run.duration_ms, past_run.decided_at) == (2, 30, 40)
    assert (past_run.failed_checks, past_run.passed_checks) == (("e2e",), ("unit",))


def test_a_past_run_knows_whether_it_belonged_to_a_batch():
    bisection = a_decided_run(1, kind=RunKind.BISECTION)
    assert decoded(bisection).has_batch
    assert not decoded(replace(bisection, batch=None)).has_batch


def test_stacks_are_equal_if_heads_and_base_are_equal():
    stack = decoded(a_decided_run(1, 2)).stack
    assert stack == decoded(replace(a_decided_run(1, 2), status=RunStatus.SUCCEEDED, chain=())).stack
    assert stack != decoded(a_decided_run(1)).stack
    assert stack != decoded(replace(a_decided_run(1, 2), base=Sha("elsewhere"))).stack
    first, second = a_decided_run(1, 2).stack
    pushed = replace(a_decided_run(1, 2), stack=(first, replace(second, head=Sha("pushed"))))
    assert stack != decoded(pushed).stack


SINCE, UNTIL = Instant(100 * DAY), Instant(140 * DAY + 7)
EDGES = [SINCE, SINCE + CHUNK_MS - 1, SINCE + CHUNK_MS, SINCE + 14 * DAY, 140 * DAY, UNTIL - 1]
OUTSIDE = [SINCE - 1, UNTIL]


def runs_decided(name: str, times: Sequence[int]) -> list[RunRow]:
    runs = [
        replace(
            a_run(1, status=RunStatus.SUCCEEDED),
            id=RunId(f"{name}{at}"),
            started_at=Instant(at - 5),
            decided_at=Instant(at),
        )
        for at in times
    ]
    return [persistence.to_run_row(run, UNTIL) for run in runs]


@asynchronous
async def test_all_records_of_the_period_are_read_once(tmp_path: Path):
    async with opened(SqliteStore(tmp_path / "mergeyard.db")) as store:
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        ends = [an_entry("concluded", at=at, to=PullRequestState.MERGED) for at in EDGES + OUTSIDE]
        others = [an_entry("tested", at=at, to=PullRequestState.TESTING) for at in EDGES]
        await store.commit(AppendEntries((*ends, *others, an_entry("elsewhere", at=EDGES[1], queue=OTHER))))
        await store.commit(a_decision(1, *runs_decided("run", EDGES + OUTSIDE)))
        records = await AnalyticsReader(store).read([STORED_QUEUE], SINCE, UNTIL)
        assert [transition.at for transition in records.transitions] == EDGES
        assert sorted(run.decided_at for run in records.runs) == EDGES


@asynchronous
async def test_records_of_several_queues_are_read_together(tmp_path: Path):
    async with opened(SqliteStore(tmp_path / "mergeyard.db")) as store:
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        for queue in (STORED_QUEUE, OTHER):
            await store.commit(
                AppendEntries((an_entry("concluded", at=SINCE, to=PullRequestState.FAILED, queue=queue),))
            )
            await store.commit(a_decision(1, *runs_decided("run", [SINCE]), queue=queue))
        records = await AnalyticsReader(store).read([STORED_QUEUE, OTHER], SINCE, UNTIL)
        queues: set[QueueId] = {STORED_QUEUE, OTHER}
        assert {transition.queue for transition in records.transitions} == {run.queue for run in records.runs} == queues


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 4, 5])
@asynchronous
async def test_runs_are_read_in_chunks_even_when_several_were_decided_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_size: int
):
    monkeypatch.setattr(analytics, "MAX_RUNS_PER_CHUNK", chunk_size)
    async with opened(SqliteStore(tmp_path / "mergeyard.db")) as store:
        await store.commit(a_queue())
        decided = [SINCE, SINCE, SINCE, SINCE + 1]
        named = [replace(row, id=RunId(f"{index}")) for index, row in enumerate(runs_decided("run", decided))]
        await store.commit(a_decision(1, *named))
        records = await AnalyticsReader(store).read([STORED_QUEUE], SINCE, UNTIL)
        assert sorted(run.decided_at for run in records.runs) == decided
