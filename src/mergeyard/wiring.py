"""Puts the parts together: the one place that knows which adapter stands behind which port."""

from collections.abc import Callable
from pathlib import Path

import structlog
from prometheus_client import generate_latest

from mergeyard.adapters.clock import CalmClock, WallClock
from mergeyard.adapters.foretelling import ForetellerApart
from mergeyard.adapters.forges.access import Access, App
from mergeyard.adapters.forges.gitea.host import GiteaHost
from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.adapters.forges.gitlab.host import GitlabHost
from mergeyard.adapters.git_cli.commits import Committer
from mergeyard.adapters.git_cli.opening import GitCli
from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.adapters.oidc.provider import OpenIdProvider
from mergeyard.adapters.oidc.registration import Registration
from mergeyard.adapters.runner_local.command import Limits
from mergeyard.adapters.runner_local.runner import Checkout, LocalRunner
from mergeyard.adapters.runner_local.sandbox import Sandbox
from mergeyard.adapters.scribe import ScribeApart
from mergeyard.adapters.sealing import FileSeals, NoSeals
from mergeyard.adapters.store_postgres.archive import PostgresArchive
from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.adapters.store_sqlite.archive import SqliteArchive
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.adapters.tell_webhooks.sender import HttpSender
from mergeyard.api import assembly
from mergeyard.api.app import Application, either
from mergeyard.api.check_output import CheckOutput
from mergeyard.api.doorkeeping import ServiceDoor
from mergeyard.api.handlers import handlers, settling
from mergeyard.api.hooks import Hooks
from mergeyard.api.routes import endpoints
from mergeyard.domain.ids import Sha
from mergeyard.domain.instants import SECOND
from mergeyard.domain.repositories import Repo
from mergeyard.domain.sessions import NOTHING_GRANTED, Grants
from mergeyard.ports.archive import Archive
from mergeyard.ports.clock import Clock
from mergeyard.ports.git import MissingObject
from mergeyard.ports.host import Host
from mergeyard.ports.runner import SandboxUnavailableError
from mergeyard.ports.sealing import Seals
from mergeyard.ports.store import Store
from mergeyard.service.measuring import REGISTRY, measure_disk
from mergeyard.service.naming_branches import TEST_BRANCHES
from mergeyard.service.retention import Retention
from mergeyard.service.service import Service
from mergeyard.service.telling.office import Office
from mergeyard.service.tokens import Tokens
from mergeyard.service.vouching import Vouching
from mergeyard.settings import ForgeHost, Provider, Settings
from mergeyard.settings import PlainHost as PlainFolder
from mergeyard.web import app as web
from mergeyard.web.signing_in_elsewhere import BACK

log = structlog.get_logger()


def open_store(settings: Settings) -> SqliteStore | PostgresStore:
    server = settings.database_server
    return SqliteStore(settings.database) if server is None else PostgresStore(server)


def open_archive(settings: Settings) -> Archive:
    server = settings.database_server
    return SqliteArchive(settings.database) if server is None else PostgresArchive(server)


def open_tokens(settings: Settings) -> tuple[Store, Tokens]:
    store = open_store(settings)
    return store, Tokens(store, WallClock())


def open_office(settings: Settings) -> tuple[Store, Office]:
    store, sender = open_store(settings), HttpSender(allow_private=settings.allow_private_webhooks)
    return store, Office(store, WallClock(), sender, make_seals(settings), settings.address(settings.port))


def make_seals(settings: Settings) -> Seals:
    if settings.sealing_key_file is not None:
        return FileSeals(settings.sealing_key_file)
    return NoSeals() if settings.database_server else FileSeals(settings.data_dir / "sealing.key")


def make_hosts(settings: Settings) -> dict[str, Host]:
    clock = WallClock()
    return {name: make_host(name, host, clock) for name, host in settings.hosts.items()}


def make_host(name: str, host: PlainFolder | ForgeHost, clock: Clock) -> Host:
    if isinstance(host, PlainFolder):
        return PlainHost(name, host.root, host.checks)
    access = Access(
        name=name,
        pages=host.url,
        api=host.api_url,
        token=host.token,
        app=App(host.app_id, host.private_key) if host.app_id and host.private_key else None,
        webhook_secret=host.webhook_secret,
        checks_from=host.checks,
        look_every=host.poll_seconds * SECOND,
    )
    return FORGES[host.provider](access, clock)


