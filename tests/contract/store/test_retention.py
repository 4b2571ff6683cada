"""Records expire by age, and the store never names one that is still needed."""

import pytest

from mergeyard.domain.ids import PullRequestNumber, RunId, Sha, SubmissionId
from mergeyard.domain.states import PullRequestState, QueueState
from mergeyard.domain.timestamps import Instant
from mergeyard.ports import store as store_port
from mergeyard.ports.store import MAX_HEADS_WITH_IMPACTED_TARGETS, Store, SubmissionsQuery
from mergeyard.ports.writes import (
    AppendEntries,
    DeleteExpired,
    DeleteQueue,
    MoveCursor,
    RecordKind,
    SaveImpactedTargets,
    SaveStatus,
    StartConsumer,
)
from tests.contract.store.builders import (
    HEAD,
    NEXT,
    OTHER,
    QUEUE,
    REPO,
    a_decision,
    a_queue,
    a_run,
    a_status,
    a_submission,
    an_entry,
    opened,
)
from tests.support.asynchronous import asynchronous

BEFORE = Instant(100)


async def delete_all(store: Store, kind: RecordKind, take: int = 2) -> int:
    """As the retention job does, batch by batch; returns the number of batches."""
    batches = 0
    while keys := await store.expired_keys(kind, BEFORE, take):
        assert len(keys) <= take
        await store.commit(DeleteExpired(kind, tuple(keys), BEFORE))
        batches += 1
        assert batches < 20
    return batches


