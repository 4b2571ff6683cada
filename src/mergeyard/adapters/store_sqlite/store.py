"""Store of a single server: a SQLite file with one writer thread and any number of readers.

Single rows are read on the event loop, which takes microseconds. Lists are read on a thread, so that they do not block
the event loop.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from mergeyard.adapters.store_sqlite import connection as db
from mergeyard.adapters.store_sqlite import rows
from mergeyard.adapters.store_sqlite.rows import Reader
from mergeyard.adapters.store_sqlite.writer import Writer
from mergeyard.adapters.store_sqlite.writes import WriteProbe
from mergeyard.domain.access import Session, Token
from mergeyard.domain.ids import PullRequestNumber, QueueId, Repo, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import Status
from mergeyard.domain.states import QueueState
from mergeyard.domain.timestamps import Instant
from mergeyard.ports import store
from mergeyard.ports.writes import RecordKey, RecordKind, StoredResponse, WebhookRow, Write


class ThreadedReader:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store-reader")

    def close(self) -> None:
        self._thread.shutdown()
        self._reader.close()

    async def fetch_rows(self, query: str, **values: db.Value) -> list[db.Row]:
        read = partial(self._reader.fetch_rows, query, **values)
        return await asyncio.get_running_loop().run_in_executor(self._thread, read)

    async def fetch_bodies(self, query: str, **values: db.Value) -> tuple[bytes, ...]:
        return tuple(body for (body,) in await self.fetch_rows(query, **values))

    async def load(self, queue: QueueId) -> store.LoadedQueue:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._reader.load, queue)


EARLIEST, LATEST = -(2**63), 2**63 - 1
"""The range of SQLite's integers."""
CHECK_TIMEOUT_S = 2.0


class OpenStore(Struct, frozen=True):
    """The connections of a store while it is open."""

    writer: Writer
    points: Reader
    lists: ThreadedReader