FORGES: dict[Provider, Callable[[Access, Clock], Host]] = {
    Provider.GITHUB: GithubHost,
    Provider.GITLAB: GitlabHost,
    Provider.GITEA: GiteaHost,
}


def make_service(settings: Settings, public_url: str) -> Service:
    measure_disk(settings.data_dir)
    git = GitCli(settings.data_dir / "mirrors", Committer(settings.committer_name, settings.committer_email))
    hosts = make_hosts(settings)

    async def check_out(repo: Repo, commit: Sha, folder: str) -> None:
        mirror = await git.mirror(str(repo), await hosts[repo.host].remote(repo))
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
        foreteller=None if settings.role == "worker" else ForetellerApart(),
        scribe=None if settings.role == "worker" else ScribeApart(),
        clock=CalmClock(),
        wall=WallClock(),
        git=git,
        hosts=hosts,
        runner=make_runner(settings, check_out),
        sender=HttpSender(allow_private=settings.allow_private_webhooks),
        seals=make_seals(settings),
        public_url=public_url,
        grants=make_grants(settings),
        retention=Retention(
            runs_days=settings.retention_runs_days,
            journal_days=settings.retention_journal_days,
            statuses_days=settings.retention_statuses_days,
            targets_days=settings.retention_targets_days,
            outputs_days=settings.retention_outputs_days,
        ),
        targets_quota_bytes=settings.targets_quota_mib * 1024**2,
    )


def make_runner(settings: Settings, check_out: Checkout) -> LocalRunner:
    limits = Limits(max_bytes=settings.runner_max_disk_mb * 2**20, max_processes=settings.runner_max_processes)
    sandbox = make_sandbox(settings) if settings.runs_checks else None
    return LocalRunner(settings.data_dir / "checks", settings.runner_limit, check_out, limits, sandbox)


def make_sandbox(settings: Settings) -> Sandbox | None:
    if settings.runner_sandbox == "none":
        return None
    roots = (host.root for host in settings.hosts.values() if isinstance(host, PlainFolder))
    sandbox = Sandbox(
        network=settings.runner_network,
        readable=tuple(map(Path, filter(None, settings.runner_paths.split(":")))),
        hidden=tuple(folder.resolve() for folder in (settings.data_dir, *roots)),
    )
    problem = sandbox.find_problem(settings.data_dir.absolute() / "checks")
    if problem is None:
        return sandbox
    if settings.runner_sandbox == "bwrap":
        raise SandboxUnavailableError(
            f"Checks cannot be sandboxed: {problem}. Install bubblewrap and permit it to create namespaces, or set"
            ' runner_sandbox to "auto" or "none".'
        )
    log.warning("checks_run_without_sandbox", problem=problem, setting="runner_sandbox")
    return None


def make_grants(settings: Settings) -> Grants:
    oidc = settings.oidc
    return NOTHING_GRANTED if oidc is None else Grants(to_groups=oidc.scopes, to_everybody=oidc.default_scopes)


def make_vouching(settings: Settings, service: Service, public_url: str) -> Vouching | None:
    oidc = settings.oidc
    if oidc is None:
        return None
    registration = Registration(
        issuer=oidc.issuer,
        client_id=oidc.client_id,
        client_secret=oidc.client_secret,
        back=public_url + BACK,
        scopes=oidc.request_scopes,
        name_claim=oidc.name_claim,
        groups_claim=oidc.groups_claim,
    )
    return Vouching(oidc.label, OpenIdProvider(registration, service.wall), service.sessions)


def make_application(settings: Settings, service: Service, public_url: str) -> Application:
    door = ServiceDoor(service)

    def figures() -> bytes:
        return generate_latest(REGISTRY)

    own_metrics = assembly.open_metrics(figures) if settings.open_metrics else assembly.guarded_metrics(figures, door)
    table = () if settings.role == "worker" else endpoints(handlers(service, public_url), settling(service))
    find = either(CheckOutput(service, door).at, Hooks(service.news, service.refusals).at)
    vouching = make_vouching(settings, service, public_url)
    over_tls = public_url.startswith("https:")
    pages = None if settings.role == "worker" else web.application(service, vouching, over_tls=over_tls)
    return assembly.application(
        table,
        door,
        ready=service.ready,
        own_metrics=own_metrics,
        scribe=service.scribe,
        find=find,
        elsewhere=pages,
    )
