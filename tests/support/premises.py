"""Everything a queue lives with, and a server of its own.

premises = Premises.prepared(tmp_path)
premises.create_queue(batch=True)
number = premises.open_pr({"a.txt": "1"})
premises.submit(number)
premises.wait_for("merged", number)
"""

from pathlib import Path
from typing import Self

from mergeyard.cli import db, token
from tests.support.api import Api
from tests.support.host_log import HostLog
from tests.support.quick_server import QuickServer
from tests.support.repositories import Files, Origin
from tests.support.server import Server
from tests.support.surroundings import Surroundings, command


class Premises(Surroundings):
    def __init__(self, server: Server, origin: Origin, host_log: HostLog) -> None:
        super().__init__(origin, host_log, Api(server, new_token(server.config), host_log))
        self.server = server

    @classmethod
    def prepared(cls, folder: Path, files: Files | None = None, *, checks: str = "api", **settings: str) -> Self:
        """A running server, and a repository without a queue."""
        server = QuickServer(folder, checks, **settings)
        origin = Origin.made(folder / "repos" / "acme" / "app.git")
        origin.commit("main", files or {"README": "1"})
        premises = cls(server, origin, HostLog(origin, folder / "host"))
        server.start()
        return premises

    def describe(self) -> object:
        if not self.server.alive:
            return "the server is gone"
        return super().describe(), [entry for entry in self.server.told() if entry["level"] != "info"]

    def close(self) -> None:
        self.api.close()
        if self.server.alive:
            self.server.stop()


def new_token(config: Path) -> str:
    """Also before the server was ever started."""
    command(db.app, "migrate", "--config", str(config))
    return command(token.app, "create", "--name", "tests", "--scope", "admin", "--config", str(config)).strip()
