"""Submissions and runs are found by number, branch, state, time or liveness."""

from typing import Any

import pytest

from mergeyard.domain.ids import PullRequestNumber, RunId, SubmissionId
from mergeyard.domain.states import TERMINAL_STATES, PullRequestState
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import (
    EndedSubmission,
    EndedSubmissionsQuery,
    ResultsPage,
    Store,
    StoredQueue,
    SubmissionsQuery,
)
from mergeyard.ports.writes import AppendEntries, DeleteQueue
from tests.contract.store.builders import (
    MAIN,
    NEXT,
    OTHER,
    QUEUE,
    a_decision,
    a_queue,
    a_run,
    a_submission,
    an_entry,
    opened,
)
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_saving_a_submission_again_replaces_it(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_decision(1, a_submission(1, body=b"submitted")))
        await store.commit(
            a_decision(2, a_submission(1, state=PullRequestState.TESTING, branch="feature", body=b"testing"))
        )
        assert await store.submission(QUEUE, SubmissionId(1)) == b"testing"
        assert await store.submissions(QUEUE, SubmissionsQuery(take=9, state=PullRequestState.TESTING)) == (b"testing",)
        await store.commit(
            a_decision(3, a_submission(1, state=PullRequestState.MERGED, branch="renamed", body=b"merged"))
        )
        assert await store.submission(QUEUE, SubmissionId(1)) == b"merged"
        assert await store.last_submission_of_branch(QUEUE, "renamed") == b"merged"
        assert await store.last_submission_of_branch(QUEUE, "feature") is None
        assert await store.submissions(QUEUE, SubmissionsQuery(take=9, state=PullRequestState.TESTING)) == ()
        assert await store.submissions(QUEUE, SubmissionsQuery(take=9)) == (b"merged",)


