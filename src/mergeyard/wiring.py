"""Assembles the application: the only module that knows which adapter implements which port."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import structlog
from msgspec import json
from prometheus_client import generate_latest
from starlette.applications import Starlette

from mergeyard.adapters.clock import SlewingClock, WallClock
from mergeyard.adapters.encryption import FileSecretBox, UnconfiguredSecretBox
from mergeyard.adapters.forges.gitea.host import GiteaHost
from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.adapters.forges.gitlab.host import GitlabHost
from mergeyard.adapters.forges.http import App, ForgeConfig
from mergeyard.adapters.forges.rate_limits import GITHUB_CLOUD_PACE
from mergeyard.adapters.git_cli.limits import choose_limits
from mergeyard.adapters.git_cli.mirrors import GitCli
from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.adapters.oidc.discovery import ClientRegistration
from mergeyard.adapters.oidc.provider import OpenIdProvider
from mergeyard.adapters.runner_local.process import Limits, Sandbox
from mergeyard.adapters.runner_local.runner import Checkout, LocalRunner
from mergeyard.adapters.signing import FileSigner
from mergeyard.adapters.store_postgres.archive import PostgresArchive
from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.adapters.store_sqlite.archive import SqliteArchive
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.adapters.subprocesses import SubprocessForecaster, replay_in_subprocess
from mergeyard.adapters.webhooks.sender import HttpSender
from mergeyard.api import openapi, pages
from mergeyard.api.app import build_app, build_effect_waits, build_handlers
from mergeyard.api.auth import Authenticator
from mergeyard.api.dispatch import Dispatcher
from mergeyard.api.routes import build_endpoints
from mergeyard.domain.access import NO_GRANTS, Grants
from mergeyard.domain.ids import Repo, Sha
from mergeyard.domain.timestamps import SECOND
from mergeyard.ports.archive import Archive
from mergeyard.ports.external import Clock, SandboxUnavailableError, SecretBox
from mergeyard.ports.forge import Host
from mergeyard.ports.git import Identity, MissingObject
from mergeyard.ports.store import Store
from mergeyard.service.git_names import TEST_BRANCH_REF_PATTERN
from mergeyard.service.metrics import REGISTRY, measure_disk, measure_hosts
from mergeyard.service.repositories import DEFAULT_ADDRESS
from mergeyard.service.retention import Retention
from mergeyard.service.service import Service
from mergeyard.service.sessions import SingleSignOn
from mergeyard.service.tokens import Tokens
from mergeyard.service.webhooks.webhooks import Webhooks
from mergeyard.settings import ForgeHost, Provider, Settings
from mergeyard.settings import PlainHost as PlainHostSettings
from mergeyard.web.app import WebApp
from mergeyard.web.compression import CompressionMiddleware
from mergeyard.web.sign_in import SSO_CALLBACK_PATH

log = structlog.get_logger()


def open_store(settings: Settings) -> SqliteStore | PostgresStore:
    server = settings.database_server_url
    return SqliteStore(settings.database_path) if server is None else PostgresStore(server)


def open_archive(settings: Settings) -> Archive:
    server = settings.database_server_url
    return SqliteArchive(settings.database_path) if server is None else PostgresArchive(server)


def open_tokens(settings: Settings) -> tuple[Store, Tokens]:
    store = open_store(settings)
    return store, Tokens(store, WallClock())


def open_webhooks(settings: Settings) -> tuple[Store, Webhooks]:
    store, sender = open_store(settings), HttpSender(allow_private=settings.allow_private_webhooks)
    return store, Webhooks(
        store, WallClock(), sender, make_secret_box(settings), settings.build_public_url(settings.port)
    )


def make_secret_box(settings: Settings) -> SecretBox:
    if settings.sealing_key_file is not None:
        return FileSecretBox(settings.sealing_key_file)
    return UnconfiguredSecretBox() if settings.database_server_url else FileSecretBox(settings.data_dir / "sealing.key")


def make_hosts(settings: Settings) -> dict[str, Host]:
    clock = WallClock()
    public_url, email = settings.public_url, settings.committer_email
    return {name: make_host(name, host, clock, public_url, email) for name, host in settings.hosts.items()}


def make_host(
    name: str,
    host: PlainHostSettings | ForgeHost,
    clock: Clock,
    public_url: str | None = None,
    committer_email: str | None = None,
) -> Host:
    if isinstance(host, PlainHostSettings):
        return PlainHost(name, host.root, host.checks)
    return FORGES[host.provider](build_forge_config(name, host, public_url, committer_email), clock)


def build_forge_config(
    name: str, host: ForgeHost, public_url: str | None, committer_email: str | None = None
) -> ForgeConfig:
    return ForgeConfig(
        name=name,
        web_url=host.url,
        api_url=host.api_url,
        token=host.token,
        app=App(host.app_id, host.private_key) if host.app_id and host.private_key else None,
        webhook_secret=host.webhook_secret,
        checks_from=host.checks,
        poll_interval_ms=host.poll_seconds * SECOND,
        unreadable_rules_block=host.unreadable_rules == "unmet",
        public_url=public_url,
        ca_file=host.ca_file,
        write_pace=GITHUB_CLOUD_PACE if host.is_github_cloud else None,
        signer=open_signer(host.signing_key_file) if host.signing_key_file else None,
        committer_email=committer_email,
    )


@cache
def open_signer(path: Path) -> FileSigner:
    """One per file, so that a new key is read and logged once."""
    return FileSigner(path)


def make_identities(settings: Settings) -> dict[str, Identity]:
    """The committer on each Git host. An empty address: that of our account there."""
    name, email, hosts = settings.committer_name, settings.committer_email or "", settings.hosts.items()
    files = {host_name: host.signing_key_file for host_name, host in hosts}
    return {host: Identity(name, email, open_signer(path) if path else None) for host, path in files.items()}


FORGES: dict[Provider, Callable[[ForgeConfig, Clock], Host]] = {
    Provider.GITHUB: GithubHost,
    Provider.GITLAB: GitlabHost,
    Provider.GITEA: GiteaHost,
}


def make_service(settings: Settings, public_url: str) -> Service:
    measure_disk(settings.data_dir)
    limits = choose_limits(settings.git_max_memory_mb, settings.git_max_cpu_seconds)
    git = GitCli(settings.data_dir / "mirrors", Identity(settings.committer_name, DEFAULT_ADDRESS), limits)
    hosts = make_hosts(settings)
    measure_hosts(hosts)

    async def check_out(repo: Repo, commit: Sha, folder: str) -> None:
        mirror = await git.mirror(str(repo), await hosts[repo.host].remote(repo))
        try:
            await mirror.export_tree(commit, folder)
        except MissingObject:  # built by another replica, so not in this mirror yet
            await mirror.fetch([TEST_BRANCH_REF_PATTERN])
            await mirror.export_tree(commit, folder)

    store = open_store(settings)
    return Service(
        store=store,
        shared_store=store if isinstance(store, PostgresStore) else None,
        is_worker=settings.role != "api",
        forecaster=None if settings.role == "worker" else SubprocessForecaster(),
        replayer=replay_in_subprocess,
        clock=SlewingClock(),
        wall_clock=WallClock(),
        git=git,
        hosts=hosts,
        identities=make_identities(settings),
        runner=make_runner(settings, check_out),
        sender=HttpSender(allow_private=settings.allow_private_webhooks),
        secret_box=make_secret_box(settings),
        public_url=public_url,
        hosts_with_urgent_writers=settings.hosts_with_urgent_writers,
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
    sandbox = make_sandbox(settings) if settings.can_run_checks else None
    return LocalRunner(settings.data_dir / "checks", settings.runner_limit, check_out, limits, sandbox)


def make_sandbox(settings: Settings) -> Sandbox | None:
    if settings.runner_sandbox == "none":
        return None
    roots = (host.root for host in settings.hosts.values() if isinstance(host, PlainHostSettings))
    sandbox = Sandbox(
        network=settings.runner_network,
        readable=tuple(map(Path, filter(None, settings.runner_paths.split(":")))),
        hidden=tuple(folder.resolve() for folder in (settings.data_dir, *roots)),
    )
    folder = settings.data_dir.absolute() / "checks"
    problem = sandbox.find_problem(folder)
    if problem is None:
        return sandbox.strictest(folder)
    if settings.runner_sandbox == "bwrap":
        raise SandboxUnavailableError(
            f"Checks cannot be sandboxed: {problem}. Install bubblewrap and permit it to create namespaces, or set"
            ' runner_sandbox to "auto" or "none".'
        )
    advice = 'install bubblewrap and permit it to create namespaces, or set runner_sandbox to "none" to accept this'
    log.warning("checks_run_without_sandbox", error=problem, advice=advice)
    return None


def make_grants(settings: Settings) -> Grants:
    oidc = settings.oidc
    return NO_GRANTS if oidc is None else Grants(group_scopes=oidc.scopes, default_scopes=oidc.default_scopes)


def make_sso(settings: Settings, service: Service, public_url: str) -> SingleSignOn | None:
    oidc = settings.oidc
    if oidc is None:
        return None
    registration = ClientRegistration(
        issuer=oidc.issuer,
        client_id=oidc.client_id,
        client_secret=oidc.client_secret,
        redirect_uri=public_url + SSO_CALLBACK_PATH,
        scopes=oidc.request_scopes,
        name_claim=oidc.name_claim,
        groups_claim=oidc.groups_claim,
    )
    return SingleSignOn(oidc.label, OpenIdProvider(registration, service.wall_clock), service.sessions)


def make_application(settings: Settings, service: Service, public_url: str) -> Starlette:
    authenticator = Authenticator(service.tokens, service.token_uses, service.refusal_log, service.wall_clock)
    endpoints = (
        ()
        if settings.role == "worker"
        else build_endpoints(build_handlers(service, public_url), build_effect_waits(service))
    )
    dispatcher = Dispatcher(authenticator, service.idempotency)
    routes = [
        *(dispatcher.build_route(endpoint) for endpoint in endpoints),
        *pages.Probes(service.check_ready, service.clock).routes(),
        pages.metrics_route(lambda: generate_latest(REGISTRY), None if settings.open_metrics else authenticator),
        *pages.docs_routes(json.encode(openapi.build_document(endpoints))),
        *pages.CheckOutput(service, authenticator).routes(),
        *pages.ForgeWebhooks(service.forge_events, service.refusal_log).routes(),
    ]
    if settings.role == "worker":
        return build_app(routes)
    sso, over_tls = make_sso(settings, service, public_url), public_url.startswith("https:")
    application = build_app(routes, WebApp(service, sso, over_tls=over_tls))
    application.add_middleware(CompressionMiddleware, over_tls=over_tls)
    return application
