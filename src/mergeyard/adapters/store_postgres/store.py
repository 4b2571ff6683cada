"""The store of many replicas: a PostgreSQL database that all of them write and read."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from mergeyard.adapters.store_postgres import rows
from mergeyard.adapters.store_postgres.committing import Committer
from mergeyard.adapters.store_postgres.connecting import connect_many, connect_patiently
from mergeyard.adapters.store_postgres.duties import Duties
from mergeyard.adapters.store_postgres.ears import Ears
from mergeyard.adapters.store_postgres.lines import Lines
from mergeyard.adapters.store_postgres.migrating import migrate
from mergeyard.adapters.store_postgres.place import place_of
from mergeyard.adapters.store_postgres.reader import Reader
from mergeyard.adapters.store_postgres.trouble import not_open, told_in_words
from mergeyard.domain.ids import PrNumber, QueueId, RunId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.sessions import Session
from mergeyard.domain.states import QueueState
from mergeyard.domain.statuses import Status
from mergeyard.domain.tokens import Token
from mergeyard.ports.sharing import Duty, Hear, Roster
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
"""The ends of what PostgreSQL can count to."""
SECONDS_TO_CHECK = 2.0


class Hands(Struct, frozen=True):
    """What an open store works with."""

    lines: Lines
    committer: Committer
    reader: Reader
    duties: Duties


class PostgresStore:
    def __init__(self, url: str) -> None:
        self._url = url
        self._place = place_of(url)
        self._hands: Hands | None = None
        self._ears: Ears | None = None

    @property
    def _open(self) -> Hands:
        if self._hands is None:
            raise not_open(self._place)
        return self._hands

    @property
    def _reader(self) -> Reader:
        return self._open.reader

    async def open(self) -> None:
        with told_in_words(self._place):
            connection = await connect_patiently(self._url)
            try:
                await migrate(connection, self._place)
            finally:
                await connection.close()
            lines = Lines(await connect_many(self._url), self._place)
        reader = Reader(lines)
        self._hands = Hands(lines, Committer(lines), reader, Duties(reader))

    async def close(self) -> None:
        """Hears no more, then finishes what waits."""
        if self._hands is None:
            return
        hands, self._hands = self._hands, None
        ears, self._ears = self._ears, None
        if ears is not None:
            await ears.close()
        await hands.committer.close()
        await hands.lines.close()

    # What every store does

    async def commit(self, *writes: Write) -> None:
        await self._open.committer.commit(writes)

    async def check(self) -> None:
        with told_in_words(self._place):
            async with asyncio.timeout(SECONDS_TO_CHECK):
                await self._reader.rows("beat")

    async def queues(self) -> Sequence[StoredQueue]:
        return tuple(map(rows.queue_of, await self._reader.rows("queues")))

    async def load(self, queue: QueueId) -> LoadedQueue:
        return await self._reader.load(queue)

    async def changes(self, queue: QueueId, after: int) -> Changes | None:
        return await self._reader.changes(queue, after)

    async def token(self, digest: bytes) -> Token | None:
        row = await self._reader.row("token", digest=digest)
        return rows.token_of(row) if row else None

    async def token_of_id(self, token: str) -> Token | None:
        row = await self._reader.row("token_of_id", id=token)
        return rows.token_of(row) if row else None

    async def tokens(self) -> Sequence[Token]:
        return tuple(map(rows.token_of, await self._reader.rows("tokens")))

    async def session(self, digest: bytes) -> Session | None:
        row = await self._reader.row("session", digest=digest)
        return rows.session_of(row) if row else None

    async def answer(self, token: str, key: str) -> Answer | None:
        row = await self._reader.row("answer", token=token, key=key)
        return rows.answer_of(row) if row else None

    async def targets(self, queue: QueueId, number: PrNumber, head: Sha) -> bytes | None:
        return await self._reader.value("targets", queue=queue, number=number, head=head)

    async def has_targets(self, queue: QueueId, number: PrNumber, head: Sha) -> bool:
        return await self._reader.value("has_targets", queue=queue, number=number, head=head)

    async def any_targets(self, repo: Repo) -> bool:
        return await self._reader.value("any_targets", **asdict(repo))

    async def targets_size(self, token: str) -> int:
        ((size,),) = await self._reader.rows("targets_size", token=token)
        return size

    async def queues_ever(self, repo: Repo) -> Sequence[QueueId]:
        return tuple(QueueId(queue) for (queue,) in await self._reader.rows("queues_ever", **asdict(repo)))

    async def statuses(self, repo: Repo, sha: Sha) -> Sequence[Status]:
        return tuple(map(rows.status_of, await self._reader.rows("statuses", **asdict(repo), sha=sha)))

    async def last_stay(self, queue: QueueId, number: PrNumber) -> bytes | None:
        return await self._reader.value("last_stay", queue=queue, number=number)

    async def last_stay_of_branch(self, queue: QueueId, branch: str) -> bytes | None:
        return await self._reader.value("last_stay_of_branch", queue=queue, branch=branch)

    async def stay(self, queue: QueueId, ticket: Ticket) -> bytes | None:
        return await self._reader.value("stay", queue=queue, ticket=ticket)

    async def stays_of(self, queue: QueueId, number: PrNumber, take: int) -> Sequence[bytes]:
        return await self._reader.bodies("stays_of", queue=queue, number=number, take=take)

    async def stays(self, queue: QueueId, page: Page) -> Sequence[bytes]:
        reader, before = self._reader, LATEST if page.before is None else page.before
        if page.since is not None or page.until is not None:
            return await reader.bodies(
                "stays_submitted",
                queue=queue,
                state=page.state,
                since=EARLIEST if page.since is None else page.since,
                until=LATEST if page.until is None else page.until,
                before=before,
                take=page.take,
            )
        if page.state is not None:
            return await reader.bodies("stays_in_state", queue=queue, state=page.state, before=before, take=page.take)
        return await reader.bodies("stays", queue=queue, before=before, take=page.take)

    async def concluded_stays(self, queue: QueueId, take: int) -> Sequence[bytes]:
        return await self._reader.bodies("concluded_stays", queue=queue, take=take)

    async def run(self, queue: QueueId, run: RunId) -> bytes | None:
        return await self._reader.value("run", queue=queue, id=run)

    async def had_run(self, queue: QueueId, run: RunId) -> bool:
        return await self._reader.value("had_run", queue=queue, id=run)

    async def queue_of_run(self, run: RunId) -> StoredQueue | None:
        row = await self._reader.row("queue_of_run", id=run)
        return rows.queue_of(row) if row else None

    async def decided_runs(
        self, queue: QueueId, since: Instant, until: Instant, take: int, before: int = 0
    ) -> Sequence[StoredRun]:
        period = {"since": since, "until": until, "before": before}
        found = await self._reader.rows("decided_runs", queue=queue, take=take, **period)
        return tuple(map(rows.run_of, found))

    async def results(self, queue: QueueId, since: Instant, until: Instant, offset: int, take: int) -> ResultsPage:
        period = {"queue": queue, "since": since, "until": until}
        ((total,),) = await self._reader.rows("count_results", **period)
        found = await self._reader.rows("results", **period, offset=offset, take=take)
        skipped = offset - found[0][0] if found else 0
        return ResultsPage(total, skipped, tuple(body for _, body in found))

    async def timeline(self, queue: QueueId, ticket: Ticket, take: int) -> Sequence[StoredEntry]:
        found = await self._reader.rows("timeline", queue=queue, ticket=ticket, take=take)
        return tuple(map(rows.entry_of, found))

    async def figures(self, queues: Sequence[QueueId], since: Instant, until: Instant) -> Sequence[Figure]:
        found = await self._reader.rows("figures", queues=queues, since=since, until=until)
        return tuple(map(rows.figure_of, found))

    async def last_change(self, queue: QueueId, to: QueueState) -> bytes | None:
        return await self._reader.value("last_change", queue=queue, to=to)

    async def audit(self, page: AuditPage) -> Sequence[AuditedEntry]:
        asked = {
            **asdict(page),
            "before": LATEST if page.before is None else page.before,
            "repos": None if page.repos is None else list(map(str, page.repos)),
            "since": EARLIEST if page.since is None else page.since,
            "until": LATEST if page.until is None else page.until,
        }
        return tuple(map(rows.audited_of, await self._reader.rows("audit", **asked)))

    async def entries(self, queue: QueueId, after: int, take: int) -> Sequence[StoredEntry]:
        return tuple(map(rows.entry_of, await self._reader.rows("entries", queue=queue, after=after, take=take)))

    async def cursor(self, teller: str, queue: QueueId) -> int:
        return await self._reader.value("cursor", teller=teller, queue=queue) or 0

    async def stuck_since(self, teller: str, queue: QueueId) -> Instant | None:
        return await self._reader.value("stuck_since", teller=teller, queue=queue)

    async def behind(self, teller: str) -> Sequence[StoredQueue]:
        return tuple(map(rows.queue_of, await self._reader.rows("behind", teller=teller)))

    async def expired(self, kind: RecordKind, before: Instant, take: int) -> Sequence[RecordKey]:
        match kind:
            case RecordKind.SUBMISSIONS:
                found = await self._reader.rows("expired_stays", before=before, take=take)
            case RecordKind.RUNS:
                found = await self._reader.rows("expired_runs", before=before, take=take)
            case RecordKind.JOURNAL:
                found = await self._reader.rows("expired_entries", before=before, take=take)
            case RecordKind.TARGETS:
                found = await self._reader.rows("expired_targets", before=before, take=take)
            case RecordKind.STATUSES:
                found = await self._reader.rows("expired_statuses", before=before, take=take)
        return tuple(map(rows.key_of, found))

    async def conversation(self, queue: QueueId, number: PrNumber) -> bytes | None:
        return await self._reader.value("conversation", queue=queue, number=number)

    async def webhooks(self) -> Sequence[WebhookRow]:
        return tuple(map(rows.webhook_of, await self._reader.rows("webhooks")))

    async def deliveries(self, webhook: str, take: int) -> Sequence[bytes]:
        return await self._reader.bodies("deliveries", webhook=webhook, take=take)

    async def delivery(self, webhook: str, event: str) -> bytes | None:
        return await self._reader.value("delivery", webhook=webhook, event=event)

    # What replicas need beyond that

    async def find(self, key: QueueKey) -> StoredQueue | None:
        row = await self._reader.row("queue_of_branch", **asdict(key.repo), branch=key.branch)
        return rows.queue_of(row) if row else None

    async def newer(self, known: Collection[tuple[QueueId, int]]) -> Sequence[StoredQueue]:
        ids, versions = [queue for queue, _ in known], [version for _, version in known]
        return tuple(map(rows.queue_of, await self._reader.rows("newer_queues", ids=ids, versions=versions)))

    async def of_repo(self, repo: Repo) -> Sequence[StoredQueue]:
        return tuple(map(rows.queue_of, await self._reader.rows("queues_of_repo", **asdict(repo))))

    async def on_duty(self, replica: str) -> Sequence[StoredQueue]:
        return tuple(map(rows.queue_of, await self._reader.rows("queues_on_duty", replica=replica)))

    async def enlist(self, replica: str, lasting: int) -> None:
        await self._open.duties.enlist(replica, lasting)

    async def report(self, replica: str, lasting: int) -> Roster:
        return await self._open.duties.report(replica, lasting)

    async def claim(self, replica: str, most: int, at_hand: Collection[Repo], patience: int) -> Sequence[Duty]:
        return await self._open.duties.claim(replica, most, at_hand, patience)

    async def let_go(self, replica: str, repos: Collection[Repo]) -> None:
        await self._open.duties.let_go(replica, repos)

    async def resign(self, replica: str) -> None:
        await self._open.duties.resign(replica)

    async def call_out(self, *words: str) -> None:
        await self._reader.rows("call_out", words=words)

    async def listen(self, hear: Hear, on_deaf_ears: Callable[[], Awaitable[None]]) -> None:
        assert self._ears is None, "it listens already"
        ears = Ears(self._url, self._open.lines.place, hear, on_deaf_ears)
        await ears.open()
        self._ears = ears
