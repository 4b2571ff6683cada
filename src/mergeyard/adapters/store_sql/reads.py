"""The reads of the port `Store`: queries, and the values that their rows become.

The rows of both databases have the same columns in the same order, which is that of the fields. A flag can be 0 or 1.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict

from mergeyard.adapters.store_sql.statements import EXPIRING, Row, Value
from mergeyard.domain.access import Scope, Session, Token
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, Repo, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.states import QueueState
from mergeyard.domain.timestamps import Instant
from mergeyard.ports import store
from mergeyard.ports.writes import QueuePart, RecordKey, RecordKind, StoredResponse, WebhookRow

Decoded = TypeVar("Decoded")

EARLIEST, LATEST = -(2**63), 2**63 - 1
"""The range of integers in both databases."""
SCOPES_DECODER = msgspec.json.Decoder(frozenset[Scope])
GROUPS_DECODER = msgspec.json.Decoder(frozenset[str])
REPOS_DECODER = msgspec.json.Decoder(frozenset[Repo])


def decode_queue(queue: QueueId, host: str, owner: str, name: str, branch: str, version: int) -> store.StoredQueue:
    return store.StoredQueue(queue, QueueKey(Repo(host, owner, name), branch), version)


def decode_transition(*columns: Any) -> store.TransitionRow:
    queue, at, source, to, reason, bisecting, ms_in_state, ms_in_queue, first_run = columns
    return store.TransitionRow(
        queue, at, source, to, reason, bool(bisecting), ms_in_state, ms_in_queue, bool(first_run)
    )


def decode_audited_entry(*columns: Any) -> store.AuditedEntry:
    seq, host, owner, name, branch, token, body = columns
    return store.AuditedEntry(seq, None if host is None else QueueKey(Repo(host, owner, name), branch), token, body)


def decode_session(*columns: Any) -> Session:
    fields: dict[str, Any] = dict(zip(Session.__struct_fields__, columns, strict=True))
    fields["groups"] = GROUPS_DECODER.decode(fields["groups"])
    return Session(**fields)


def decode_status(*columns: Any) -> Status:
    fields: dict[str, Any] = dict(zip(Status.__struct_fields__, columns, strict=True))
    fields["state"] = StatusState(fields["state"])
    return Status(**fields)


@lru_cache(maxsize=256)
def decode_token(*columns: Any) -> Token:
    """Cached by the whole row, so a changed row gives a new token."""
    fields: dict[str, Any] = dict(zip(Token.__struct_fields__, columns, strict=True))
    fields["scopes"] = SCOPES_DECODER.decode(fields["scopes"])
    fields["repos"] = REPOS_DECODER.decode(fields["repos"])
    return Token(**fields)


LOADING_QUERIES = ("version", "queue_parts", "live_submissions", "live_runs")
"""What `decode_loaded_queue` needs, each with the parameter `queue`, from one snapshot."""


def decode_loaded_queue(queue: QueueId, *results: Sequence[Row]) -> store.LoadedQueue:
    versions, parts, submissions, runs = results
    if not versions:
        raise LookupError(f"There is no queue {queue}.")
    return store.LoadedQueue(
        version=versions[0][0],
        parts=tuple(QueuePart(*row) for row in parts),
        submissions=tuple(body for (body,) in submissions),
        runs=tuple(body for (body,) in runs),
    )


class SqlReads(ABC):
    @abstractmethod
    async def _fetch(self, query: str, /, **values: Value) -> Sequence[Row]:
        """The rows of a query that can return many."""

    @abstractmethod
    async def _find(self, query: str, /, **values: Value) -> Sequence[Row]:
        """The rows of a query that finds a few rows by their key."""

    async def _find_one(self, decode: Callable[..., Decoded], query: str, /, **values: Value) -> Decoded | None:
        found = await self._find(query, **values)
        return decode(*found[0]) if found else None

    async def _find_value(self, query: str, /, **values: Value) -> Any:
        """The first column of the first row; None if there is no row."""
        found = await self._find(query, **values)
        return found[0][0] if found else None

    async def _fetch_all(self, decode: Callable[..., Decoded], query: str, /, **values: Value) -> tuple[Decoded, ...]:
        return tuple(decode(*row) for row in await self._fetch(query, **values))

    async def _fetch_bodies(self, query: str, /, **values: Value) -> tuple[bytes, ...]:
        return tuple(body for (body,) in await self._fetch(query, **values))

    async def queues(self) -> Sequence[store.StoredQueue]:
        return await self._fetch_all(decode_queue, "queues")

    async def token(self, digest: bytes) -> Token | None:
        return await self._find_one(decode_token, "token", digest=digest)

    async def token_by_id(self, token: str) -> Token | None:
        return await self._find_one(decode_token, "token_by_id", id=token)

    async def tokens(self) -> Sequence[Token]:
        return await self._fetch_all(decode_token, "tokens")

    async def session(self, digest: bytes) -> Session | None:
        return await self._find_one(decode_session, "session", digest=digest)

    async def response(self, token: str, key: str) -> StoredResponse | None:
        return await self._find_one(StoredResponse, "response", token=token, key=key)

    async def impacted_targets(self, queue: QueueId, number: PullRequestNumber, head: Sha) -> bytes | None:
        return await self._find_value("impacted_targets", queue=queue, number=number, head=head)

    async def has_impacted_targets(self, queue: QueueId, number: PullRequestNumber, head: Sha) -> bool:
        return bool(await self._find_value("has_impacted_targets", queue=queue, number=number, head=head))

    async def has_any_impacted_targets(self, repo: Repo) -> bool:
        return bool(await self._find_value("has_any_impacted_targets", **asdict(repo)))

    async def impacted_targets_size(self, token: str) -> int:
        ((size,),) = await self._fetch("impacted_targets_size", token=token)
        return size

    async def all_queue_ids(self, repo: Repo) -> Sequence[QueueId]:
        return tuple(QueueId(queue) for (queue,) in await self._find("all_queue_ids", **asdict(repo)))

    async def statuses(self, repo: Repo, sha: Sha) -> Sequence[Status]:
        return tuple(decode_status(*row) for row in await self._find("statuses", **asdict(repo), sha=sha))

    async def last_submission(self, queue: QueueId, number: PullRequestNumber) -> bytes | None:
        return await self._find_value("last_submission", queue=queue, number=number)

    async def last_submission_of_branch(self, queue: QueueId, branch: str) -> bytes | None:
        return await self._find_value("last_submission_of_branch", queue=queue, head_branch=branch)

    async def submission(self, queue: QueueId, submission_id: SubmissionId) -> bytes | None:
        return await self._find_value("submission", queue=queue, submission_id=submission_id)

    async def submissions_of(self, queue: QueueId, number: PullRequestNumber, take: int) -> Sequence[bytes]:
        return await self._fetch_bodies("submissions_of", queue=queue, number=number, take=take)

    async def submissions(self, queue: QueueId, query: store.SubmissionsQuery) -> Sequence[bytes]:
        page = {"queue": queue, "before": LATEST if query.before is None else query.before, "take": query.take}
        period = {
            "since": EARLIEST if query.since is None else query.since,
            "until": LATEST if query.until is None else query.until,
        }
        if query.concluded_since is not None:
            ended = {"concluded_since": query.concluded_since, "state": query.state}
            return await self._fetch_bodies("submissions_by_end", **page, **period, **ended)
        if query.since is not None or query.until is not None:
            return await self._fetch_bodies("submissions_by_time", **page, **period, state=query.state)
        if query.state is not None:
            return await self._fetch_bodies("submissions_in_state", **page, state=query.state)
        return await self._fetch_bodies("submissions", **page)

    async def concluded_submissions(self, queue: QueueId, take: int) -> Sequence[bytes]:
        return await self._fetch_bodies("concluded_submissions", queue=queue, take=take)

    async def ended_submissions(self, query: store.EndedSubmissionsQuery) -> Sequence[store.EndedSubmission]:
        last = query.after or store.EndedSubmission(QueueId(""), query.until, SubmissionId(0), b"")
        values = {
            "queues": query.queues,
            "take": query.take,
            "since": query.since,
            "state": query.state,
            "until": last.ended_at,
            "before_queue": last.queue,
            "before_submission": last.submission_id,
        }
        return await self._fetch_all(store.EndedSubmission, "ended_submissions", **values)

    async def run(self, queue: QueueId, run: RunId) -> bytes | None:
        return await self._find_value("run", queue=queue, id=run)

    async def had_run(self, queue: QueueId, run: RunId) -> bool:
        return bool(await self._find_value("had_run", queue=queue, id=run))

    async def queue_of_run(self, run: RunId) -> store.StoredQueue | None:
        return await self._find_one(decode_queue, "queue_of_run", id=run)

    async def decided_runs(
        self, queue: QueueId, since: Instant, until: Instant, take: int, before: int = 0
    ) -> Sequence[store.StoredRun]:
        period = {"since": since, "until": until, "before": before}
        return await self._fetch_all(store.StoredRun, "decided_runs", queue=queue, take=take, **period)

    async def results(
        self, queue: QueueId, since: Instant, until: Instant, offset: int, take: int
    ) -> store.ResultsPage:
        period = {"queue": queue, "since": since, "until": until}
        ((total,),) = await self._fetch("count_results", **period)
        found = await self._fetch("results", **period, offset=offset, take=take)
        skipped = offset - found[0][0] if found else 0
        return store.ResultsPage(total, skipped, tuple(body for _, body in found))

    async def timeline(self, queue: QueueId, submission_id: SubmissionId, take: int) -> Sequence[store.StoredEntry]:
        values = {"queue": queue, "submission_id": submission_id, "take": take}
        return await self._fetch_all(store.StoredEntry, "timeline", **values)

    async def transitions(
        self, queues: Sequence[QueueId], since: Instant, until: Instant
    ) -> Sequence[store.TransitionRow]:
        return await self._fetch_all(decode_transition, "transitions", queues=queues, since=since, until=until)

    async def last_change(self, queue: QueueId, to: QueueState) -> bytes | None:
        return next(iter(await self._fetch_bodies("last_change", queue=queue, to_state=to)), None)

    async def last_state_entry(self, queue: QueueId) -> bytes | None:
        return next(iter(await self._fetch_bodies("last_state_entry", queue=queue)), None)

    async def audit_entries(self, query: store.AuditQuery) -> Sequence[store.AuditedEntry]:
        values = {
            "take": query.take,
            "number": query.number,
            "actor": query.actor,
            "without_actor": query.without_actor,
            "kind": query.kind,
            "target_branch": query.branch,
            "before": LATEST if query.before is None else query.before,
            "repos": None if query.repos is None else tuple(map(str, query.repos)),
            "since": EARLIEST if query.since is None else query.since,
            "until": LATEST if query.until is None else query.until,
        }
        return await self._fetch_all(decode_audited_entry, "audit_entries", **values)

    async def entries(self, queue: QueueId, after: int, take: int) -> Sequence[store.StoredEntry]:
        return await self._fetch_all(store.StoredEntry, "entries", queue=queue, after=after, take=take)

    async def cursor(self, consumer: str, queue: QueueId) -> int:
        return await self._find_value("cursor", consumer=consumer, queue=queue) or 0

    async def stalled_since(self, consumer: str, queue: QueueId) -> Instant | None:
        return await self._find_value("stalled_since", consumer=consumer, queue=queue)

    async def queues_with_unread_entries(self, consumer: str) -> Sequence[store.StoredQueue]:
        return await self._fetch_all(decode_queue, "queues_with_unread_entries", consumer=consumer)

    async def expired_keys(self, kind: RecordKind, before: Instant, take: int) -> Sequence[RecordKey]:
        records, _ = EXPIRING[kind]
        return tuple(await self._fetch(f"expired_{records}", before=before, take=take))

    async def thread_state(self, queue: QueueId, number: PullRequestNumber) -> bytes | None:
        return await self._find_value("thread_state", queue=queue, number=number)

    async def webhooks(self) -> Sequence[WebhookRow]:
        return await self._fetch_all(WebhookRow, "webhooks")

    async def deliveries(self, webhook: str, take: int) -> Sequence[bytes]:
        return await self._fetch_bodies("deliveries", webhook=webhook, take=take)

    async def delivery(self, webhook: str, event: str) -> bytes | None:
        return await self._find_value("delivery", webhook=webhook, event=event)
