"""Stays and runs are found by what people ask for: the newest, the live, those of a state, those of a time."""

import pytest

from mergeyard.domain.ids import PrNumber, RunId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.states import TERMINAL, PrState
from mergeyard.ports.store import Page, ResultsPage, Store, StoredQueue
from mergeyard.ports.writes import AppendEntries, DeleteQueue
from tests.contract.store.given import MAIN, NEXT, OTHER, QUEUE, a_queue, a_run, a_stay, a_turn, an_entry, opened
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_a_stay_is_saved_again_as_it_is_now(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_turn(1, a_stay(1, body=b"submitted")))
        await store.commit(a_turn(2, a_stay(1, state=PrState.TESTING, branch="feature", body=b"testing")))
        assert await store.stay(QUEUE, Ticket(1)) == b"testing"
        assert await store.stays(QUEUE, Page(take=9, state=PrState.TESTING)) == (b"testing",)
        await store.commit(a_turn(3, a_stay(1, state=PrState.MERGED, branch="renamed", body=b"merged")))
        assert await store.stay(QUEUE, Ticket(1)) == b"merged"
        assert await store.last_stay_of_branch(QUEUE, "renamed") == b"merged"
        assert await store.last_stay_of_branch(QUEUE, "feature") is None
        assert await store.stays(QUEUE, Page(take=9, state=PrState.TESTING)) == ()
        assert await store.stays(QUEUE, Page(take=9)) == (b"merged",)


@asynchronous
async def test_only_live_stays_and_runs_are_loaded_in_the_order_they_came(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_turn(1, a_stay(3), a_stay(1), a_stay(2), a_run("z"), a_run("a"), a_run("m")))
        await store.commit(a_turn(2, a_stay(2, state=PrState.FAILED), a_run("a", live=False), a_run("z", started=4)))
        loaded = await store.load(QUEUE)
        assert (loaded.version, loaded.stays, loaded.runs) == (2, (b"stay 1", b"stay 3"), (b"z", b"m"))


