"""`mergeyard serve`: starts the server and shuts it down cleanly."""

import asyncio
import ctypes
import gc
import os
import resource
import signal
import socket
import stat
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import structlog
import uvicorn
import uvloop

from mergeyard import logging, wiring
from mergeyard.api.http_protocol import LimitedProtocol
from mergeyard.cli.local_store import DataDirLocked, load_settings, lock_data_dir
from mergeyard.cli.output import exit_with_message
from mergeyard.ports.external import SandboxUnavailableError
from mergeyard.ports.forge import ChecksFrom
from mergeyard.ports.git import GitError
from mergeyard.ports.store import StoreUnavailable
from mergeyard.settings import ForgeHost, Settings
from mergeyard.settings.parsing import ENVIRONMENT_PREFIX

MAX_OPEN_FILES = 16_384
"""A higher limit gains nothing, and the checks that the runner starts inherit it."""


def raise_open_file_limit() -> None:
    """Raises the soft limit, which is often low by default, up to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


M_MMAP_THRESHOLD = -3
MMAP_THRESHOLD_BYTES = 128 * 1024
"""Larger blocks are mapped and unmapped one by one. The value is glibc's initial threshold; setting it turns the
adjustment off."""


def fix_mmap_threshold() -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # only glibc has it
        mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)


log = structlog.get_logger()

SHUTDOWN_TIMEOUT_S = 10
"""For requests in progress when the server receives a signal."""
KEEP_ALIVE_S = 75
"""Longer than a proxy keeps its connections (a minute): a request on one that is being closed would be lost."""
GC_THRESHOLD = 50_000
"""Queues are values without cycles, freed by reference counting; frequent collections would only traverse them."""
THREAD_SWITCH_INTERVAL_S = 0.0005
"""A tenth of Python's default: a thread that parses a large upload would otherwise delay every response several
times."""
CONFIGURATION_PAGE = "https://docs.example.com/mergeyard/operate/configuration/"
PR_SET_DUMPABLE = 4
"""From linux/prctl.h."""


def serve(config: Path | None, options: Mapping[str, object]) -> None:
    settings = load_settings(config, options)
    _protect_secrets()
    logging.configure_logging(settings.log_format, settings.log_level, sys.stderr)
    if not settings.hosts:
        log.warning("no_host_configured", advice=f"add a host to the settings file, see {CONFIGURATION_PAGE}")
    _warn_about_untrusted_checks(settings)
    fix_mmap_threshold()
    raise_open_file_limit()
    try:
        with lock_data_dir(settings.data_dir), _open_listener(settings) as listener:
            _warn_about_exposure(settings)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(_serve(settings, listener))
    except DataDirLocked:
        exit_with_message(
            f"Another server uses {settings.data_dir}: stop it, or choose another folder with --data-dir."
        )
    except (GitError, SandboxUnavailableError, StoreUnavailable) as error:
        exit_with_message(str(error))


def _protect_secrets() -> None:
    """Keeps other processes of the same user from reading the secrets of this one.

    A process that is not dumpable can be neither traced nor read under /proc without CAP_SYS_PTRACE, and it leaves no
    core dump. Its children are dumpable again after exec, so they must not inherit the variables of the settings.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    for name in [name for name in os.environ if name.startswith(ENVIRONMENT_PREFIX)]:
        del os.environ[name]


def _warn_about_untrusted_checks(settings: Settings) -> None:
    for name, host in settings.hosts.items():
        if isinstance(host, ForgeHost) and host.checks is ChecksFrom.RUN:
            advice = 'code of every submitted pull request runs on this machine: set runner_sandbox to "bwrap"'
            log.warning("untrusted_checks_allowed", host=name, advice=advice)


def _warn_about_exposure(settings: Settings) -> None:
    mode = stat.S_IMODE(settings.data_dir.stat().st_mode)
    if mode & 0o077:
        advice = "other users of this machine can reach mirrors, outputs and keys: chmod 700"
        log.warning("data_dir_is_accessible", data_dir=str(settings.data_dir), mode=f"{mode:04o}", advice=advice)
    if settings.is_database_unverified:
        advice = "the connection can be read or redirected: add sslmode=verify-full to database_url"
        log.warning("database_connection_not_verified", advice=advice)


async def _serve(settings: Settings, listener: socket.socket) -> None:
    public_url = settings.build_public_url(listener.getsockname()[1])
    service = wiring.make_service(settings, public_url)
    await service.start()
    try:
        application = wiring.make_application(settings, service, public_url)
        server = _Server(
            public_url,
            service.change_waiter.stop,
            uvicorn.Config(
                application,
                http=LimitedProtocol,
                ws="none",
                log_config=None,
                access_log=settings.access_log,
                server_header=False,
                proxy_headers=bool(settings.trusted_proxies),
                forwarded_allow_ips=settings.trusted_proxies,
                lifespan="off",
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
            ),
        )
        _tune_interpreter()
        await server.serve(sockets=[listener])
    finally:
        await service.stop()
        log.info("stopped")


def _tune_interpreter() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    sys.setswitchinterval(THREAD_SWITCH_INTERVAL_S)


class _Server(uvicorn.Server):
    """Treats a signal as a request to stop. Uvicorn would raise it again and kill the process before the service has
    stopped."""

    def __init__(self, public_url: str, on_stop: Callable[[], None], config: uvicorn.Config) -> None:
        super().__init__(config)
        self._public_url = public_url
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Logs that it listens only when a signal would already stop it cleanly."""
        await super().startup(sockets)
        log.info("listening", url=self._public_url)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number)
        yield

    def _stop(self, number: int) -> None:
        self._on_stop()
        self.handle_exit(number, None)


def _open_listener(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        address = f"{settings.host}:{settings.port}"
        exit_with_message(f"Cannot listen on {address} ({error.strerror}): choose another with --host and --port.")
