"""The real server as a process of its own: started, ended politely, or killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from msgspec import DecodeError, json

from tests.support.patience import eventually

SECONDS_TO_END = 15

HOST = """
[hosts."git.local"]
provider = "git"
root = {root}
checks = {checks}
"""


class Process(Protocol):
    """What is used of a process that runs apart."""

    returncode: int | None

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class Server:
    def __init__(self, folder: Path, checks: str = "api", *, root: str = "repos", **settings: object) -> None:
        self.folder = folder
        self.surroundings = {name: value for name, value in os.environ.items() if not name.startswith("MERGEYARD_")}
        self.config = folder / "mergeyard.toml"
        self.url = ""
        self._log = folder / "server.log"
        self._launched_at = 0
        self._process: Process | None = None
        (folder / root).mkdir(exist_ok=True)
        lines = ({"data_dir": "data", "log_format": "json"} | settings).items()
        host = HOST.format(root=in_toml(root), checks=in_toml(checks))
        self.config.write_text("".join(f"{name} = {in_toml(value)}\n" for name, value in lines) + host)

    @property
    def process(self) -> Process:
        assert self._process, "the server was never started"
        return self._process

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Returns when it listens."""
        self.launch()
        self.come_up()

    def launch(self) -> None:
        assert not self.alive
        self.url = ""
        self._log.touch()
        self._launched_at = self._log.stat().st_size
        self._process = self._spawn("serve", "--config", str(self.config), "--port", "0")

    def _spawn(self, *arguments: str) -> Process:
        command = [sys.executable, "-m", "mergeyard", *arguments]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stderr=log, env=self.surroundings, cwd=self.folder)

    def come_up(self) -> None:
        self.url = eventually(lambda: self._listens_at(self._launched_at), but=self._log.read_text)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        assert code == 0, self._log.read_text()

    def told(self, since: int = 0) -> Iterator[dict[str, Any]]:
        """What it wrote to its log."""
        for line in self._log.read_bytes()[since:].splitlines():
            try:
                yield json.decode(line)
            except DecodeError:
                yield {"event": line.decode(errors="replace"), "level": "error"}

    def complaints(self) -> list[dict[str, Any]]:
        return [entry for entry in self.told() if entry["level"] in {"error", "critical"}]

    def _listens_at(self, since: int) -> str:
        assert self.alive, self._log.read_text()
        whole = self._log.read_bytes()[since:].rpartition(b"\n")[0]
        entries = (json.decode(line) for line in whole.splitlines() if b'"listening"' in line)
        return next((entry["url"] for entry in entries if entry["event"] == "listening"), "")


def in_toml(value: object) -> str:
    """Text, numbers and truth are written as in JSON."""
    return json.encode(value).decode()
