"""Rows for the tests of the store, with defaults, so that a test names only what matters."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TypeVar

from mergeyard.domain.access import DEFAULT_SCOPES, Scope, Session, Token
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, Repo, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.states import TERMINAL_STATES, PullRequestState, QueueState, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import Store
from mergeyard.ports.writes import (
    CreateQueue,
    EntryRow,
    QueuePart,
    RunRow,
    SaveDecision,
    SaveWebhook,
    StoredResponse,
    SubmissionRow,
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


def a_decision(
    version: int,
    *parts: QueuePart | SubmissionRow | RunRow,
    queue: QueueId = QUEUE,
) -> SaveDecision:
    return SaveDecision(
        queue=queue,
        version=version,
        parts=tuple(part for part in parts if isinstance(part, QueuePart)),
        submissions=tuple(part for part in parts if isinstance(part, SubmissionRow)),
        runs=tuple(part for part in parts if isinstance(part, RunRow)),
    )


def a_submission(
    submission_id: int,
    *,
    number: int | None = None,
    branch: str = "feature",
    state: PullRequestState = PullRequestState.PENDING,
    submitted_at: int | None = None,
    ended_at: int = 1,
    body: bytes | None = None,
) -> SubmissionRow:
    return SubmissionRow(
        submission_id=SubmissionId(submission_id),
        number=PullRequestNumber(submission_id if number is None else number),
        branch=branch,
        state=state,
        submitted_at=Instant(submission_id if submitted_at is None else submitted_at),
        ended_at=Instant(ended_at) if state in TERMINAL_STATES else None,
        live=state not in TERMINAL_STATES,
        body=b"submission %d" % submission_id if body is None else body,
    )


def a_run(
    name: str,
    *,
    started: int | None = None,
    decided: int | None = None,
    ended: int = 1,
    live: bool = True,
    tested_count: int = 1,
    tip: Sha | None = None,
    body: bytes | None = None,
) -> RunRow:
    return RunRow(
        id=RunId(name),
        status=RunStatus.IN_PROGRESS if decided is None else RunStatus.SUCCEEDED,
        tested_count=tested_count,
        tip=tip,
        started_at=None if started is None else Instant(started),
        decided_at=None if decided is None else Instant(decided),
        ended_at=None if live else Instant(ended),
        live=live,
        body=name.encode() if body is None else body,
    )


def an_entry(
    text: str,
    *,
    queue: QueueId | None = QUEUE,
    at: int = 1,
    kind: str = "PullRequestChanged",
    actor: str = "ada",
    token: str | None = None,
    submission_id: int | None = 1,
    number: int | None = 1,
    source: PullRequestState | QueueState | None = PullRequestState.PENDING,
    to: PullRequestState | QueueState = PullRequestState.TESTING,
    reason: str = "tests_started",
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
        submission_id=None if submission_id is None else SubmissionId(submission_id),
        number=None if number is None else PullRequestNumber(number),
        source=source,
        to=to,
        reason=reason,
        bisecting=bisecting,
        ms_in_state=in_state,
        ms_in_queue=in_queue,
        first_run=first_run,
        body=text.encode(),
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


def a_response(body: bytes, *, token: str = "t1", key: str = "k1", at: int = 1) -> StoredResponse:
    return StoredResponse(token, key, b"digest", body, Instant(at))


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
