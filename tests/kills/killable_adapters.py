"""The real stores: the server can be killed around each of their writes."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mergeyard import wiring
from mergeyard.adapters.git_cli.mirror import CliMirror
from mergeyard.adapters.git_cli.mirrors import GitCli
from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.adapters.runner_local.runner import LocalRunner
from mergeyard.adapters.store_postgres import connection as postgres_connection
from mergeyard.adapters.store_postgres.connection import Connection as PostgresConnection
from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.adapters.store_sqlite import connection as sqlite_connection
from mergeyard.adapters.store_sqlite.connection import Connection as SqliteConnection
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.adapters.webhooks.sender import HttpSender
from mergeyard.api.endpoint import PREFIX
from mergeyard.api.routes import TABLE
from mergeyard.domain.ids import SHA1, ObjectFormat, PullRequestNumber, Repo, RunId, Sha
from mergeyard.domain.pull_requests import StatusState
from mergeyard.ports.external import CheckJob, CheckResult, SendResponse
from mergeyard.ports.forge import ChecksFrom
from mergeyard.ports.git import PushOutcome, RefUpdate, Remote
from mergeyard.ports.store import Lease, LeaseStatus
from mergeyard.ports.writes import Write
from mergeyard.service.service import Service
from mergeyard.settings import Settings
from tests.kills.effects import LANDING, commit_names, push_kind
from tests.kills.killer import KILLER, Moment


class KillableSqliteStore(SqliteStore):
    async def open(self) -> None:
        with KILLER.around("store.open"):
            await super().open()

    async def close(self) -> None:
        with KILLER.around("store.close"):
            await super().close()

    async def commit(self, *writes: Write) -> None:
        with KILLER.around(*commit_names(writes)):
            await super().commit(*writes)


class KillablePostgresStore(PostgresStore):
    async def open(self) -> None:
        with KILLER.around("store.open"):
            await super().open()

    async def close(self) -> None:
        with KILLER.around("store.close"):
            await super().close()

    async def commit(self, *writes: Write) -> None:
        with KILLER.around(*commit_names(writes)):
            await super().commit(*writes)

    async def register_worker(self, replica: str, ttl_ms: int) -> None:
        with KILLER.around("store.register"):
            await super().register_worker(replica, ttl_ms)

    async def renew_leases(self, replica: str, ttl_ms: int) -> LeaseStatus:
        with KILLER.around("store.renew_leases"):
            return await super().renew_leases(replica, ttl_ms)

    async def acquire_leases(
        self, replica: str, limit: int, mirrored: Collection[Repo], grace_ms: int
    ) -> Sequence[Lease]:
        with KILLER.around("store.acquire_leases"):
            return await super().acquire_leases(replica, limit, mirrored, grace_ms)

    async def unregister_worker(self, replica: str) -> None:
        with KILLER.around("store.unregister"):
            await super().unregister_worker(replica)

    async def notify(self, *hints: str) -> None:
        with KILLER.around("store.notify"):
            await super().notify(*hints)


def apply_sqlite_migration(connection: SqliteConnection, migration: sqlite_connection.Migration) -> None:
    with KILLER.around("store.migrate"):
        original_migrate_sqlite(connection, migration)


async def apply_postgres_migration(connection: PostgresConnection, migration: postgres_connection.Migration) -> None:
    with KILLER.around("store.migrate"):
        await original_migrate_postgres(connection, migration)


original_migrate_sqlite, original_migrate_postgres = (
    sqlite_connection.apply_migration,
    postgres_connection.apply_migration,
)


class KillableGit(GitCli):
    async def _create(self, path: Path, object_format: ObjectFormat = SHA1) -> None:
        with KILLER.around("git.mirror_created"):
            await super()._create(path, object_format)


class KillableMirror(CliMirror):
    async def fetch(self, refs: Collection[str]) -> Mapping[str, Sha]:
        with KILLER.around("git.fetch"):
            return await super().fetch(refs)

    async def push(self, *updates: RefUpdate, to: Remote | None = None) -> PushOutcome:
        kind, first = push_kind(updates), updates[0]
        if kind == LANDING and first.old is not None:
            KILLER.push_concurrently(first.ref, first.old, self.remote.url)
        with KILLER.around(f"git.push:{kind}"):
            return await super().push(*updates, to=to)

    async def export_tree(self, commit: Sha, folder: str) -> None:
        with KILLER.around("git.export"):
            await super().export_tree(commit, folder)


HEADS_FIRST = "heads-first"
"""A file with this name beside the repositories of a host: their head branches are moved before the target branch."""


class KillableHost(PlainHost):
    def __init__(self, name: str, root: Path, checks_from: ChecksFrom) -> None:
        super().__init__(name, root, checks_from)
        self.moves_heads_first = (self._root / HEADS_FIRST).exists()

    async def mark_merged(self, repo: Repo, number: PullRequestNumber, head: Sha, commit: Sha) -> bool:
        with KILLER.around("host.mark_merged"):
            return await super().mark_merged(repo, number, head, commit)

    async def close(self) -> None:
        with KILLER.around("host.close"):
            await super().close()


class KillableRunner(LocalRunner):
    async def start(self, job: CheckJob) -> None:
        with KILLER.around("check.start"):
            await super().start(job)

    async def stop(self, run: RunId) -> None:
        with KILLER.around("check.stop"):
            await super().stop(run)

    async def next_result(self) -> CheckResult:
        result = await super().next_result()
        KILLER.reach(Moment.AFTER, "check.started" if result.state is StatusState.PENDING else "check.ended")
        return result

    async def close(self) -> None:
        with KILLER.around("check.close"):
            await super().close()


class KillableSender(HttpSender):
    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> SendResponse:
        with KILLER.around("webhook.send"):
            return await super().send(url, headers, body)


class KillableApplication:
    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = ""

        async def send_or_kill(message: Message) -> None:
            nonlocal name
            if message["type"] == "http.response.start":
                name = response_name(scope["path"], message["status"])
                KILLER.reach(Moment.BEFORE, name)
            else:
                KILLER.reach(Moment.DURING, name)
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                KILLER.reach(Moment.AFTER, name)

        await self._application(scope, receive, send_or_kill)


def response_name(path: str, status: int) -> str:
    if not path.startswith(PREFIX):
        return "response:page"
    if status != 200:
        return "response:refusal"
    name = path.removeprefix(PREFIX)
    return f"response:{name}" if TABLE[name].get("writes") else "response:read"


def make_application(settings: Settings, service: Service, public_url: str) -> ASGIApp:
    return KillableApplication(original_make_application(settings, service, public_url))


original_make_application = wiring.make_application
