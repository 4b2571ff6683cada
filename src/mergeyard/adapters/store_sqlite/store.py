"""The store of one server: a SQLite file that one thread writes, and everybody reads.

Points are read where they are asked for, in microseconds. Lists are read on a thread, so that nobody waits for them.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from mergeyard.adapters.store_sqlite import rows
from mergeyard.adapters.store_sqlite.aside import ReaderAside
from mergeyard.adapters.store_sqlite.connecting import open_for_writing
from mergeyard.adapters.store_sqlite.reader import Reader
from mergeyard.adapters.store_sqlite.trouble import TROUBLES, Condition, in_words, not_open, slow
from mergeyard.adapters.store_sqlite.writer import Writer
from mergeyard.adapters.store_sqlite.writes import Beat
from mergeyard.domain.ids import PrNumber, QueueId, RunId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import Repo
from mergeyard.domain.sessions import Session
from mergeyard.domain.states import QueueState
from mergeyard.domain.statuses import Status
from mergeyard.domain.tokens import Token
from mergeyard.ports.store import (
    AuditedEntry,
    AuditPage,
    Changes,
    Figure,
    LoadedQueue,
    Page,
    ResultsPage,
    StoredEntry,
    StoredQueue,
    StoredRun,
)
from mergeyard.ports.writes import Answer, RecordKey, RecordKind, WebhookRow, Write

EARLIEST, LATEST = -(2**63), 2**63 - 1
"""The ends of what SQLite can count to."""
SECONDS_TO_CHECK = 2.0


class Hands(Struct, frozen=True):
    """What an open store works with."""

    writer: Writer
    points: Reader
    lists: ReaderAside


class SqliteStore:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._hands: Hands | None = None

    @property
    def _open(self) -> Hands:
        if self._hands is None:
            raise not_open(self._path)
        return self._hands

    @property
    def groups(self) -> int:
        """How often it wrote to the disk since it was opened."""
        return self._open.writer.groups

    async def open(self) -> None:
        try:
            connection = await asyncio.to_thread(open_for_writing, self._path)
            condition = Condition(self._path)
            points, lists = Reader(self._path, condition), ReaderAside(Reader(self._path, condition))
        except TROUBLES as error:
            raise in_words(error, self._path) from error
        self._hands = Hands(Writer(connection, self._path, condition), points, lists)

    async def close(self) -> None:
        """The writer goes last, so that it can empty the log into the database."""
        if self._hands is None:
            return
        hands, self._hands = self._hands, None
        hands.points.close()
        await asyncio.to_thread(hands.lists.close)
        await hands.writer.close()

    async def commit(self, *writes: Write) -> None:
        await self._open.writer.write(writes)

    async def check(self) -> None:
        try:
            async with asyncio.timeout(SECONDS_TO_CHECK):
                await self._open.writer.write((Beat(),))
        except TimeoutError:
            raise slow(self._path, SECONDS_TO_CHECK) from None

    async def queues(self) -> Sequence[StoredQueue]:
        return tuple(map(rows.queue_of, await self._open.lists.rows("queues")))

    async def load(self, queue: QueueId) -> LoadedQueue:
        return await self._open.lists.load(queue)

    async def changes(self, queue: QueueId, after: int) -> Changes | None:  # noqa: ARG002
        """Nobody else writes here, so nobody asks for it."""
        return None

    async def token(self, digest: bytes) -> Token | None:
        row = self._open.points.row("token", digest=digest)
        return rows.token_of(row) if row else None

    async def token_of_id(self, token: str) -> Token | None:
        row = self._open.points.row("token_of_id", id=token)
        return rows.token_of(row) if row else None

    async def tokens(self) -> Sequence[Token]:
        return tuple(map(rows.token_of, await self._open.lists.rows("tokens")))

    async def session(self, digest: bytes) -> Session | None:
        row = self._open.points.row("session", digest=digest)
        return rows.session_of(row) if row else None

    async def answer(self, token: str, key: str) -> Answer | None:
        row = self._open.points.row("answer", token=token, key=key)
        return rows.answer_of(row) if row else None

    async def targets(self, queue: QueueId, number: PrNumber, head: Sha) -> bytes | None:
        return self._open.points.value("targets", queue=queue, number=number, head=head)

    async def has_targets(self, queue: QueueId, number: PrNumber, head: Sha) -> bool:
        return bool(self._open.points.value("has_targets", queue=queue, number=number, head=head))

    async def any_targets(self, repo: Repo) -> bool:
        return bool(self._open.points.value("any_targets", host=repo.host, owner=repo.owner, name=repo.name))

    async def targets_size(self, token: str) -> int:
        ((size,),) = await self._open.lists.rows("targets_size", token=token)
        return size

    async def queues_ever(self, repo: Repo) -> Sequence[QueueId]:
        found = self._open.points.rows("queues_ever", host=repo.host, owner=repo.owner, name=repo.name)
        return tuple(QueueId(queue) for (queue,) in found)

    async def statuses(self, repo: Repo, sha: Sha) -> Sequence[Status]:
        found = self._open.points.rows("statuses", host=repo.host, owner=repo.owner, name=repo.name, sha=sha)
        return tuple(map(rows.status_of, found))

    async def last_stay(self, queue: QueueId, number: PrNumber) -> bytes | None:
        return self._open.points.value("last_stay", queue=queue, number=number)

    async def last_stay_of_branch(self, queue: QueueId, branch: str) -> bytes | None:
        return self._open.points.value("last_stay_of_branch", queue=queue, branch=branch)

    async def stay(self, queue: QueueId, ticket: Ticket) -> bytes | None:
        return self._open.points.value("stay", queue=queue, ticket=ticket)

    async def stays_of(self, queue: QueueId, number: PrNumber, take: int) -> Sequence[bytes]:
        return await self._open.lists.bodies("stays_of", queue=queue, number=number, take=take)

    async def stays(self, queue: QueueId, page: Page) -> Sequence[bytes]:
        lists, before = self._open.lists, LATEST if page.before is None else page.before
        if page.since is not None or page.until is not None:
            return await lists.bodies(
                "stays_submitted",
                queue=queue,
                state=page.state,
                since=EARLIEST if page.since is None else page.since,
                until=LATEST if page.until is None else page.until,
                before=before,
                take=page.take,
            )
        if page.state is not None:
            return await lists.bodies("stays_in_state", queue=queue, state=page.state, before=before, take=page.take)
        return await lists.bodies("stays", queue=queue, before=before, take=page.take)

    async def concluded_stays(self, queue: QueueId, take: int) -> Sequence[bytes]:
        return await self._open.lists.bodies("concluded_stays", queue=queue, take=take)

    async def run(self, queue: QueueId, run: RunId) -> bytes | None:
        return self._open.points.value("run", queue=queue, id=run)

    async def had_run(self, queue: QueueId, run: RunId) -> bool:
        return bool(self._open.points.value("had_run", queue=queue, id=run))

    async def queue_of_run(self, run: RunId) -> StoredQueue | None:
        row = self._open.points.row("queue_of_run", id=run)
        return rows.queue_of(row) if row else None

    async def decided_runs(
        self, queue: QueueId, since: Instant, until: Instant, take: int, before: int = 0
    ) -> Sequence[StoredRun]:
        period = {"since": since, "until": until, "before": before}
        found = await self._open.lists.rows("decided_runs", queue=queue, take=take, **period)
        return tuple(map(rows.run_of, found))

    async def results(self, queue: QueueId, since: Instant, until: Instant, offset: int, take: int) -> ResultsPage:
        period = {"queue": queue, "since": since, "until": until}
        ((total,),) = await self._open.lists.rows("count_results", **period)
        found = await self._open.lists.rows("results", **period, offset=offset, take=take)
        skipped = offset - found[0][0] if found else 0
        return ResultsPage(total, skipped, tuple(body for _, body in found))

    async def timeline(self, queue: QueueId, ticket: Ticket, take: int) -> Sequence[StoredEntry]:
        found = await self._open.lists.rows("timeline", queue=queue, ticket=ticket, take=take)
        return tuple(map(rows.entry_of, found))

    async def figures(self, queues: Sequence[QueueId], since: Instant, until: Instant) -> Sequence[Figure]:
        chosen = msgspec.json.encode(queues).decode()
        found = await self._open.lists.rows("figures", queues=chosen, since=since, until=until)
        return tuple(map(rows.figure_of, found))

    async def last_change(self, queue: QueueId, to: QueueState) -> bytes | None:
        return next(iter(await self._open.lists.bodies("last_change", queue=queue, to=to)), None)

    async def audit(self, page: AuditPage) -> Sequence[AuditedEntry]:
        asked = {
            **asdict(page),
            "before": LATEST if page.before is None else page.before,
            "repos": None if page.repos is None else msgspec.json.encode(list(map(str, page.repos))).decode(),
            "since": EARLIEST if page.since is None else page.since,
            "until": LATEST if page.until is None else page.until,
        }
        return tuple(map(rows.audited_of, await self._open.lists.rows("audit", **asked)))

    async def entries(self, queue: QueueId, after: int, take: int) -> Sequence[StoredEntry]:
        return tuple(map(rows.entry_of, await self._open.lists.rows("entries", queue=queue, after=after, take=take)))

    async def cursor(self, teller: str, queue: QueueId) -> int:
        return self._open.points.value("cursor", teller=teller, queue=queue) or 0

    async def stuck_since(self, teller: str, queue: QueueId) -> Instant | None:
        return self._open.points.value("stuck_since", teller=teller, queue=queue)

    async def behind(self, teller: str) -> Sequence[StoredQueue]:
        return tuple(map(rows.queue_of, await self._open.lists.rows("behind", teller=teller)))

    async def expired(self, kind: RecordKind, before: Instant, take: int) -> Sequence[RecordKey]:
        match kind:
            case RecordKind.SUBMISSIONS:
                found = await self._open.lists.rows("expired_stays", before=before, take=take)
            case RecordKind.RUNS:
                found = await self._open.lists.rows("expired_runs", before=before, take=take)
            case RecordKind.JOURNAL:
                found = await self._open.lists.rows("expired_entries", before=before, take=take)
            case RecordKind.TARGETS:
                found = await self._open.lists.rows("expired_targets", before=before, take=take)
            case RecordKind.STATUSES:
                found = await self._open.lists.rows("expired_statuses", before=before, take=take)
        return tuple(map(tuple, found))

    async def conversation(self, queue: QueueId, number: PrNumber) -> bytes | None:
        return self._open.points.value("conversation", queue=queue, number=number)

    async def webhooks(self) -> Sequence[WebhookRow]:
        return tuple(map(rows.webhook_of, await self._open.lists.rows("webhooks")))

    async def deliveries(self, webhook: str, take: int) -> Sequence[bytes]:
        return await self._open.lists.bodies("deliveries", webhook=webhook, take=take)

    async def delivery(self, webhook: str, event: str) -> bytes | None:
        return self._open.points.value("delivery", webhook=webhook, event=event)
