"""Puts the parts together: the one place that knows which adapter stands behind which port."""

from prometheus_client import generate_latest

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.git_cli.commits import Committer
from mergeyard.adapters.git_cli.opening import GitCli
from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.adapters.runner_local.runner import LocalRunner
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.api import assembly
from mergeyard.api.app import Application
from mergeyard.api.check_output import CheckOutput
from mergeyard.api.doorkeeping import ServiceDoor
from mergeyard.api.handlers import handlers
from mergeyard.api.routes import endpoints
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import Repo
from mergeyard.service.measuring import REGISTRY
from mergeyard.service.service import Service
from mergeyard.service.tokens import Tokens
from mergeyard.settings import Settings


def open_store(settings: Settings) -> SqliteStore:
    return SqliteStore(settings.database)


def open_tokens(settings: Settings) -> tuple[SqliteStore, Tokens]:
    store = open_store(settings)
    return store, Tokens(store, WallClock())


def make_service(settings: Settings, public_url: str) -> Service:
    git = GitCli(settings.data_dir / "mirrors", Committer(settings.committer_name, settings.committer_email))
    hosts = {name: PlainHost(name, plain.root, plain.checks) for name, plain in settings.hosts.items()}

    async def check_out(repo: Repo, commit: Sha, folder: str) -> None:
        mirror = await git.mirror(str(repo), hosts[repo.host].remote(repo))
        await mirror.export(commit, folder)

    return Service(
        store=open_store(settings),
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
    table = endpoints(handlers(service, public_url))
    find = CheckOutput(service, door).at
    return assembly.application(table, door, ready=service.ready, own_metrics=own_metrics, find=find)