@asynchronous
async def test_submissions_expire_by_when_they_ended_and_live_ones_never(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        ended = [
            a_submission(submission_id, state=PullRequestState.MERGED, ended_at=90 + submission_id)
            for submission_id in (1, 2, 3, 12)
        ]
        await store.commit(
            a_decision(1, *ended, a_submission(4), a_submission(5, state=PullRequestState.TESTING, submitted_at=1))
        )
        assert await delete_all(store, RecordKind.SUBMISSIONS) == 2
        assert await store.submissions(QUEUE, SubmissionsQuery(take=9)) == (
            b"submission 12",
            b"submission 5",
            b"submission 4",
        )
        assert await store.last_submission(QUEUE, PullRequestNumber(1)) is None
        assert (await store.load(QUEUE)).submissions == (b"submission 4", b"submission 5")


@asynchronous
async def test_a_submission_that_ended_while_it_was_stored_expires_too(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_decision(1, a_submission(1), a_run("r", started=1)))
        await store.commit(
            a_decision(
                2,
                a_submission(1, state=PullRequestState.FAILED, ended_at=99),
                a_run("r", started=1, decided=2, live=False, ended=99),
            )
        )
        assert await store.expired_keys(RecordKind.SUBMISSIONS, Instant(99), 9) == ()
        assert await store.expired_keys(RecordKind.SUBMISSIONS, BEFORE, 9) == ((QUEUE, 1),)
        assert await store.expired_keys(RecordKind.RUNS, BEFORE, 9) == ((QUEUE, "r"),)


@asynchronous
async def test_runs_expire_by_when_they_left_the_queue_with_the_statuses_of_their_commits(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        old, kept = Sha("a" * 40), Sha("b" * 40)
        runs = [
            a_run("old", started=1, decided=2, live=False, ended=99, tip=old),
            a_run("kept", started=1, decided=2, live=False, ended=100, tip=kept),
            a_run("live", started=1, decided=2),
        ]
        await store.commit(a_decision(1, *runs))
        await store.commit(*(SaveStatus(REPO, tip, a_status()) for tip in (old, kept)))
        await delete_all(store, RecordKind.RUNS)
        assert await store.run(QUEUE, RunId("old")) is None
        assert await store.run(QUEUE, RunId("kept")) == b"kept"
        assert await store.run(QUEUE, RunId("live")) == b"live"
        assert await store.statuses(REPO, old) == ()
        assert await store.statuses(REPO, kept) == (a_status(),)


@asynchronous
async def test_a_run_that_passed_is_known_after_its_record_was_deleted(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_decision(1, a_run("passed", started=1, decided=2, live=False), a_run("never", live=False)))
        assert await store.had_run(QUEUE, RunId("passed"))
        await delete_all(store, RecordKind.RUNS)
        assert await store.had_run(QUEUE, RunId("passed"))
        assert not await store.had_run(QUEUE, RunId("never"))
        assert not await store.had_run(OTHER, RunId("passed"))


@asynchronous
async def test_entries_are_kept_until_every_consumer_has_read_them(store: Store):
    async with opened(store):
        await store.commit(a_queue(), StartConsumer("comments"), StartConsumer("audit"))
        await store.commit(AppendEntries(tuple(an_entry(f"{count}", at=count) for count in (1, 2, 3))))
        first, second, third = [entry.seq for entry in await store.entries(QUEUE, 0, 9)]
        assert await store.expired_keys(RecordKind.JOURNAL, BEFORE, 9) == ()
        await store.commit(MoveCursor("comments", QUEUE, third))
        assert await store.expired_keys(RecordKind.JOURNAL, BEFORE, 9) == ()
        await store.commit(MoveCursor("audit", QUEUE, second))
        assert await store.expired_keys(RecordKind.JOURNAL, BEFORE, 9) == ((first,), (second,))
        await delete_all(store, RecordKind.JOURNAL)
        assert [entry.seq for entry in await store.entries(QUEUE, 0, 9)] == [third]
        assert [queue.id for queue in await store.queues_with_unread_entries("audit")] == [QUEUE]


@asynchronous
async def test_entries_about_live_submissions_and_live_queues_are_kept(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        await store.commit(a_decision(1, a_submission(1), a_submission(2, state=PullRequestState.MERGED)))
        entries = [
            an_entry("created", kind="QueueCreated", submission_id=None),
            an_entry("paused", kind="QueueChanged", submission_id=None, to=QueueState.PAUSED),
            an_entry("live", submission_id=1),
            an_entry("ended", submission_id=2),
            an_entry("young", submission_id=2, at=100),
            an_entry("signed in", kind="SignedIn", queue=None, submission_id=None),
            an_entry("deleted queue", kind="QueueCreated", queue=OTHER, submission_id=None),
        ]
        await store.commit(AppendEntries(tuple(entries)))
        await store.commit(DeleteQueue(OTHER, 0, Instant(2)))
        await delete_all(store, RecordKind.JOURNAL)
        kept = [entry.body for entry in await store.entries(QUEUE, 0, 9)]
        assert kept == [b"created", b"paused", b"live", b"young"]
        assert await store.last_change(QUEUE, QueueState.PAUSED) == b"paused"
        assert await store.entries(OTHER, 0, 9) == ()
        assert [entry.body for entry in await store.audit_entries(store_port.AuditQuery(take=9))] == kept[::-1]


@asynchronous
async def test_the_journal_goes_on_counting_after_its_last_entry_was_deleted(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(AppendEntries((an_entry("old"), an_entry("kept", at=100))))
        last = (await store.entries(QUEUE, 0, 9))[-1].seq
        await delete_all(store, RecordKind.JOURNAL)
        await store.commit(AppendEntries((an_entry("new", at=101),)))
        assert (await store.entries(QUEUE, 0, 9))[-1].seq > last


@asynchronous
async def test_targets_of_pull_requests_that_are_in_no_queue_expire_but_one_upload_stays(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_decision(1, a_submission(1, number=7)))
        for number in (7, 8, 9, 10):
            await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(number), HEAD, b"t", Instant(number)))
        await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(11), HEAD, b"t", Instant(100)))
        await delete_all(store, RecordKind.IMPACTED_TARGETS)
        kept = [
            number
            for number in (7, 8, 9, 10, 11)
            if await store.has_impacted_targets(QUEUE, PullRequestNumber(number), HEAD)
        ]
        assert kept == [7, 11]
        await store.commit(
            a_queue(OTHER, key=NEXT), SaveImpactedTargets(OTHER, PullRequestNumber(1), HEAD, b"t", Instant(1))
        )
        await delete_all(store, RecordKind.IMPACTED_TARGETS)
        assert await store.has_impacted_targets(OTHER, PullRequestNumber(1), HEAD)


