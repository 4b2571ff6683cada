"""The real server, up at once: forked by a process that has imported it already.

Whoever wants to know how a start from nothing goes takes a plain `Server`.
"""

from tests.support.forked import Forked
from tests.support.server import Process, Server


class QuickServer(Server):
    program = "mergeyard.__main__"

    def _spawn(self, *arguments: str) -> Process:
        return Forked(self.program, self.folder, self._log, self.surroundings, arguments)
