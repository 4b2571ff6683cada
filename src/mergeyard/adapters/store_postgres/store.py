"""Store that several replicas share: a PostgreSQL database that all of them read and write."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence

from msgspec.structs import asdict

from mergeyard.adapters.store_postgres import connection as db
from mergeyard.adapters.store_postgres.notifications import NotificationListener
from mergeyard.adapters.store_postgres.writes import MAX_REMEMBERED_DECISIONS, Committer
from mergeyard.adapters.store_sql.reads import LOADING_QUERIES, SqlReads, decode_loaded_queue, decode_queue
from mergeyard.adapters.store_sql.statements import Row, Value, not_open_error
from mergeyard.domain.ids import QueueId, QueueKey, Repo
from mergeyard.ports import store
from mergeyard.ports.writes import QueuePart, Write

CHECK_TIMEOUT_S = 2.0


class PostgresStore(SqlReads):
    def __init__(self, url: str) -> None:
        self._url = url
        self._location = db.describe_location(url)
        self._opened: Committer | None = None
        self._listener: NotificationListener | None = None

    @property
    def _committer(self) -> Committer:
        if self._opened is None:
            raise not_open_error(self._location)
        return self._opened

    async def open(self) -> None:
        with db.translate_errors(self._location):
            connection = await db.open_connection(self._url, statement_timeout_s=None)
            try:
                await db.migrate(connection, self._location)
            finally:
                await connection.close()
            self._opened = Committer(db.ConnectionPool(await db.open_pool(self._url), self._location))

    async def close(self) -> None:
        """Stops listening, then waits for the running commits."""
        if self._opened is None:
            return
        opened, self._opened = self._opened, None
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()
        await opened.close()
        await opened.pool.close()

    # Store

    async def commit(self, *writes: Write) -> None:
        await self._committer.commit(writes)

    async def check(self) -> None:
        with db.translate_errors(self._location):
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                await self._fetch("probe_write")

    async def load(self, queue: QueueId) -> store.LoadedQueue:
        async with self._committer.pool.acquire_snapshot() as connection:
            results = [await db.fetch_rows(connection, query, queue=queue) for query in LOADING_QUERIES]
        return decode_loaded_queue(queue, *results)

    async def changes(self, queue: QueueId, after: int) -> store.QueueChanges | None:
        found = defaultdict[str, list[Row]](list)
        for row_kind, *row in await self._fetch("changes", queue=queue, after=after):
            found[row_kind].append(tuple(row))
        version, _, _, deleted_up_to, *_ = found["queue"][0] if found["queue"] else (None, None, None, 0)
        if version is None or not max(version - MAX_REMEMBERED_DECISIONS, deleted_up_to) <= after <= version:
            return None
        return store.QueueChanges(
            version=version,
            parts=tuple(QueuePart(kind, key, body) for _, kind, key, *_, body in found["part"]),
            submissions=tuple(store.ChangedRow(live, body) for *_, live, body in found["submission"]),
            runs=tuple(store.ChangedRow(live, body) for *_, live, body in found["run"]),
        )

    async def _fetch(self, query: str, /, **values: Value) -> Sequence[Row]:
        async with self._committer.pool.acquire() as connection:
            return await db.fetch_rows(connection, query, **values)

    async def _find(self, query: str, /, **values: Value) -> Sequence[Row]:
        return await self._fetch(query, **values)

    # SharedStore

    async def find_queue(self, key: QueueKey) -> store.StoredQueue | None:
        return await self._find_one(decode_queue, "queue_of_branch", **asdict(key.repo), target_branch=key.branch)

    async def changed_queues(self, known: Collection[tuple[QueueId, int]]) -> Sequence[store.StoredQueue]:
        ids, versions = [queue for queue, _ in known], [version for _, version in known]
        return await self._fetch_all(decode_queue, "changed_queues", ids=ids, versions=versions)

    async def queues_of_repo(self, repo: Repo) -> Sequence[store.StoredQueue]:
        return await self._fetch_all(decode_queue, "queues_of_repo", **asdict(repo))

    async def leased_queues(self, replica: str) -> Sequence[store.StoredQueue]:
        return await self._fetch_all(decode_queue, "leased_queues", replica=replica)

    async def register_worker(self, replica: str, ttl_ms: int) -> None:
        await self._fetch("register_worker", replica=replica, ttl_ms=ttl_ms)

    async def renew_leases(self, replica: str, ttl_ms: int) -> store.LeaseStatus:
        counts = await self._fetch("renew_leases", replica=replica, ttl_ms=ttl_ms)
        if not counts:
            raise store.LeaseLost(f"The leases of replica {replica} have expired.")
        ((repositories, workers),) = counts
        leases = await self._fetch_all(_decode_lease, "leases", replica=replica)
        return store.LeaseStatus(leases=leases, repository_count=repositories, worker_count=workers)

    async def acquire_leases(
        self, replica: str, limit: int, mirrored: Collection[Repo], grace_ms: int
    ) -> Sequence[store.Lease]:
        columns = _to_columns(mirrored)
        return await self._fetch_all(
            _decode_lease, "acquire_leases", replica=replica, limit=limit, grace_ms=grace_ms, **columns
        )

    async def release_leases(self, replica: str, repos: Collection[Repo]) -> None:
        await self._fetch("release_leases", replica=replica, **_to_columns(repos))

    async def unregister_worker(self, replica: str) -> None:
        await self._fetch("unregister_worker", replica=replica)

    async def notify(self, *hints: str) -> None:
        await self._fetch("notify", hints=hints)

    async def listen(self, on_hint: store.HintHandler, on_disconnect: Callable[[], Awaitable[None]]) -> None:
        assert self._listener is None, "The store listens already."
        listener = NotificationListener(self._url, self._committer.pool.location, on_hint, on_disconnect)
        await listener.open()
        self._listener = listener


def _decode_lease(host: str, owner: str, name: str, fence: int) -> store.Lease:
    return store.Lease(Repo(host, owner, name), fence)


def _to_columns(repos: Collection[Repo]) -> dict[str, Value]:
    return {
        "hosts": [repo.host for repo in repos],
        "owners": [repo.owner for repo in repos],
        "names": [repo.name for repo in repos],
    }
