"""Something of everything that a database can hold, with text that is hard to keep."""

from mergeyard.domain.ids import PrNumber, QueueId, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.states import PrState
from mergeyard.domain.tokens import Scope
from mergeyard.ports.store import Store
from mergeyard.ports.writes import (
    AppendEntries,
    BeginTelling,
    DeleteExpired,
    DeleteQueue,
    Fact,
    KeepAnswer,
    KeepConversation,
    KeepDelivery,
    KeepStatus,
    KeepTargets,
    MoveCursor,
    NoteStuck,
    RecordKind,
    SaveSession,
    SaveToken,
)
from tests.contract.store.given import (
    HEAD,
    MAIN,
    NEXT,
    OTHER,
    QUEUE,
    REPO,
    a_queue,
    a_run,
    a_session,
    a_status,
    a_stay,
    a_token,
    a_turn,
    a_webhook,
    an_answer,
    an_entry,
    opened,
)

HOSTILE = "\0 \1 \2 'single' \"double\" \\ \r\n\t $1 :name %s é \u2028 \U0001f9ea \uffff"
BYTES = bytes(range(256))
GONE = QueueId("q0")
ELSEWHERE = Repo("git.local", HOSTILE, "other")


async def hold_everything(store: Store) -> None:
    async with opened(store):
        await hold_a_deleted_queue(store)
        await hold_live_queues(store)
        await hold_what_was_told(store)
        await hold_how_far_it_was_told(store)
        await store.commit(SaveSession(a_session("ada", token="ada")))


async def hold_a_deleted_queue(store: Store) -> None:
    await store.commit(a_queue(GONE))
    await store.commit(a_turn(1, a_stay(1, state=PrState.MERGED), a_run("r1", live=False), queue=GONE))
    await store.commit(DeleteQueue(GONE, 1, Instant(2)))


async def hold_live_queues(store: Store) -> None:
    await store.commit(a_queue(), a_queue(OTHER, key=NEXT), a_queue(QueueId("q3"), key=QueueKey(ELSEWHERE, HOSTILE)))
    await store.commit(a_turn(1, Fact("batch", "1", b"{}"), a_run("z"), a_run("a", started=3, decided=5)))
    await store.commit(a_turn(2, Fact("queue", HOSTILE, BYTES), Fact("batch", "1", None)))
    await store.commit(a_turn(3, a_stay(1, branch=HOSTILE, body=BYTES), a_stay(2, state=PrState.FAILED), a_run("m")))
    # Written once more, they keep the places that they had.
    await store.commit(a_turn(4, a_run("a", started=3, decided=5, live=False), a_run("z", body=BYTES), a_stay(3)))
    await store.commit(
        a_turn(1, Fact("queue", "", b""), a_stay(2**62), a_run("old", decided=5, live=False), queue=OTHER)
    )
    await store.commit(DeleteExpired(RecordKind.RUNS, ((OTHER, "old"),), Instant(9)))


async def hold_what_was_told(store: Store) -> None:
    await store.commit(
        AppendEntries((an_entry("one"), an_entry(HOSTILE, kind=HOSTILE, token="t1", bisecting=True, in_state=0)))
    )
    await store.commit(AppendEntries((an_entry("three", queue=None, ticket=None, source=None, first_run=True),)))
    await store.commit(KeepTargets(QUEUE, PrNumber(5), Sha(HEAD), BYTES, Instant(4)))
    await store.commit(KeepStatus(REPO, HEAD, a_status(HOSTILE, description=HOSTILE, suite=HOSTILE)))
    await store.commit(KeepStatus(ELSEWHERE, HEAD, a_status("unit")), KeepStatus(MAIN.repo, HEAD, a_status("\1")))
    await store.commit(KeepAnswer(an_answer(BYTES, key=HOSTILE), Instant(0)))
    await store.commit(SaveToken(a_token("ada")), SaveToken(a_token(HOSTILE, scopes=frozenset({Scope.READ}))))


async def hold_how_far_it_was_told(store: Store) -> None:
    await store.commit(BeginTelling(HOSTILE), MoveCursor(HOSTILE, OTHER, 7), NoteStuck("b", QUEUE, Instant(9)))
    await store.commit(KeepConversation(QUEUE, PrNumber(5), BYTES), KeepConversation(GONE, PrNumber(5), b""))
    await store.commit(a_webhook(HOSTILE, body=BYTES), a_webhook("w1"))
    await store.commit(KeepDelivery(HOSTILE, HOSTILE, BYTES), KeepDelivery("w1", "e1", b""))