@asynchronous
async def test_only_live_submissions_and_runs_are_loaded_in_their_order(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(
            a_decision(1, a_submission(3), a_submission(1), a_submission(2), a_run("z"), a_run("a"), a_run("m"))
        )
        await store.commit(
            a_decision(2, a_submission(2, state=PullRequestState.FAILED), a_run("a", live=False), a_run("z", started=4))
        )
        loaded = await store.load(QUEUE)
        assert (loaded.version, loaded.submissions, loaded.runs) == (
            2,
            (b"submission 1", b"submission 3"),
            (b"z", b"m"),
        )


@asynchronous
async def test_the_last_submission_is_the_one_submitted_last(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        again = [a_submission(submission_id, number=7, state=PullRequestState.CANCELLED) for submission_id in (2, 9, 5)]
        await store.commit(a_decision(1, *again, a_submission(10, number=8)))
        assert await store.last_submission(QUEUE, PullRequestNumber(7)) == b"submission 9"
        assert await store.submissions_of(QUEUE, PullRequestNumber(7), 9) == (
            b"submission 9",
            b"submission 5",
            b"submission 2",
        )
        assert await store.submissions_of(QUEUE, PullRequestNumber(7), 2) == (b"submission 9", b"submission 5")
        assert await store.submissions_of(OTHER, PullRequestNumber(7), 9) == ()
        assert await store.last_submission(QUEUE, PullRequestNumber(9)) is None
        assert await store.last_submission(OTHER, PullRequestNumber(7)) is None


@asynchronous
async def test_the_live_submission_of_a_branch_is_found_or_else_the_last(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        ended = [a_submission(submission_id, branch="fix", state=PullRequestState.FAILED) for submission_id in (1, 3)]
        await store.commit(a_decision(1, *ended, a_submission(2, branch="fix"), a_submission(4, branch="other")))
        assert await store.last_submission_of_branch(QUEUE, "fix") == b"submission 2"
        await store.commit(a_decision(2, a_submission(2, branch="fix", state=PullRequestState.MERGED)))
        assert await store.last_submission_of_branch(QUEUE, "fix") == b"submission 3"
        assert await store.last_submission_of_branch(QUEUE, "gone") is None


FAILED = PullRequestState.FAILED


@pytest.mark.parametrize(
    ("page", "submission_ids"),
    [
        (SubmissionsQuery(take=100), [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
        (SubmissionsQuery(take=3), [10, 9, 8]),
        (SubmissionsQuery(take=3, before=SubmissionId(4)), [3, 2, 1]),
        (SubmissionsQuery(take=3, before=SubmissionId(1)), []),
        (SubmissionsQuery(take=2, state=FAILED), [9, 6]),
        (SubmissionsQuery(take=2, state=FAILED, before=SubmissionId(6)), [3]),
        (SubmissionsQuery(take=9, state=PullRequestState.MERGED), []),
        (SubmissionsQuery(take=9, since=Instant(80)), [10, 9, 8]),
        (SubmissionsQuery(take=9, until=Instant(30)), [2, 1]),
        (SubmissionsQuery(take=9, since=Instant(30), until=Instant(50)), [4, 3]),
        (SubmissionsQuery(take=1, since=Instant(30), until=Instant(50)), [4]),
        (SubmissionsQuery(take=9, since=Instant(30), until=Instant(90), before=SubmissionId(6)), [5, 4, 3]),
        (SubmissionsQuery(take=9, since=Instant(30), until=Instant(90), state=FAILED), [6, 3]),
        (SubmissionsQuery(take=1, since=Instant(30), state=FAILED, before=SubmissionId(9)), [6]),
        (SubmissionsQuery(take=9, concluded_since=Instant(0)), [9, 6, 3]),
        (SubmissionsQuery(take=9, concluded_since=Instant(94)), [6, 3]),
        (SubmissionsQuery(take=9, concluded_since=Instant(95)), [3]),
        (SubmissionsQuery(take=9, concluded_since=Instant(98)), []),
        (SubmissionsQuery(take=1, concluded_since=Instant(91)), [9]),
        (SubmissionsQuery(take=1, concluded_since=Instant(91), before=SubmissionId(9)), [6]),
        (SubmissionsQuery(take=9, concluded_since=Instant(91), since=Instant(60), until=Instant(90)), [6]),
        (SubmissionsQuery(take=9, concluded_since=Instant(91), state=FAILED), [9, 6, 3]),
        (SubmissionsQuery(take=9, concluded_since=Instant(91), state=PullRequestState.MERGED), []),
    ],
)
@asynchronous
async def test_submissions_are_listed_newest_first(store: Store, page: SubmissionsQuery, submission_ids: list[int]):
    """The failed ones, 3, 6 and 9, ended at 97, 94 and 91."""
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        every_third_failed = [
            a_submission(
                submission_id,
                submitted_at=10 * submission_id,
                ended_at=100 - submission_id,
                state=PullRequestState.PENDING if submission_id % 3 else FAILED,
            )
            for submission_id in range(1, 11)
        ]
        await store.commit(
            a_decision(1, *every_third_failed), a_decision(1, a_submission(5, body=b"another's"), queue=OTHER)
        )
        assert await store.submissions(QUEUE, page) == tuple(
            b"submission %d" % submission_id for submission_id in submission_ids
        )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [("other", 2), ("main", 9), ("main", 6), ("main", 3)]),
        ({"queues": (QUEUE,)}, [("main", 9), ("main", 6), ("main", 3)]),
        ({"queues": ()}, []),
        ({"take": 2}, [("other", 2), ("main", 9)]),
        ({"since": Instant(95)}, [("other", 2), ("main", 9), ("main", 6)]),
        ({"until": Instant(95)}, [("main", 3)]),
        ({"state": PullRequestState.MERGED}, [("other", 2)]),
        ({"after": EndedSubmission(QUEUE, Instant(97), SubmissionId(9), b"")}, [("main", 6), ("main", 3)]),
        ({"after": EndedSubmission(OTHER, Instant(97), SubmissionId(2), b"")}, [("main", 9), ("main", 6), ("main", 3)]),
    ],
)
@asynchronous
async def test_ended_submissions_are_listed_the_last_end_first(
    store: Store, query: dict[str, Any], expected: list[tuple[str, int]]
):
    """Those that ended at the same time are ordered by their queue and id, so that no page repeats or skips one."""
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        ends = {9: 97, 6: 95, 3: 94}
        ended = [a_submission(number, state=FAILED, ended_at=ends[number]) for number in ends]
        merged = a_submission(2, state=PullRequestState.MERGED, ended_at=97)
        await store.commit(a_decision(1, *ended, a_submission(1)), a_decision(1, merged, queue=OTHER))
        asked: dict[str, Any] = {
            "queues": (QUEUE, OTHER),
            "take": 9,
            "since": Instant(0),
            "until": Instant(1000),
        } | query
        found = await store.ended_submissions(EndedSubmissionsQuery(**asked))
        names = {QUEUE: "main", OTHER: "other"}
        assert [(names[each.queue], each.submission_id) for each in found] == expected
        assert all(each.body == b"submission %d" % each.submission_id for each in found)


@asynchronous
async def test_submissions_are_listed_by_id_even_when_the_clock_went_back(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_decision(1, a_submission(1, submitted_at=50), a_submission(2, submitted_at=40)))
        assert await store.submissions(QUEUE, SubmissionsQuery(take=9, since=Instant(0))) == (
            b"submission 2",
            b"submission 1",
        )


@asynchronous
async def test_concluded_submissions_are_ordered_by_their_end_and_not_by_their_submission(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        ended = {2: PullRequestState.MERGED, 4: PullRequestState.FAILED, 1: PullRequestState.CANCELLED}
        submissions = [a_submission(submission_id, state=state) for submission_id, state in ended.items()]
        ends = [an_entry("end", submission_id=submission_id, to=state) for submission_id, state in ended.items()]
        await store.commit(
            a_decision(1, *submissions, a_submission(3, state=PullRequestState.TESTING)), AppendEntries(tuple(ends))
        )
        await store.commit(AppendEntries((an_entry("tested", submission_id=3, to=PullRequestState.TESTING),)))
        in_other_queue = an_entry("end", submission_id=3, to=PullRequestState.MERGED, queue=OTHER)
        await store.commit(
            a_decision(1, a_submission(3, body=b"another's"), queue=OTHER), AppendEntries((in_other_queue,))
        )
        assert set(ended.values()) == TERMINAL_STATES
        assert await store.concluded_submissions(QUEUE, 9) == (b"submission 1", b"submission 4", b"submission 2")
        assert await store.concluded_submissions(QUEUE, 1) == (b"submission 1",)


@asynchronous
async def test_a_run_is_found_live_or_not_and_saving_it_again_replaces_it(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_decision(1, a_run("r")))
        await store.commit(a_decision(2, a_run("r", started=1, decided=2, live=False, body=b"done")))
        assert await store.run(QUEUE, RunId("r")) == b"done"
        assert await store.run(QUEUE, RunId("s")) is None
        assert await store.run(OTHER, RunId("r")) is None


@asynchronous
async def test_decided_runs_were_started_and_decided_in_this_time_the_latest_first(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        runs = [
            a_run("before", started=1, decided=9),
            a_run("first", started=1, decided=10),
            a_run("last", started=1, decided=19, live=False),
            a_run("between", started=1, decided=15),
            a_run("after", started=1, decided=20),
            a_run("never started", decided=15),
            a_run("undecided", started=15),
        ]
        await store.commit(a_decision(1, *runs))
        found = await store.decided_runs(QUEUE, Instant(10), Instant(20), 9)
        assert [run.body for run in found] == [b"last", b"between", b"first"]
        assert await store.decided_runs(OTHER, Instant(10), Instant(20), 9) == ()


@asynchronous
async def test_decided_runs_are_read_chunk_by_chunk_also_when_many_were_decided_at_once(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(
            a_decision(1, *(a_run(name, started=1, decided=5) for name in "abcd"), a_run("z", started=1, decided=4))
        )
        read, until, before = list[bytes](), Instant(9), 0
        while chunk := await store.decided_runs(QUEUE, Instant(0), until, 2, before):
            assert len(chunk) <= 2
            read += [run.body for run in chunk]
            until, before = chunk[-1].decided_at, chunk[-1].row_id
        assert read == [b"d", b"c", b"b", b"a", b"z"]


@pytest.mark.parametrize(
    ("offset", "take", "skipped", "runs"),
    [
        (0, 1, 0, (b"c",)),
        (0, 3, 0, (b"c", b"b")),
        (1, 1, 0, (b"b",)),
        (2, 1, 1, (b"b",)),
        (3, 2, 2, (b"b", b"a")),
        (4, 9, 0, (b"a",)),
        (5, 9, 0, ()),
    ],
)
@asynchronous
async def test_a_page_of_results_reads_only_the_runs_of_the_page(
    store: Store, offset: int, take: int, skipped: int, runs: tuple[bytes, ...]
):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        decided = [
            a_run("a", started=1, decided=10),
            a_run("b", started=1, decided=11, tested_count=3),
            a_run("base", started=1, decided=11, tested_count=0),
            a_run("c", started=1, decided=11),
            a_run("later", started=1, decided=20),
            a_run("never started", decided=15),
        ]
        await store.commit(a_decision(1, *decided), a_decision(1, a_run("other", started=1, decided=11), queue=OTHER))
        page = await store.results(QUEUE, Instant(10), Instant(20), offset, take)
        assert page == ResultsPage(5, skipped, runs)


@asynchronous
async def test_the_queue_of_a_run_is_found_by_the_id_of_the_run(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        await store.commit(a_decision(1, a_run("r")), a_decision(1, a_run("s", live=False), queue=OTHER))
        assert await store.queue_of_run(RunId("r")) == StoredQueue(QUEUE, MAIN, 1)
        assert await store.queue_of_run(RunId("s")) == StoredQueue(OTHER, NEXT, 1)
        assert await store.queue_of_run(RunId("t")) is None
        await store.commit(DeleteQueue(OTHER, 1, Instant(2)))
        assert await store.queue_of_run(RunId("s")) is None
