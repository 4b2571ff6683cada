"""A real Gitea on loopback, with its own data, from the binary that `make forge` built.

    with GiteaServer(binary) as server:
        server.url, server.admin_token

It does not outlive the process that started it, however that process ends.
"""

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

import httpx2

from tests.support.polling import eventually

BINARY_VARIABLE = "MERGEYARD_FORGE_BINARY"
"""The environment variable that can name a binary."""
CACHE = Path(__file__).parents[2] / ".forge"
ADMIN = "test-admin"
PASSWORD = "not-a-secret-1"

SETTINGS = """
RUN_USER = {user}
RUN_MODE = prod
WORK_PATH = {folder}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = {url}/
STATIC_ROOT_PATH = {static_root}
DISABLE_SSH = true
OFFLINE_MODE = true
LFS_START_SERVER = false
[database]
DB_TYPE = sqlite3
PATH = {folder}/gitea.db
[security]
INSTALL_LOCK = true
SECRET_KEY = only-for-tests
INTERNAL_TOKEN = only-for-tests
PASSWORD_HASH_ALGO = bcrypt$4
[repository]
DEFAULT_BRANCH = main
[service]
DISABLE_REGISTRATION = true
[webhook]
ALLOWED_HOST_LIST = *
[actions]
ENABLED = false
[packages]
ENABLED = false
[indexer]
ISSUE_INDEXER_TYPE = db
[cron]
ENABLED = false
[session]
PROVIDER = memory
[log]
MODE = file
LEVEL = Warn
ROOT_PATH = {folder}/log
"""

WATCHDOG = """
"$@" < /dev/null &
read -r signal
kill -s "${signal:-KILL}" $!
wait $!
test -n "$signal" || rm -rf "$FOLDER"
"""
"""Runs the server until it reads the name of a signal to end it with. When its input is closed instead, because the
tests were killed, it kills the server and removes its folder."""


class GiteaServer:
    def __init__(self, binary: Path) -> None:
        self._binary = binary
        self._folder = Path(tempfile.mkdtemp(prefix="mergeyard-gitea-"))
        self._port = _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.admin_token = ""
        self._watchdog: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._set_up()
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._watchdog
        self._watchdog.communicate(b"TERM\n")
        shutil.rmtree(self._folder)

    def _set_up(self) -> None:
        names = {"user": getpass.getuser(), "folder": self._folder, "port": self._port, "url": self.url}
        static_root = self._binary.resolve().parent
        self._settings.write_text(SETTINGS.format(static_root=static_root, **names))
        self._command("migrate")
        account = ["--username", ADMIN, "--password", PASSWORD, "--email", "admin@example.org", "--admin"]
        self._command("admin", "user", "create", *account, "--must-change-password=false")
        token = ["--username", ADMIN, "--token-name", "tests", "--scopes", "all", "--raw"]
        self.admin_token = self._command("admin", "user", "generate-access-token", *token).split()[-1]

    def _start(self) -> None:
        with (self._folder / "output").open("ab") as output:
            self._watchdog = subprocess.Popen[bytes](
                ["sh", "-c", WATCHDOG, "watchdog", *self._call("web")],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
                **self._process_options(),
            )
        eventually(self._is_ready, describe=(self._folder / "output").read_text)

    def _is_ready(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/api/healthz").is_success
        except httpx2.TransportError:
            return False

    def _command(self, *arguments: str) -> str:
        result = subprocess.run(
            self._call(*arguments), capture_output=True, check=False, text=True, **self._process_options()
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def _call(self, *arguments: str) -> list[str]:
        return [str(self._binary), *arguments, "--config", str(self._settings)]

    def _process_options(self) -> dict[str, Any]:
        """Gitea runs as root only with an explicit variable; here it serves only the tests."""
        variables = {"HOME": str(self._folder), "GITEA_WORK_DIR": str(self._folder), "FOLDER": str(self._folder)}
        as_root = {"GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT": "true"} if os.geteuid() == 0 else {}
        return {"cwd": self._folder, "env": {"PATH": os.environ["PATH"], **variables, **as_root}}

    @property
    def _settings(self) -> Path:
        return self._folder / "app.ini"


def find_binary() -> Path | None:
    if chosen := os.environ.get(BINARY_VARIABLE):
        return Path(chosen)
    return max(CACHE.glob("gitea-*/gitea"), key=_version, default=None)


def _version(binary: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in binary.parent.name.removeprefix("gitea-").split("."))


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
