"""The environment of the demo: a temporary folder with a repository, and the server in its own process. All of it is
removed at the end."""

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp

import msgspec
from msgspec import Struct

from mergeyard import wiring
from mergeyard.cli.demo.sample_repository import REPO, create_sample_repository
from mergeyard.domain.access import DEFAULT_SCOPES, Scope
from mergeyard.settings import load

STARTUP_TIMEOUT_S = 60
"""The server starts within a second, but the machine can be busy."""
SHUTDOWN_TIMEOUT_S = 15

SETTINGS = """\
port = 0
data_dir = "data"
log_format = "json"
runner_limit = 8

[hosts."git.local"]
provider = "git"
root = "repos"
checks = "run"
"""


class DemoServerError(Exception):
    """The server did not start, or exited unexpectedly; the message names the log."""


class LogLine(Struct):
    event: str = ""
    url: str = ""


class DemoEnvironment(Struct, frozen=True, kw_only=True):
    folder: Path
    server: Process
    url: str
    admin_token: str
    """The token with the scope admin: also that of the user, for the dashboard and the command line."""
    author_token: str

    @property
    def repository(self) -> Path:
        return repository_path(self.folder)

    @property
    def token_file(self) -> Path:
        return self.folder / "token"


@asynccontextmanager
async def start_environment(folder: Path) -> AsyncGenerator[DemoEnvironment]:
    await create_sample_repository(repository_path(folder))
    config = folder / "mergeyard.toml"
    config.write_text(SETTINGS)
    server = await start_server(folder, config)
    try:
        url = await wait_for_url(server, folder)
        admin, author = await create_tokens(config)
        environment = DemoEnvironment(folder=folder, server=server, url=url, admin_token=admin, author_token=author)
        environment.token_file.write_text(admin)
        yield environment
    finally:
        await stop_server(server)


async def create_tokens(config: Path) -> tuple[str, str]:
    """One for the administrator, and one for the authors."""
    store, tokens = wiring.open_tokens(load(config, {}, {}))
    await store.open()
    try:
        _, admin = await tokens.create("admin", {Scope.ADMIN})
        _, author = await tokens.create("authors", {*DEFAULT_SCOPES, Scope.PRIORITY}, {REPO})
    finally:
        await store.close()
    return admin, author


@asynccontextmanager
async def temporary_folder(*, keep: bool) -> AsyncGenerator[Path]:
    folder = Path(mkdtemp(prefix="mergeyard-demo-"))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def repository_path(folder: Path) -> Path:
    return folder / "repos" / REPO.owner / f"{REPO.name}.git"


def log_path(folder: Path) -> Path:
    return folder / "server.log"


async def start_server(folder: Path, config: Path) -> Process:
    """In its own session: Ctrl-C reaches only this process, which stops the server itself."""
    with log_path(folder).open("wb") as log:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mergeyard", "serve", "--config", str(config)),
            stdin=DEVNULL,
            stdout=log,
            stderr=log,
            env={name: value for name, value in os.environ.items() if not name.startswith("MERGEYARD_")},
            start_new_session=True,
        )


async def wait_for_url(server: Process, folder: Path) -> str:
    """Reads the URL from the server's log."""
    try:
        async with asyncio.timeout(STARTUP_TIMEOUT_S):
            while (url := find_logged_url(folder)) is None:
                if server.returncode is not None:
                    raise DemoServerError(f"The server did not start:\n{log_path(folder).read_text()}")
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise DemoServerError(f"The server did not start within {STARTUP_TIMEOUT_S} seconds.") from None
    return url


def find_logged_url(folder: Path) -> str | None:
    complete_lines = log_path(folder).read_bytes().split(b"\n")[:-1]
    entries = (entry for line in complete_lines if (entry := parse_log_line(line)))
    return next((entry.url for entry in entries if entry.event == "listening"), None)


def parse_log_line(line: bytes) -> LogLine | None:
    try:
        return msgspec.json.decode(line, type=LogLine)
    except msgspec.MsgspecError:
        return None


async def stop_server(server: Process) -> None:
    if server.returncode is not None:
        return
    server.terminate()
    try:
        async with asyncio.timeout(SHUTDOWN_TIMEOUT_S):
            await server.wait()
    except TimeoutError:
        server.kill()
        await server.wait()
