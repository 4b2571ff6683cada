"""What the tests of the store put into it, with defaults, so that a test names only what matters to it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TypeVar

from mergeyard.domain.ids import PrNumber, QueueId, RunId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.sessions import Session
from mergeyard.domain.states import TERMINAL, PrState, QueueState, RunStatus
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.domain.tokens import DEFAULT_SCOPES, Scope, Token
from mergeyard.ports.store import Store
from mergeyard.ports.writes import (
    Answer,
    CreateQueue,
    EntryRow,
    Fact,
    RunRow,
    SaveTurn,
    SaveWebhook,
    StayRow,
    WebhookRow,
)

REPO = Repo("git.local", "acme", "app")
MAIN = QueueKey(REPO, "main")
NEXT = QueueKey(REPO, "next")
QUEUE = QueueId("q1")
OTHER = QueueId("q2")
HEAD = Sha("a" * 40)

AnyStore = TypeVar("AnyStore", bound=Store)


@asynccontextmanager
async def opened(store: AnyStore) -> AsyncGenerator[AnyStore]:
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def a_queue(queue: QueueId = QUEUE, *, key: QueueKey = MAIN) -> CreateQueue:
    return CreateQueue(queue, key, Instant(1))


def a_turn(
    version: int,
    *parts: Fact | StayRow | RunRow,
    queue: QueueId = QUEUE,
) -> SaveTurn:
    return SaveTurn(
        queue=queue,
        version=version,
        facts=tuple(part for part in parts if isinstance(part, Fact)),
        stays=tuple(part for part in parts if isinstance(part, StayRow)),
        runs=tuple(part for part in parts if isinstance(part, RunRow)),
    )


def a_stay(
    ticket: int,
    *,
    number: int | None = None,
    branch: str = "feature",
    state: PrState = PrState.PENDING,
    submitted_at: int | None = None,
    ended_at: int = 1,
    body: bytes | None = None,
) -> StayRow:
    return StayRow(
        ticket=Ticket(ticket),
        number=PrNumber(ticket if number is None else number),
        branch=branch,
        state=state,
        submitted_at=Instant(ticket if submitted_at is None else submitted_at),
        ended_at=Instant(ended_at) if state in TERMINAL else None,
        live=state not in TERMINAL,
        body=b"stay %d" % ticket if body is None else body,
    )


def a_run(
    name: str,
    *,
    started: int | None = None,
    decided: int | None = None,
    ended: int = 1,
    live: bool = True,
    tested: int = 1,
    tip: Sha | None = None,
    body: bytes | None = None,
) -> RunRow:
    return RunRow(
        id=RunId(name),
        status=RunStatus.IN_PROGRESS if decided is None else RunStatus.SUCCEEDED,
        tested=tested,
        tip=tip,
        started_at=None if started is None else Instant(started),
        decided_at=None if decided is None else Instant(decided),
        ended_at=None if live else Instant(ended),
        live=live,
        body=name.encode() if body is None else body,
    )


def an_entry(
    words: str,
    *,
    queue: QueueId | None = QUEUE,
    at: int = 1,
    kind: str = "PrChanged",
    actor: str = "ada",
    token: str | None = None,
    ticket: int | None = 1,
    number: int | None = 1,
    source: PrState | QueueState | None = PrState.PENDING,
    to: PrState | QueueState = PrState.TESTING,
    bisecting: bool = False,
    in_state: int | None = None,
    in_queue: int | None = None,
    first_run: bool = False,
) -> EntryRow:
    return EntryRow(
        queue=queue,
        at=Instant(at),
        kind=kind,
        actor=actor,
        token=token,
        ticket=None if ticket is None else Ticket(ticket),
        number=None if number is None else PrNumber(number),
        source=source,
        to=to,
        reason="tests_started",
        bisecting=bisecting,
        in_state=in_state,
        in_queue=in_queue,
        first_run=first_run,
        body=words.encode(),
    )


def a_status(
    context: str = "unit",
    *,
    state: StatusState = StatusState.SUCCESS,
    at: int = 1,
    description: str = "",
    suite: str = "",
) -> Status:
    return Status(context=context, state=state, at=Instant(at), url="https://ci", description=description, suite=suite)


def an_answer(body: bytes, *, token: str = "t1", key: str = "k1", at: int = 1) -> Answer:
    return Answer(token, key, b"digest", body, Instant(at))


def a_token(
    name: str,
    *,
    scopes: frozenset[Scope] = DEFAULT_SCOPES,
    repos: frozenset[Repo] = frozenset(),
    created_at: int = 1,
    revoked_at: int | None = None,
) -> Token:
    return Token(
        id=name,
        name=f"the token of {name}",
        digest=digest_of(name),
        scopes=scopes,
        repos=repos,
        created_at=Instant(created_at),
        expires_at=Instant(99),
        revoked_at=None if revoked_at is None else Instant(revoked_at),
    )


def a_session(
    name: str, *, token: str | None = None, groups: frozenset[str] = frozenset(), expires_at: int = 99
) -> Session:
    return Session(
        digest=digest_of(name),
        token=token,
        name=f"the session of {name}",
        subject=f"https://id {name}",
        groups=groups,
        created_at=Instant(1),
        expires_at=Instant(expires_at),
    )


def a_webhook(name: str = "w1", *, version: int = 1, body: bytes = b"webhook") -> SaveWebhook:
    return SaveWebhook(WebhookRow(name, version, body))


def digest_of(name: str) -> bytes:
    return b"digest of " + name.encode()
