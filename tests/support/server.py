"""The real server as a separate process that tests start, stop or kill."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from msgspec import DecodeError, json

from tests.support.polling import eventually

STOP_TIMEOUT_S = 15

HOST_CONFIG = """
[hosts."git.local"]
provider = "git"
root = {root}
checks = {checks}
"""


class Process(Protocol):
    """The part of `Popen` that is used."""

    returncode: int | None

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class Server:
    port = 0
    """0: any that is free."""

    def __init__(self, folder: Path, checks: str = "api", *, root: str = "repos", **settings: object) -> None:
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("MERGEYARD_")}
        self.config = folder / "mergeyard.toml"
        self.url = ""
        self._log = folder / "server.log"
        self._launched_at = 0
        self._process: Process | None = None
        (folder / root).mkdir(exist_ok=True)
        lines = ({"data_dir": "data", "log_format": "json"} | settings).items()
        host = HOST_CONFIG.format(root=to_toml(root), checks=to_toml(checks))
        self.config.write_text("".join(f"{name} = {to_toml(value)}\n" for name, value in lines) + host)

    @property
    def process(self) -> Process:
        assert self._process, "the server was never started"
        return self._process

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Returns when the server listens."""
        self.launch()
        self.wait_until_listening()

    def launch(self) -> None:
        assert not self.alive
        self.url = ""
        self._log.touch()
        self._launched_at = self._log.stat().st_size
        self._process = self._spawn("serve", "--config", str(self.config), "--port", str(self.port))

    def _spawn(self, *arguments: str) -> Process:
        command = [sys.executable, "-m", "mergeyard", *arguments]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stderr=log, env=self.environment, cwd=self.folder)

    def wait_until_listening(self) -> None:
        self.url = eventually(lambda: self._find_url(self._launched_at), describe=self._log.read_text)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        assert code == 0, self._log.read_text()

    def log_entries(self, since: int = 0) -> Iterator[dict[str, Any]]:
        """The entries of its log."""
        for line in self._log.read_bytes()[since:].splitlines():
            try:
                yield json.decode(line)
            except DecodeError:
                yield {"event": line.decode(errors="replace"), "level": "error"}

    def logged_errors(self) -> list[dict[str, Any]]:
        return [entry for entry in self.log_entries() if entry["level"] in {"error", "critical"}]

    def _find_url(self, since: int) -> str:
        assert self.alive, self._log.read_text()
        complete_lines = self._log.read_bytes()[since:].rpartition(b"\n")[0]
        entries = (json.decode(line) for line in complete_lines.splitlines() if b'"listening"' in line)
        return next((entry["url"] for entry in entries if entry["event"] == "listening"), "")


def to_toml(value: object) -> str:
    """Strings, numbers and booleans have the same syntax as in JSON."""
    return json.encode(value).decode()