class SqliteStore:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: OpenStore | None = None

    @property
    def _open(self) -> OpenStore:
        if self._opened is None:
            raise db.not_open_error(self._path)
        return self._opened

    @property
    def group_count(self) -> int:
        """How many groups were committed since the store was opened."""
        return self._open.writer.group_count

    async def open(self) -> None:
        try:
            connection = await asyncio.to_thread(db.open_for_writing, self._path)
            condition = db.CorruptionState(self._path)
            points, lists = Reader(self._path, condition), ThreadedReader(Reader(self._path, condition))
        except db.DATABASE_ERRORS as error:
            raise db.to_store_error(error, self._path) from error
        self._opened = OpenStore(Writer(connection, self._path, condition), points, lists)

    async def close(self) -> None:
        """Closes the writer last: only the last connection can move the whole WAL into the database file."""
        if self._opened is None:
            return
        opened, self._opened = self._opened, None
        opened.points.close()
        await asyncio.to_thread(opened.lists.close)
        await opened.writer.close()

    async def commit(self, *writes: Write) -> None:
        await self._open.writer.write(writes)

    async def check(self) -> None:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                await self._open.writer.write((WriteProbe(),))
        except TimeoutError:
            raise db.slow_write_error(self._path, CHECK_TIMEOUT_S) from None

    async def queues(self) -> Sequence[store.StoredQueue]:
        return tuple(map(rows.decode_queue, await self._open.lists.fetch_rows("queues")))

    async def load(self, queue: QueueId) -> store.LoadedQueue:
        return await self._open.lists.load(queue)

    async def changes(self, queue: QueueId, after: int) -> store.QueueChanges | None:  # noqa: ARG002
        """Not supported: no other replica writes to this file, so the service never asks for changes."""
        return None

    async def token(self, digest: bytes) -> Token | None:
        row = self._open.points.fetch_row("token", digest=digest)
        return rows.decode_token(row) if row else None

    async def token_by_id(self, token: str) -> Token | None:
        row = self._open.points.fetch_row("token_by_id", id=token)
        return rows.decode_token(row) if row else None

    async def tokens(self) -> Sequence[Token]:
        return tuple(map(rows.decode_token, await self._open.lists.fetch_rows("tokens")))

    async def session(self, digest: bytes) -> Session | None:
        row = self._open.points.fetch_row("session", digest=digest)
        return rows.decode_session(row) if row else None

    async def response(self, token: str, key: str) -> StoredResponse | None:
        row = self._open.points.fetch_row("response", token=token, key=key)
        return rows.decode_response(row) if row else None

    async def impacted_targets(self, queue: QueueId, number: PullRequestNumber, head: Sha) -> bytes | None:
        return self._open.points.fetch_value("impacted_targets", queue=queue, number=number, head=head)

    async def has_impacted_targets(self, queue: QueueId, number: PullRequestNumber, head: Sha) -> bool:
        return bool(self._open.points.fetch_value("has_impacted_targets", queue=queue, number=number, head=head))

    async def has_any_impacted_targets(self, repo: Repo) -> bool:
        return bool(self._open.points.fetch_value("has_any_impacted_targets", **asdict(repo)))

    async def impacted_targets_size(self, token: str) -> int:
        ((size,),) = await self._open.lists.fetch_rows("impacted_targets_size", token=token)
        return size

    async def all_queue_ids(self, repo: Repo) -> Sequence[QueueId]:
        found = self._open.points.fetch_rows("all_queue_ids", **asdict(repo))
        return tuple(QueueId(queue) for (queue,) in found)

    async def statuses(self, repo: Repo, sha: Sha) -> Sequence[Status]:
        found = self._open.points.fetch_rows("statuses", **asdict(repo), sha=sha)
        return tuple(map(rows.decode_status, found))

    async def last_submission(self, queue: QueueId, number: PullRequestNumber) -> bytes | None:
        return self._open.points.fetch_value("last_submission", queue=queue, number=number)

    async def last_submission_of_branch(self, queue: QueueId, branch: str) -> bytes | None:
        return self._open.points.fetch_value("last_submission_of_branch", queue=queue, head_branch=branch)

    async def submission(self, queue: QueueId, submission_id: SubmissionId) -> bytes | None:
        return self._open.points.fetch_value("submission", queue=queue, submission_id=submission_id)

    async def submissions_of(self, queue: QueueId, number: PullRequestNumber, take: int) -> Sequence[bytes]:
        return await self._open.lists.fetch_bodies("submissions_of", queue=queue, number=number, take=take)

    async def submissions(self, queue: QueueId, query: store.SubmissionsQuery) -> Sequence[bytes]:
        lists, before = self._open.lists, LATEST if query.before is None else query.before
        page = {"queue": queue, "before": before, "take": query.take}
        period = {
            "since": EARLIEST if query.since is None else query.since,
            "until": LATEST if query.until is None else query.until,
        }
        if query.concluded_since is not None:
            ended = {"concluded_since": query.concluded_since, "state": query.state}
            return await lists.fetch_bodies("submissions_by_end", **page, **period, **ended)
        if query.since is not None or query.until is not None:
            return await lists.fetch_bodies("submissions_by_time", **page, **period, state=query.state)
        if query.state is not None:
            return await lists.fetch_bodies("submissions_in_state", **page, state=query.state)
        return await lists.fetch_bodies("submissions", **page)

    async def concluded_submissions(self, queue: QueueId, take: int) -> Sequence[bytes]:
        return await self._open.lists.fetch_bodies("concluded_submissions", queue=queue, take=take)

    async def run(self, queue: QueueId, run: RunId) -> bytes | None:
        return self._open.points.fetch_value("run", queue=queue, id=run)

    async def had_run(self, queue: QueueId, run: RunId) -> bool:
        return bool(self._open.points.fetch_value("had_run", queue=queue, id=run))

    async def queue_of_run(self, run: RunId) -> store.StoredQueue | None:
        row = self._open.points.fetch_row("queue_of_run", id=run)
        return rows.decode_queue(row) if row else None

    async def decided_runs(
        self, queue: QueueId, since: Instant, until: Instant, take: int, before: int = 0
    ) -> Sequence[store.StoredRun]:
        period = {"since": since, "until": until, "before": before}
        found = await self._open.lists.fetch_rows("decided_runs", queue=queue, take=take, **period)
        return tuple(map(rows.decode_run, found))

    async def results(
        self, queue: QueueId, since: Instant, until: Instant, offset: int, take: int
    ) -> store.ResultsPage:
        period = {"queue": queue, "since": since, "until": until}
        ((total,),) = await self._open.lists.fetch_rows("count_results", **period)
        found = await self._open.lists.fetch_rows("results", **period, offset=offset, take=take)
        skipped = offset - found[0][0] if found else 0
        return store.ResultsPage(total, skipped, tuple(body for _, body in found))

    async def timeline(self, queue: QueueId, submission_id: SubmissionId, take: int) -> Sequence[store.StoredEntry]:
        found = await self._open.lists.fetch_rows("timeline", queue=queue, submission_id=submission_id, take=take)
        return tuple(map(rows.decode_entry, found))

    async def transitions(
        self, queues: Sequence[QueueId], since: Instant, until: Instant
    ) -> Sequence[store.TransitionRow]:
        encoded = msgspec.json.encode(queues).decode()
        found = await self._open.lists.fetch_rows("transitions", queues=encoded, since=since, until=until)
        return tuple(map(rows.decode_transition, found))

    async def last_change(self, queue: QueueId, to: QueueState) -> bytes | None:
        return next(iter(await self._open.lists.fetch_bodies("last_change", queue=queue, to_state=to)), None)

    async def audit_entries(self, query: store.AuditQuery) -> Sequence[store.AuditedEntry]:
        values = {
            "take": query.take,
            "number": query.number,
            "actor": query.actor,
            "kind": query.kind,
            "target_branch": query.branch,
            "before": LATEST if query.before is None else query.before,
            "repos": None if query.repos is None else msgspec.json.encode(list(map(str, query.repos))).decode(),
            "since": EARLIEST if query.since is None else query.since,
            "until": LATEST if query.until is None else query.until,
        }
        return tuple(map(rows.decode_audited_entry, await self._open.lists.fetch_rows("audit_entries", **values)))

    async def entries(self, queue: QueueId, after: int, take: int) -> Sequence[store.StoredEntry]:
        return tuple(
            map(rows.decode_entry, await self._open.lists.fetch_rows("entries", queue=queue, after=after, take=take))
        )

    async def cursor(self, consumer: str, queue: QueueId) -> int:
        return self._open.points.fetch_value("cursor", consumer=consumer, queue=queue) or 0

    async def stalled_since(self, consumer: str, queue: QueueId) -> Instant | None:
        return self._open.points.fetch_value("stalled_since", consumer=consumer, queue=queue)

    async def queues_with_unread_entries(self, consumer: str) -> Sequence[store.StoredQueue]:
        return tuple(
            map(rows.decode_queue, await self._open.lists.fetch_rows("queues_with_unread_entries", consumer=consumer))
        )

    async def expired_keys(self, kind: RecordKind, before: Instant, take: int) -> Sequence[RecordKey]:
        match kind:
            case RecordKind.SUBMISSIONS:
                found = await self._open.lists.fetch_rows("expired_submissions", before=before, take=take)
            case RecordKind.RUNS:
                found = await self._open.lists.fetch_rows("expired_runs", before=before, take=take)
            case RecordKind.JOURNAL:
                found = await self._open.lists.fetch_rows("expired_entries", before=before, take=take)
            case RecordKind.IMPACTED_TARGETS:
                found = await self._open.lists.fetch_rows("expired_impacted_targets", before=before, take=take)
            case RecordKind.STATUSES:
                found = await self._open.lists.fetch_rows("expired_statuses", before=before, take=take)
        return tuple(map(tuple, found))

    async def thread_state(self, queue: QueueId, number: PullRequestNumber) -> bytes | None:
        return self._open.points.fetch_value("thread_state", queue=queue, number=number)

    async def webhooks(self) -> Sequence[WebhookRow]:
        return tuple(map(rows.decode_webhook, await self._open.lists.fetch_rows("webhooks")))

    async def deliveries(self, webhook: str, take: int) -> Sequence[bytes]:
        return await self._open.lists.fetch_bodies("deliveries", webhook=webhook, take=take)

    async def delivery(self, webhook: str, event: str) -> bytes | None:
        return self._open.points.fetch_value("delivery", webhook=webhook, event=event)
