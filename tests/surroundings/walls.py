"""Servers in rooms whose clock on the wall is set, by hours, while they work."""

from tests.support.quick_server import QuickServer
from tests.support.server import Server
from tests.surroundings.server import VARIABLE


class Wall:
    """The clock that a server looks at."""

    def __init__(self, server: Server) -> None:
        self._file = server.folder / "wall"
        server.surroundings[VARIABLE] = str(self._file)
        self.set(0)

    def set(self, hours: int) -> None:
        """So much ahead of the true time."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{hours * 3600}")
        fresh.rename(self._file)


class ServerWithWall(QuickServer):
    program = "tests.surroundings.server"
