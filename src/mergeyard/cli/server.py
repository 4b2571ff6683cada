"""Starts the server, and ends it cleanly."""

import asyncio
import ctypes
import gc
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated

import structlog
import typer
import uvicorn
import uvloop

from mergeyard import logs, wiring
from mergeyard.api.protocol import Protocol
from mergeyard.cli import descriptors, memory
from mergeyard.cli.exits import stop_with
from mergeyard.cli.occupying import Occupied, alone_in
from mergeyard.cli.options import ConfigFile, DatabaseUrl, DataDir, load_settings
from mergeyard.ports.git import GitTrouble
from mergeyard.ports.host import ChecksFrom
from mergeyard.ports.runner import SandboxUnavailableError
from mergeyard.ports.store import StoreTrouble
from mergeyard.settings import ForgeHost, Settings
from mergeyard.settings.sources import PREFIX

log = structlog.get_logger()

SECONDS_TO_FINISH = 10
"""For requests that are under way when the server is told to end."""
GARBAGE_BEFORE_COLLECTION = 50_000
"""Queues are values without cycles: they die by themselves, and collecting often would only walk through them."""
SECONDS_UNTIL_ANOTHER_THREAD = 0.0005
"""A tenth of what Python grants: who understands a large upload aside else holds up every answer several times."""
PR_SET_DUMPABLE = 4
"""From linux/prctl.h."""


def serve(
    config: ConfigFile = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on; 0 is any that is free.")] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    database_url_file: Annotated[str | None, typer.Option(help="A file that holds the database's address.")] = None,
    role: Annotated[str | None, typer.Option(help="What this process does: all, api or worker.")] = None,
    public_url: Annotated[str | None, typer.Option(help="Where people find the service.")] = None,
    trusted_proxies: Annotated[str | None, typer.Option(help="Proxies whose X-Forwarded-For is believed.")] = None,
    log_format: Annotated[str | None, typer.Option(help="auto, human or json.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    open_metrics: Annotated[bool | None, typer.Option(help="Show /metrics without a token.")] = None,
    committer_name: Annotated[str | None, typer.Option(help="Who makes the queue's commits.")] = None,
    committer_email: Annotated[str | None, typer.Option(help="And the address in them.")] = None,
    runner_limit: Annotated[int | None, typer.Option(help="How many checks run at once.")] = None,
    runner_sandbox: Annotated[str | None, typer.Option(help="How checks are sandboxed: auto, bwrap or none.")] = None,
    runner_network: Annotated[bool | None, typer.Option(help="Give sandboxed checks a network.")] = None,
    runner_paths: Annotated[str | None, typer.Option(help="More folders that sandboxed checks may read.")] = None,
    runner_max_disk_mb: Annotated[int | None, typer.Option(help="Room on the disk for each check, in MiB.")] = None,
    runner_max_processes: Annotated[int | None, typer.Option(help="Processes at once of each check.")] = None,
    allow_private_webhooks: Annotated[bool | None, typer.Option(help="Send events to your own network too.")] = None,
    sealing_key_file: Annotated[str | None, typer.Option(help="What the secrets of webhooks are sealed with.")] = None,
    retention_runs_days: Annotated[int | None, typer.Option(help="Days to keep ended runs and submissions.")] = None,
    retention_journal_days: Annotated[int | None, typer.Option(help="Days to keep events and the audit log.")] = None,
    retention_statuses_days: Annotated[int | None, typer.Option(help="Days to keep statuses without a run.")] = None,
    retention_targets_days: Annotated[int | None, typer.Option(help="Days to keep impacted targets.")] = None,
    retention_outputs_days: Annotated[int | None, typer.Option(help="Days to keep what checks wrote.")] = None,
    targets_quota_mib: Annotated[int | None, typer.Option(help="MiB of impacted targets per token.")] = None,
) -> None:
    """Start the server."""
    options = {name: value for name, value in locals().items() if name != "config"}
    settings = load_settings(config, options)
    _protect_secrets()
    logs.configure(settings.log_format, settings.log_level, sys.stderr)
    if not settings.hosts:
        log.warning("no host is configured: add one to the file, see docs/configuration.md")
    _warn_of_untrusted_checks(settings)
    memory.give_large_blocks_back()
    try:
        with alone_in(settings.data_dir), _listening(settings) as listener:
            _warn_about_exposure(settings)
            _run(settings, listener)
    except Occupied:
        stop_with(f"Another server works in {settings.data_dir}: stop it, or name another folder with --data-dir.")
    except (GitTrouble, SandboxUnavailableError, StoreTrouble) as trouble:
        stop_with(str(trouble))


def _protect_secrets() -> None:
    """Keeps other processes of the same user from reading the secrets of this one.

    A process that is not dumpable can be neither traced nor read under /proc without CAP_SYS_PTRACE, and it leaves no
    core dump. Its children are dumpable again after exec, so they must not inherit the variables of the settings.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]


def _warn_of_untrusted_checks(settings: Settings) -> None:
    for name, host in settings.hosts.items():
        if isinstance(host, ForgeHost) and host.checks is ChecksFrom.RUN:
            log.warning("untrusted_checks_allowed", host=name, setting="allow_untrusted_checks")


def _warn_about_exposure(settings: Settings) -> None:
    mode = stat.S_IMODE(settings.data_dir.stat().st_mode)
    if mode & 0o077:
        advice = "other users of this machine can reach mirrors, outputs and keys: chmod 700"
        log.warning("data_dir_is_accessible", data_dir=str(settings.data_dir), mode=f"{mode:04o}", advice=advice)
    if settings.database_is_unverified:
        advice = "the connection may be read or redirected: add sslmode=verify-full to database_url"
        log.warning("database_connection_not_verified", advice=advice)


def _run(settings: Settings, listener: socket.socket) -> None:
    public_url = settings.address(listener.getsockname()[1])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, listener, public_url))


async def _serve(settings: Settings, listener: socket.socket, public_url: str) -> None:
    service = wiring.make_service(settings, public_url)
    await service.start()
    try:
        application = wiring.make_application(settings, service, public_url)
        server = _Server(
            service.live.end,
            uvicorn.Config(
                application,  # pyright: ignore[reportArgumentType]
                http=_protocol(),
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=bool(settings.trusted_proxies),
                forwarded_allow_ips=settings.trusted_proxies,
                lifespan="off",
                timeout_graceful_shutdown=SECONDS_TO_FINISH,
            ),
        )
        _tune_the_interpreter()
        log.info("listening", url=public_url)
        await server.serve(sockets=[listener])
    finally:
        await service.stop()
        log.info("stopped")


def _tune_the_interpreter() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_BEFORE_COLLECTION)
    sys.setswitchinterval(SECONDS_UNTIL_ANOTHER_THREAD)


def _protocol() -> type[Protocol]:
    class Bounded(Protocol):
        most_connections = min(Protocol.most_connections, descriptors.for_connections())

    return Bounded


class _Server(uvicorn.Server):
    """Takes a signal as a wish to end. Uvicorn would raise it once more, and kill us before all is put away."""

    def __init__(self, say_goodbye: Callable[[], None], config: uvicorn.Config) -> None:
        super().__init__(config)
        self._say_goodbye = say_goodbye

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._leave, number)
        yield

    def _leave(self, number: int) -> None:
        self._say_goodbye()
        self.handle_exit(number, None)


def _listening(settings: Settings) -> socket.socket:
    try:
        return socket.create_server((settings.host, settings.port), family=_family(settings.host), backlog=2048)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        stop_with(f"Cannot listen on {where} ({error.strerror}): choose another with --host and --port.")


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
