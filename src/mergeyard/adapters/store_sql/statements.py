"""Named queries and migrations in files, and writes as statements.

A query that both databases understand is in `queries/` of this package; each store has its own folder for the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from mergeyard.domain.ids import Repo
from mergeyard.ports import store, writes
from mergeyard.ports.archive import Table
from mergeyard.ports.writes import RecordKind

Value = None | int | str | bytes | Sequence[Any]
Values = Mapping[str, Value]
Row = tuple[Any, ...]

COMMON_QUERIES = resources.files("mergeyard.adapters.store_sql") / "queries"
NAME_PREFIX = "-- name: "


def read_sql_files(folder: Traversable) -> Iterator[tuple[str, str]]:
    """Stem and text of every `.sql` file of a folder, sorted by name."""
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return ((file.name.removesuffix(".sql"), file.read_text("utf-8")) for file in files if file.name.endswith(".sql"))


def read_queries(folder: Traversable) -> Iterator[tuple[str, str]]:
    """Name and text of the common queries and of those in the folder."""
    texts = [text for source in (COMMON_QUERIES, folder) for _, text in read_sql_files(source)]
    for part in "".join(texts).split(NAME_PREFIX)[1:]:
        name, _, rest = part.partition("\n")
        yield name, "\n".join(line for line in rest.splitlines() if line and not line.startswith("--"))


class Migration(Struct, frozen=True):
    number: int
    name: str
    text: str


def read_migrations(folder: Traversable) -> Iterator[Migration]:
    for stem, text in read_sql_files(folder):
        number, _, name = stem.partition("_")
        yield Migration(int(number), name, text)


def refuse_newer_schema(current: int, supported: int, location: object) -> None:
    if current > supported:
        raise store.StoreUnavailable(
            f"{location} was written by a newer version of Mergeyard (its schema version is {current}, this version "
            f"supports {supported}). Start that version again, or restore a backup from before it."
        )


def not_open_error(location: object) -> store.StoreUnavailable:
    return store.StoreUnavailable(f"{location} is not open. Open the store before it is used, and close it last.")


def build_select(table: Table) -> str:
    """The SELECT statement of a table. The order of its key has an index, so SQLite does not sort in memory."""
    return f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {', '.join(table.key)}"


class Statement(Struct, frozen=True):
    query: str
    values: Values
    refusal: Exception | None = None
    """Raised if the query changes no row."""


QUERIES: Mapping[type[Struct], str] = {
    writes.DeleteExpiredResponses: "delete_expired_responses",
    writes.RecordTokenUse: "record_token_use",
    writes.DeleteSession: "delete_session",
    writes.DeleteSsoSessions: "delete_sso_sessions",
    writes.DeleteExpiredSessions: "delete_expired_sessions",
    writes.StartConsumer: "start_consumer",
    writes.MoveCursor: "move_cursor",
    writes.MarkStalled: "mark_stalled",
    writes.ClearStalled: "clear_stalled",
    writes.DeleteConsumer: "delete_consumer",
    writes.SaveThreadState: "save_thread_state",
    writes.DeleteWebhook: "delete_webhook",
}
"""The writes whose fields are the parameters of a query."""

EXPIRING: Mapping[RecordKind, tuple[str, tuple[str, ...]]] = {
    RecordKind.SUBMISSIONS: ("submissions", ("queue", "submission_id")),
    RecordKind.RUNS: ("runs", ("queue", "id")),
    RecordKind.JOURNAL: ("entries", ("seq",)),
    RecordKind.IMPACTED_TARGETS: ("impacted_targets", ("queue", "number", "head")),
    RecordKind.STATUSES: ("statuses", ("host", "owner", "name", "sha", "context")),
}
"""Of records that expire: the name in the queries `expired_…` and `delete_…`, and the columns of the key."""


def to_statements(write: writes.Write) -> Iterator[Statement]:
    """All writes except decisions, entries, leases and expired records, which each store writes in its own way."""
    match write:
        case writes.CreateQueue(id=queue, key=key, at=at):
            values = {**asdict(key.repo), "id": queue, "target_branch": key.branch, "at": at}
            yield Statement("create_queue", values, store.AlreadyExists(f"A queue for {key} already exists."))
        case writes.DeleteQueue(id=queue, version=version):
            message = f"Queue {queue} does not exist any longer, or is not at version {version}."
            yield Statement("delete_queue", asdict(write), store.VersionConflict(message))
        case writes.SaveImpactedTargets():
            limit = {"others": store.MAX_HEADS_WITH_IMPACTED_TARGETS - 1}
            yield Statement("save_impacted_targets", asdict(write) | limit)
        case writes.SaveStatus(repo=repo, sha=sha, status=status, token=token):
            yield Statement("save_status", {**asdict(repo), "sha": sha, **asdict(status), "token": token})
            if token is not None:
                limit = {"token": token, "kept": store.MAX_UNCLAIMED_STATUSES}
                yield Statement("delete_oldest_unclaimed_statuses", limit)
        case writes.SaveResponse(response=response, unless_saved_since=since):
            message = f"Request {response.key} of token {response.token} already has a response."
            values = {**asdict(response), "unless_saved_since": since}
            yield Statement("save_response", values, store.DuplicateRequest(message))
        case writes.SaveToken(token=token):
            lists = {"scopes": _encode(sorted(token.scopes)), "repos": _encode(sorted(token.repos, key=Repo.__str__))}
            yield Statement("save_token", asdict(token) | lists)
        case writes.SaveSession(session=session):
            yield Statement("save_session", asdict(session) | {"groups": _encode(sorted(session.groups))})
        case writes.SaveWebhook(webhook=webhook):
            query = "create_webhook" if webhook.version == 1 else "update_webhook"
            message = f"Version {webhook.version} of webhook {webhook.id} does not follow the stored one."
            yield Statement(query, asdict(webhook), store.VersionConflict(message))
        case writes.SaveDelivery():
            yield Statement("save_delivery", asdict(write) | {"kept": store.MAX_DELIVERIES_PER_WEBHOOK})
        case _:
            yield Statement(QUERIES[type(write)], asdict(write))


def _encode(values: Sequence[object]) -> str:
    return msgspec.json.encode(values).decode()


def version_conflict(decision: writes.SaveDecision) -> store.VersionConflict:
    return store.VersionConflict(
        f"Version {decision.version} of queue {decision.queue} does not follow the stored one."
    )
