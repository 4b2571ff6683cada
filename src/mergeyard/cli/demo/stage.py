"""The stage of the demo: a folder, a repository in it, and the server as a process of its own. Nothing outlives it."""

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
from mergeyard.cli.demo.planting import plant
from mergeyard.domain.repositories import Repo
from mergeyard.domain.tokens import DEFAULT_SCOPES, Scope
from mergeyard.settings import load

REPO = Repo("git.local", "teahouse", "till")
PATIENCE = 60
"""Seconds for the server to start; it takes one, but the machine may be busy."""
SECONDS_TO_END = 15

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


class StageTrouble(Exception):
    """The server did not start, or ended by itself; the words say where to look."""


class Logged(Struct):
    event: str = ""
    url: str = ""


class Stage(Struct, frozen=True, kw_only=True):
    folder: Path
    server: Process
    url: str
    admin: str
    """The token that may do everything."""

    @property
    def repository(self) -> Path:
        return repository_in(self.folder)

    @property
    def token_file(self) -> Path:
        return self.folder / "token"


@asynccontextmanager
async def setting(folder: Path) -> AsyncGenerator[Stage]:
    await plant(repository_in(folder))
    config = folder / "mergeyard.toml"
    config.write_text(SETTINGS)
    server = await started(folder, config)
    try:
        url = await address(server, folder)
        admin, author = await tokens(config)
        stage = Stage(folder=folder, server=server, url=url, admin=admin)
        stage.token_file.write_text(author)
        yield stage
    finally:
        await ended(server)


@asynccontextmanager
async def temporary_folder(*, keep: bool) -> AsyncGenerator[Path]:
    folder = Path(mkdtemp(prefix="mergeyard-demo-"))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def repository_in(folder: Path) -> Path:
    return folder / "repos" / REPO.owner / f"{REPO.name}.git"


def log_in(folder: Path) -> Path:
    return folder / "server.log"


async def started(folder: Path, config: Path) -> Process:
    """In a session of its own: Ctrl-C is for us, and we end it when we are done with it."""
    with log_in(folder).open("wb") as log:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mergeyard", "serve", "--config", str(config)),
            stdin=DEVNULL,
            stdout=log,
            stderr=log,
            env={name: value for name, value in os.environ.items() if not name.startswith("MERGEYARD_")},
            start_new_session=True,
        )


async def address(server: Process, folder: Path) -> str:
    """As the server's log tells it."""
    try:
        async with asyncio.timeout(PATIENCE):
            while (url := logged_address(folder)) is None:
                if server.returncode is not None:
                    raise StageTrouble(f"The server did not start:\n{log_in(folder).read_text()}")
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise StageTrouble(f"The server did not start within {PATIENCE} seconds.") from None
    return url


def logged_address(folder: Path) -> str | None:
    whole_lines = log_in(folder).read_bytes().split(b"\n")[:-1]
    entries = (entry for line in whole_lines if (entry := parsed(line)))
    return next((entry.url for entry in entries if entry.event == "listening"), None)


def parsed(line: bytes) -> Logged | None:
    try:
        return msgspec.json.decode(line, type=Logged)
    except msgspec.MsgspecError:
        return None


async def tokens(config: Path) -> tuple[str, str]:
    """One for whoever runs the queue, and one for the authors."""
    store, made = wiring.open_tokens(load(config, {}, {}))
    await store.open()
    try:
        _, admin = await made.create("stationmaster", {Scope.ADMIN})
        _, author = await made.create("authors", {*DEFAULT_SCOPES, Scope.PRIORITY}, {REPO})
    finally:
        await store.close()
    return admin, author


async def ended(server: Process) -> None:
    if server.returncode is not None:
        return
    server.terminate()
    try:
        async with asyncio.timeout(SECONDS_TO_END):
            await server.wait()
    except TimeoutError:
        server.kill()
        await server.wait()