@asynchronous
async def test_the_last_stay_is_the_one_submitted_last(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        again = [a_stay(ticket, number=7, state=PrState.CANCELLED) for ticket in (2, 9, 5)]
        await store.commit(a_turn(1, *again, a_stay(10, number=8)))
        assert await store.last_stay(QUEUE, PrNumber(7)) == b"stay 9"
        assert await store.stays_of(QUEUE, PrNumber(7), 9) == (b"stay 9", b"stay 5", b"stay 2")
        assert await store.stays_of(QUEUE, PrNumber(7), 2) == (b"stay 9", b"stay 5")
        assert await store.stays_of(OTHER, PrNumber(7), 9) == ()
        assert await store.last_stay(QUEUE, PrNumber(9)) is None
        assert await store.last_stay(OTHER, PrNumber(7)) is None


@asynchronous
async def test_of_a_branch_the_live_stay_is_found_else_the_last(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        ended = [a_stay(ticket, branch="fix", state=PrState.FAILED) for ticket in (1, 3)]
        await store.commit(a_turn(1, *ended, a_stay(2, branch="fix"), a_stay(4, branch="other")))
        assert await store.last_stay_of_branch(QUEUE, "fix") == b"stay 2"
        await store.commit(a_turn(2, a_stay(2, branch="fix", state=PrState.MERGED)))
        assert await store.last_stay_of_branch(QUEUE, "fix") == b"stay 3"
        assert await store.last_stay_of_branch(QUEUE, "gone") is None


FAILED = PrState.FAILED


@pytest.mark.parametrize(
    ("page", "tickets"),
    [
        (Page(take=100), [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
        (Page(take=3), [10, 9, 8]),
        (Page(take=3, before=Ticket(4)), [3, 2, 1]),
        (Page(take=3, before=Ticket(1)), []),
        (Page(take=2, state=FAILED), [9, 6]),
        (Page(take=2, state=FAILED, before=Ticket(6)), [3]),
        (Page(take=9, state=PrState.MERGED), []),
        (Page(take=9, since=Instant(80)), [10, 9, 8]),
        (Page(take=9, until=Instant(30)), [2, 1]),
        (Page(take=9, since=Instant(30), until=Instant(50)), [4, 3]),
        (Page(take=1, since=Instant(30), until=Instant(50)), [4]),
        (Page(take=9, since=Instant(30), until=Instant(90), before=Ticket(6)), [5, 4, 3]),
        (Page(take=9, since=Instant(30), until=Instant(90), state=FAILED), [6, 3]),
        (Page(take=1, since=Instant(30), state=FAILED, before=Ticket(9)), [6]),
    ],
)
@asynchronous
async def test_stays_are_listed_newest_first(store: Store, page: Page, tickets: list[int]):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        every_third_failed = [
            a_stay(ticket, submitted_at=10 * ticket, state=PrState.PENDING if ticket % 3 else FAILED)
            for ticket in range(1, 11)
        ]
        await store.commit(a_turn(1, *every_third_failed), a_turn(1, a_stay(5, body=b"another's"), queue=OTHER))
        assert await store.stays(QUEUE, page) == tuple(b"stay %d" % ticket for ticket in tickets)


@asynchronous
async def test_stays_are_listed_by_ticket_even_when_the_clock_went_back(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_turn(1, a_stay(1, submitted_at=50), a_stay(2, submitted_at=40)))
        assert await store.stays(QUEUE, Page(take=9, since=Instant(0))) == (b"stay 2", b"stay 1")


@asynchronous
async def test_concluded_stays_are_found_by_when_they_ended_not_by_when_they_were_submitted(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        ended = {2: PrState.MERGED, 4: PrState.FAILED, 1: PrState.CANCELLED}
        stays = [a_stay(ticket, state=state) for ticket, state in ended.items()]
        ends = [an_entry("end", ticket=ticket, to=state) for ticket, state in ended.items()]
        await store.commit(a_turn(1, *stays, a_stay(3, state=PrState.TESTING)), AppendEntries(tuple(ends)))
        await store.commit(AppendEntries((an_entry("tested", ticket=3, to=PrState.TESTING),)))
        elsewhere = an_entry("end", ticket=3, to=PrState.MERGED, queue=OTHER)
        await store.commit(a_turn(1, a_stay(3, body=b"another's"), queue=OTHER), AppendEntries((elsewhere,)))
        assert set(ended.values()) == TERMINAL
        assert await store.concluded_stays(QUEUE, 9) == (b"stay 1", b"stay 4", b"stay 2")
        assert await store.concluded_stays(QUEUE, 1) == (b"stay 1",)


@asynchronous
async def test_a_run_is_found_live_or_not_and_saved_again_as_it_is_now(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_turn(1, a_run("r")))
        await store.commit(a_turn(2, a_run("r", started=1, decided=2, live=False, body=b"done")))
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
        await store.commit(a_turn(1, *runs))
        found = await store.decided_runs(QUEUE, Instant(10), Instant(20), 9)
        assert [run.body for run in found] == [b"last", b"between", b"first"]
        assert await store.decided_runs(OTHER, Instant(10), Instant(20), 9) == ()


@asynchronous
async def test_decided_runs_are_read_chunk_by_chunk_also_when_many_were_decided_at_once(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(
            a_turn(1, *(a_run(name, started=1, decided=5) for name in "abcd"), a_run("z", started=1, decided=4))
        )
        read, until, before = list[bytes](), Instant(9), 0
        while chunk := await store.decided_runs(QUEUE, Instant(0), until, 2, before):
            assert len(chunk) <= 2
            read += [run.body for run in chunk]
            until, before = chunk[-1].decided_at, chunk[-1].place
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
            a_run("b", started=1, decided=11, tested=3),
            a_run("base", started=1, decided=11, tested=0),
            a_run("c", started=1, decided=11),
            a_run("later", started=1, decided=20),
            a_run("never started", decided=15),
        ]
        await store.commit(a_turn(1, *decided), a_turn(1, a_run("other", started=1, decided=11), queue=OTHER))
        page = await store.results(QUEUE, Instant(10), Instant(20), offset, take)
        assert page == ResultsPage(5, skipped, runs)


@asynchronous
async def test_the_queue_of_a_run_is_found_by_the_id_of_the_run(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        await store.commit(a_turn(1, a_run("r")), a_turn(1, a_run("s", live=False), queue=OTHER))
        assert await store.queue_of_run(RunId("r")) == StoredQueue(QUEUE, MAIN, 1)
        assert await store.queue_of_run(RunId("s")) == StoredQueue(OTHER, NEXT, 1)
        assert await store.queue_of_run(RunId("t")) is None
        await store.commit(DeleteQueue(OTHER, 1, Instant(2)))
        assert await store.queue_of_run(RunId("s")) is None
