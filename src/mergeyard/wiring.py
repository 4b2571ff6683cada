"""Puts the parts together: the one place that knows which adapter stands behind which port."""

from prometheus_client import generate_latest

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.git_cli.commits import Committer
from mergeyard.adapters.git_cli.opening import GitCli
from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.adapters.runner_local.runner import LocalRunner
from mergeyard.adapters.store_postgres.archive import PostgresArchive
from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.adapters.store_sqlite.archive import SqliteArchive
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.api import assembly
from mergeyard.api.app import Application
from mergeyard.api.check_output import CheckOutput
from mergeyard.api.doorkeeping import ServiceDoor
from mergeyard.api.handlers import handlers, settling
from mergeyard.api.routes import endpoints
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import Repo
from mergeyard.ports.archive import Archive
from mergeyard.ports.git import MissingObject
from mergeyard.ports.store import Store
from mergeyard.service.measuring import REGISTRY
from mergeyard.service.naming_branches import TEST_BRANCHES
from mergeyard.service.service import Service
from mergeyard.service.tokens import Tokens
from mergeyard.settings import Settings


def open_store(settings: Settings) -> SqliteStore | PostgresStore:
    server = settings.database_server
    return SqliteStore(settings.database) if server is None else PostgresStore(server)


def open_archive(settings: Settings) -> Archive:
    server = settings.database_server
    return SqliteArchive(settings.database) if server is None else PostgresArchive(server)


def open_tokens(settings: Settings) -> tuple[Store, Tokens]:
    store = open_store(settings)
    return store, Tokens(store, WallClock())


def make_service(settings: Settings, public_url: str) -> Service:
    git = GitCli(settings.data_dir / "mirrors", Committer(settings.committer_name, settings.committer_email))
    hosts = {name: PlainHost(name, plain.root, plain.checks) for name, plain in settings.hosts.items()}

    async def check_out(repo: Repo, commit: Sha, folder: str) -> None:
        mirror = await git.mirror(str(repo), hosts[repo.host].remote(repo))
        try:
            await mirror.export(commit, folder)
        except MissingObject:  # another replica built it
            await mirror.fetch([TEST_BRANCHES])
            await mirror.export(commit, folder)

    store = open_store(settings)
    return Service(
        store=store,
        shared=store if isinstance(store, PostgresStore) else None,
        works=settings.role != "api",
        clock=WallClock(),
        git=git,
        hosts=hosts,
        runner=LocalRunner(settings.data_dir / "checks", settings.runner_limit, check_out),
        public_url=public_url,
    )


def make_application(settings: Settings, service: Service, public_url: str) -> Application:
    door = ServiceDoor(service)

    def figures() -> bytes:
        return generate_latest(REGISTRY)

    own_metrics = assembly.open_metrics(figures) if settings.open_metrics else assembly.guarded_metrics(figures, door)
    table = () if settings.role == "worker" else endpoints(handlers(service, public_url), settling(service))
    find = CheckOutput(service, door).at
    return assembly.application(table, door, ready=service.ready, own_metrics=own_metrics, find=find)
