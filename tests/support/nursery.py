"""Bears servers: a process that has imported all that a server needs, and forks one whenever it is asked.

    python -m tests.support.nursery mergeyard.__main__

Starting Python and importing the service costs more than all that a server does in its short life in a test.
"""

import os
import select
import signal
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.support.host_log import SERVER

COMMAND = "mergeyard.cli.server"
"""What would otherwise be loaded only when it is called."""
ANSWER = 1
"""Where the number of a newborn is told: its own standard output leads elsewhere."""


class Birth(Struct, frozen=True, kw_only=True):
    arguments: tuple[str, ...]
    folder: str
    surroundings: Mapping[str, str]
    log: str
    ended: str
    """The file that is made when it has ended, with its exit code."""


class Nursery:
    def __init__(self, main: Callable[[], None]) -> None:
        self._main = main
        self._wards: dict[int, tuple[int, Birth]] = {}
        """By the handle of the process."""

    def run(self) -> None:
        """Until nobody is there any more who could ask; then all end."""
        asked = True
        while asked:
            ready, _, _ = select.select([sys.stdin.buffer, *self._wards], [], [])
            for handle in ready:
                if isinstance(handle, int):
                    self._bury(handle)
                else:
                    asked = self._hear(sys.stdin.buffer.readline())
        for process, _ in self._wards.values():
            os.kill(process, signal.SIGKILL)

    def _hear(self, line: bytes) -> bool:
        if line:
            birth = msgspec.json.decode(line, type=Birth)
            process = os.fork()
            if not process:
                live(birth, self._main)
            self._wards[os.pidfd_open(process)] = (process, birth)
            os.write(ANSWER, b"%d\n" % process)
        return bool(line)

    def _bury(self, handle: int) -> None:
        process, birth = self._wards.pop(handle)
        os.close(handle)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        draft = Path(f"{birth.ended}.new")
        draft.write_text(str(code))
        draft.rename(birth.ended)


def live(birth: Birth, main: Callable[[], None]) -> None:
    """As a process that was started on its own."""
    os.setsid()
    log, nothing = os.open(birth.log, os.O_WRONLY | os.O_APPEND), os.open(os.devnull, os.O_RDWR)
    for place, what in ((0, nothing), (1, nothing), (2, log)):
        os.dup2(what, place)
    os.closerange(3, 256)
    Path("/proc/self/comm").write_text(SERVER)
    os.chdir(birth.folder)
    os.environ.clear()
    os.environ.update(birth.surroundings)
    sys.argv = ["mergeyard", *birth.arguments]
    try:
        main()
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else bool(end.code))
    os._exit(0)


if __name__ == "__main__":
    import_module(COMMAND)
    Nursery(import_module(sys.argv[1]).main).run()
