"""Store that several replicas share: a PostgreSQL database that all of them read and write."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from mergeyard.adapters.store_postgres import connection as db
from mergeyard.adapters.store_postgres import rows
from mergeyard.adapters.store_postgres.notifications import NotificationListener
from mergeyard.adapters.store_postgres.rows import Reader, decode_lease
from mergeyard.adapters.store_postgres.writes import Committer
from mergeyard.domain.access import Session, Token
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, Repo, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import Status
from mergeyard.domain.states import QueueState
from mergeyard.domain.timestamps import Instant
from mergeyard.ports import store
from mergeyard.ports.writes import RecordKey, RecordKind, StoredResponse, WebhookRow, Write


class LeaseQueries:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def register_worker(self, replica: str, ttl_ms: int) -> None:
        await self._reader.fetch_rows("register_worker", replica=replica, ttl_ms=ttl_ms)

    async def renew_leases(self, replica: str, ttl_ms: int) -> store.LeaseStatus:
        counts = await self._reader.fetch_row("renew_leases", replica=replica, ttl_ms=ttl_ms)
        if counts is None:
            raise store.LeaseLost(f"The leases of replica {replica} have expired.")
        repositories, workers = counts
        leases = tuple(map(decode_lease, await self._reader.fetch_rows("leases", replica=replica)))
        return store.LeaseStatus(leases=leases, repository_count=repositories, worker_count=workers)

    async def acquire_leases(
        self, replica: str, limit: int, mirrored: Collection[Repo], grace_ms: int
    ) -> Sequence[store.Lease]:
        columns = _to_columns(mirrored)
        acquired = await self._reader.fetch_rows(
            "acquire_leases", replica=replica, limit=limit, grace_ms=grace_ms, **columns
        )
        return tuple(map(decode_lease, acquired))

    async def release_leases(self, replica: str, repos: Collection[Repo]) -> None:
        await self._reader.fetch_rows("release_leases", replica=replica, **_to_columns(repos))

    async def unregister_worker(self, replica: str) -> None:
        await self._reader.fetch_rows("unregister_worker", replica=replica)


def _to_columns(repos: Collection[Repo]) -> dict[str, db.Value]:
    return {
        "hosts": [repo.host for repo in repos],
        "owners": [repo.owner for repo in repos],
        "names": [repo.name for repo in repos],
    }


EARLIEST, LATEST = -(2**63), 2**63 - 1
"""The range of BIGINT."""
CHECK_TIMEOUT_S = 2.0


class OpenStore(Struct, frozen=True):
    """The connections of a store while it is open."""

    pool: db.ConnectionPool
    committer: Committer
    reader: Reader
    leases: LeaseQueries


class PostgresStore:
    def __init__(self, url: str) -> None:
        self._url = url
        self._location = db.describe_location(url)
        self._opened: OpenStore | None = None
        self._listener: NotificationListener | None = None

    @property
    def _open(self) -> OpenStore:
        if self._opened is None:
            raise db.not_open_error(self._location)
        return self._opened

    @property
    def _reader(self) -> Reader:
        return self._open.reader

    async def open(self) -> None:
        with db.translate_errors(self._location):
            connection = await db.open_connection_without_timeout(self._url)
            try:
                await db.migrate(connection, self._location)
            finally:
                await connection.close()
            pool = db.ConnectionPool(await db.open_pool(self._url), self._location)
        reader = Reader(pool)
        self._opened = OpenStore(pool, Committer(pool), reader, LeaseQueries(reader))

    async def close(self) -> None:
        """Stops listening, then waits for the running commits."""
        if self._opened is None:
            return
        opened, self._opened = self._opened, None
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()
        await opened.committer.close()
        await opened.pool.close()

    # Store

    async def commit(self, *writes: Write) -> None:
        await self._open.committer.commit(writes)

    async def check(self) -> None:
        with db.translate_errors(self._location):
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                await self._reader.fetch_rows("probe_write")

    async def queues(self) -> Sequence[store.StoredQueue]:
        return tuple(map(rows.decode_queue, await self._reader.fetch_rows("queues")))

    async def load(self, queue: QueueId) -> store.LoadedQueue:
        return await self._reader.load(queue)

    async def changes(self, queue: QueueId, after: int) -> store.QueueChanges | None:
        return await self._reader.changes(queue, after)

    async def token(self, digest: bytes) -> Token | None:
        row = await self._reader.fetch_row("token", digest=digest)
        return rows.decode_token(row) if row else None

    async def token_by_id(self, token: str) -> Token | None:
        row = await self._reader.fetch_row("token_by_id", id=token)
        return rows.decode_token(row) if row else None

    async def tokens(self) -> Sequence[Token]:
        return tuple(map(rows.decode_token, await self._reader.fetch_rows("tokens")))

    async def session(self, digest: bytes) -> Session | None:
        row = await self._reader.fetch_row("session", digest=digest)
        return rows.decode_session(row) if row else None

    async def response(self, token: str, key: str) -> StoredResponse | None:
        row = await self._reader.fetch_row("response", token=token, key=key)
        return rows.decode_response(row) if row else None

    async def impacted_targets(self, queue: QueueId, number: PullRequestNumber, head: Sha) -> bytes | None:
        return await self._reader.fetch_value("impacted_targets", queue=queue, number=number, head=head)

    async def has_impacted_targets(self, queue: QueueId, number: PullRequestNumber, head: Sha) -> bool:
        return await self._reader.fetch_value("has_impacted_targets", queue=queue, number=number, head=head)

    async def has_any_impacted_targets(self, repo: Repo) -> bool:
        return await self._reader.fetch_value("has_any_impacted_targets", **asdict(repo))

    async def impacted_targets_size(self, token: str) -> int:
        ((size,),) = await self._reader.fetch_rows("impacted_targets_size", token=token)
        return size

    async def all_queue_ids(self, repo: Repo) -> Sequence[QueueId]:
        return tuple(QueueId(queue) for (queue,) in await self._reader.fetch_rows("all_queue_ids", **asdict(repo)))

    async def statuses(self, repo: Repo, sha: Sha) -> Sequence[Status]:
        return tuple(map(rows.decode_status, await self._reader.fetch_rows("statuses", **asdict(repo), sha=sha)))

    async def last_submission(self, queue: QueueId, number: PullRequestNumber) -> bytes | None:
        return await self._reader.fetch_value("last_submission", queue=queue, number=number)

    async def last_submission_of_branch(self, queue: QueueId, branch: str) -> bytes | None:
        return await self._reader.fetch_value("last_submission_of_branch", queue=queue, head_branch=branch)

    async def submission(self, queue: QueueId, submission_id: SubmissionId) -> bytes | None:
        return await self._reader.fetch_value("submission", queue=queue, submission_id=submission_id)

    async def submissions_of(self, queue: QueueId, number: PullRequestNumber, take: int) -> Sequence[bytes]:
        return await self._reader.fetch_bodies("submissions_of", queue=queue, number=number, take=take)

    async def submissions(self, queue: QueueId, query: store.SubmissionsQuery) -> Sequence[bytes]:
        reader, before = self._reader, LATEST if query.before is None else query.before
        page = {"queue": queue, "before": before, "take": query.take}
        period = {
            "since": EARLIEST if query.since is None else query.since,
            "until": LATEST if query.until is None else query.until,
        }
        if query.concluded_since is not None:
            ended = {"concluded_since": query.concluded_since, "state": query.state}
            return await reader.fetch_bodies("submissions_by_end", **page, **period, **ended)
        if query.since is not None or query.until is not None:
            return await reader.fetch_bodies("submissions_by_time", **page, **period, state=query.state)
        if query.state is not None:
            return await reader.fetch_bodies("submissions_in_state", **page, state=query.state)
        return await reader.fetch_bodies("submissions", **page)

    async def concluded_submissions(self, queue: QueueId, take: int) -> Sequence[bytes]:
        return await self._reader.fetch_bodies("concluded_submissions", queue=queue, take=take)

    async def run(self, queue: QueueId, run: RunId) -> bytes | None:
        return await self._reader.fetch_value("run", queue=queue, id=run)

    async def had_run(self, queue: QueueId, run: RunId) -> bool:
        return await self._reader.fetch_value("had_run", queue=queue, id=run)

    async def queue_of_run(self, run: RunId) -> store.StoredQueue | None:
        row = await self._reader.fetch_row("queue_of_run", id=run)
        return rows.decode_queue(row) if row else None

    async def decided_runs(
        self, queue: QueueId, since: Instant, until: Instant, take: int, before: int = 0
    ) -> Sequence[store.StoredRun]:
        period = {"since": since, "until": until, "before": before}
        found = await self._reader.fetch_rows("decided_runs", queue=queue, take=take, **period)
        return tuple(map(rows.decode_run, found))

    async def results(
        self, queue: QueueId, since: Instant, until: Instant, offset: int, take: int
    ) -> store.ResultsPage:
        period = {"queue": queue, "since": since, "until": until}
        ((total,),) = await self._reader.fetch_rows("count_results", **period)
        found = await self._reader.fetch_rows("results", **period, offset=offset, take=take)
        skipped = offset - found[0][0] if found else 0
        return store.ResultsPage(total, skipped, tuple(body for _, body in found))

    async def timeline(self, queue: QueueId, submission_id: SubmissionId, take: int) -> Sequence[store.StoredEntry]:
        found = await self._reader.fetch_rows("timeline", queue=queue, submission_id=submission_id, take=take)
        return tuple(map(rows.decode_entry, found))

    async def transitions(
        self, queues: Sequence[QueueId], since: Instant, until: Instant
    ) -> Sequence[store.TransitionRow]:
        found = await self._reader.fetch_rows("transitions", queues=queues, since=since, until=until)
        return tuple(map(rows.decode_transition, found))

    async def last_change(self, queue: QueueId, to: QueueState) -> bytes | None:
        return await self._reader.fetch_value("last_change", queue=queue, to_state=to)

    async def audit_entries(self, query: store.AuditQuery) -> Sequence[store.AuditedEntry]:
        values = {
            "take": query.take,
            "number": query.number,
            "actor": query.actor,
            "kind": query.kind,
            "target_branch": query.branch,
            "before": LATEST if query.before is None else query.before,
            "repos": None if query.repos is None else list(map(str, query.repos)),
            "since": EARLIEST if query.since is None else query.since,
            "until": LATEST if query.until is None else query.until,
        }
        return tuple(map(rows.decode_audited_entry, await self._reader.fetch_rows("audit_entries", **values)))

    async def entries(self, queue: QueueId, after: int, take: int) -> Sequence[store.StoredEntry]:
        return tuple(
            map(rows.decode_entry, await self._reader.fetch_rows("entries", queue=queue, after=after, take=take))
        )

    async def cursor(self, consumer: str, queue: QueueId) -> int:
        return await self._reader.fetch_value("cursor", consumer=consumer, queue=queue) or 0

    async def stalled_since(self, consumer: str, queue: QueueId) -> Instant | None:
        return await self._reader.fetch_value("stalled_since", consumer=consumer, queue=queue)

    async def queues_with_unread_entries(self, consumer: str) -> Sequence[store.StoredQueue]:
        return tuple(
            map(rows.decode_queue, await self._reader.fetch_rows("queues_with_unread_entries", consumer=consumer))
        )

    async def expired_keys(self, kind: RecordKind, before: Instant, take: int) -> Sequence[RecordKey]:
        match kind:
            case RecordKind.SUBMISSIONS:
                found = await self._reader.fetch_rows("expired_submissions", before=before, take=take)
            case RecordKind.RUNS:
                found = await self._reader.fetch_rows("expired_runs", before=before, take=take)
            case RecordKind.JOURNAL:
                found = await self._reader.fetch_rows("expired_entries", before=before, take=take)
            case RecordKind.IMPACTED_TARGETS:
                found = await self._reader.fetch_rows("expired_impacted_targets", before=before, take=take)
            case RecordKind.STATUSES:
                found = await self._reader.fetch_rows("expired_statuses", before=before, take=take)
        return tuple(map(rows.decode_record_key, found))

    async def thread_state(self, queue: QueueId, number: PullRequestNumber) -> bytes | None:
        return await self._reader.fetch_value("thread_state", queue=queue, number=number)

    async def webhooks(self) -> Sequence[WebhookRow]:
        return tuple(map(rows.decode_webhook, await self._reader.fetch_rows("webhooks")))

    async def deliveries(self, webhook: str, take: int) -> Sequence[bytes]:
        return await self._reader.fetch_bodies("deliveries", webhook=webhook, take=take)

    async def delivery(self, webhook: str, event: str) -> bytes | None:
        return await self._reader.fetch_value("delivery", webhook=webhook, event=event)

    # SharedStore

    async def find_queue(self, key: QueueKey) -> store.StoredQueue | None:
        row = await self._reader.fetch_row("queue_of_branch", **asdict(key.repo), target_branch=key.branch)
        return rows.decode_queue(row) if row else None

    async def changed_queues(self, known: Collection[tuple[QueueId, int]]) -> Sequence[store.StoredQueue]:
        ids, versions = [queue for queue, _ in known], [version for _, version in known]
        return tuple(
            map(rows.decode_queue, await self._reader.fetch_rows("changed_queues", ids=ids, versions=versions))
        )

    async def queues_of_repo(self, repo: Repo) -> Sequence[store.StoredQueue]:
        return tuple(map(rows.decode_queue, await self._reader.fetch_rows("queues_of_repo", **asdict(repo))))

    async def leased_queues(self, replica: str) -> Sequence[store.StoredQueue]:
        return tuple(map(rows.decode_queue, await self._reader.fetch_rows("leased_queues", replica=replica)))

    async def register_worker(self, replica: str, ttl_ms: int) -> None:
        await self._open.leases.register_worker(replica, ttl_ms)

    async def renew_leases(self, replica: str, ttl_ms: int) -> store.LeaseStatus:
        return await self._open.leases.renew_leases(replica, ttl_ms)

    async def acquire_leases(
        self, replica: str, limit: int, mirrored: Collection[Repo], grace_ms: int
    ) -> Sequence[store.Lease]:
        return await self._open.leases.acquire_leases(replica, limit, mirrored, grace_ms)

    async def release_leases(self, replica: str, repos: Collection[Repo]) -> None:
        await self._open.leases.release_leases(replica, repos)

    async def unregister_worker(self, replica: str) -> None:
        await self._open.leases.unregister_worker(replica)

    async def notify(self, *hints: str) -> None:
        await self._reader.fetch_rows("notify", hints=hints)

    async def listen(self, on_hint: store.HintHandler, on_disconnect: Callable[[], Awaitable[None]]) -> None:
        assert self._listener is None, "The store listens already."
        listener = NotificationListener(self._url, self._open.pool.location, on_hint, on_disconnect)
        await listener.open()
        self._listener = listener
