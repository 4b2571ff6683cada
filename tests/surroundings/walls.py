"""Servers in rooms whose clock on the wall is set, by hours, while they work."""

import subprocess
import sys
from pathlib import Path

from tests.support.server import Process, Server
from tests.surroundings.server import VARIABLE

ROOT = Path(__file__).parents[2]


class Wall:
    """The clock that a server looks at."""

    def __init__(self, server: Server) -> None:
        self._file = server.folder / "wall"
        server.surroundings |= {VARIABLE: str(self._file), "PYTHONPATH": str(ROOT)}
        self.set(0)

    def set(self, hours: int) -> None:
        """So much ahead of the true time."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{hours * 3600}")
        fresh.rename(self._file)


class ServerWithWall(Server):
    def _spawn(self, *arguments: str) -> Process:
        command = [sys.executable, "-m", "tests.surroundings.server", *arguments]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stderr=log, env=self.surroundings, cwd=self.folder)