@asynchronous
async def test_targets_that_were_uploaded_again_meanwhile_are_not_deleted(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(
            *(SaveImpactedTargets(QUEUE, PullRequestNumber(number), HEAD, b"t", Instant(1)) for number in (1, 2))
        )
        keys = await store.expired_keys(RecordKind.IMPACTED_TARGETS, BEFORE, 9)
        await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(1), HEAD, b"again", Instant(100)))
        await store.commit(DeleteExpired(RecordKind.IMPACTED_TARGETS, tuple(keys), BEFORE))
        assert await store.impacted_targets(QUEUE, PullRequestNumber(1), HEAD) == b"again"


@asynchronous
async def test_a_pull_request_keeps_the_targets_of_its_last_heads_only(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        heads = [Sha(f"{count:040}") for count in range(MAX_HEADS_WITH_IMPACTED_TARGETS + 3)]
        await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(2), HEAD, b"another's", Instant(0)))
        for at, head in enumerate(heads):
            await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(1), head, b"t", Instant(at)))
        kept = [head for head in heads if await store.has_impacted_targets(QUEUE, PullRequestNumber(1), head)]
        assert kept == heads[-MAX_HEADS_WITH_IMPACTED_TARGETS:]
        assert await store.has_impacted_targets(QUEUE, PullRequestNumber(2), HEAD)


@asynchronous
async def test_the_size_of_targets_is_counted_per_token(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        assert await store.impacted_targets_size("t1") == 0
        await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(1), HEAD, b"12345", Instant(1), "t1"))
        await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(2), HEAD, b"123", Instant(1), "t1"))
        await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(3), HEAD, b"1234", Instant(1), "t2"))
        assert await store.impacted_targets_size("t1") == 8
        await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(1), HEAD, b"1", Instant(2), "t2"))
        assert (await store.impacted_targets_size("t1"), await store.impacted_targets_size("t2")) == (3, 5)


@asynchronous
async def test_statuses_expire_unless_a_run_tests_their_commit(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        tested, early, unknown, ours = (Sha(letter * 40) for letter in "abcd")
        await store.commit(SaveStatus(REPO, early, a_status(), "t1"))
        await store.commit(a_decision(1, a_run("r", started=1, tip=tested), a_run("s", started=1, tip=early)))
        await store.commit(*(SaveStatus(REPO, sha, a_status(), "t1") for sha in (tested, unknown)))
        await store.commit(
            SaveStatus(REPO, ours, a_status()), SaveStatus(REPO, unknown, a_status("young", at=100), "t1")
        )
        await delete_all(store, RecordKind.STATUSES)
        assert [len(await store.statuses(REPO, sha)) for sha in (tested, early, unknown, ours)] == [1, 1, 1, 1]
        assert await store.statuses(REPO, unknown) == (a_status("young", at=100),)
        assert await store.expired_keys(RecordKind.STATUSES, BEFORE, 9) == ()


@asynchronous
async def test_a_token_keeps_only_its_last_statuses_for_commits_that_no_run_tests(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mergeyard.ports.store.MAX_UNCLAIMED_STATUSES", 3)
    monkeypatch.setattr("tests.simulation.store.expiry.MAX_UNCLAIMED_STATUSES", 3)
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_decision(1, a_run("r", started=1, tip=HEAD)))
        await store.commit(
            SaveStatus(REPO, HEAD, a_status(at=1), "t1"), SaveStatus(REPO, Sha("f" * 40), a_status(), "t2")
        )
        commits = [Sha(f"{count:040}") for count in range(6)]
        for at, sha in enumerate(commits):
            await store.commit(SaveStatus(REPO, sha, a_status(at=at), "t1"))
        assert [sha for sha in commits if await store.statuses(REPO, sha)] == commits[-3:]
        assert await store.statuses(REPO, HEAD)
        assert await store.statuses(REPO, Sha("f" * 40))


@asynchronous
async def test_a_replica_that_missed_the_end_of_a_submission_loads_the_whole_queue(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_decision(1, a_submission(1), a_submission(2)))
        await store.commit(a_decision(2, a_submission(1, state=PullRequestState.MERGED, ended_at=1)))
        await store.commit(a_decision(3, a_submission(3)))
        await delete_all(store, RecordKind.SUBMISSIONS)
        assert await store.submission(QUEUE, SubmissionId(1)) is None
        assert await store.changes(QUEUE, 1) is None
