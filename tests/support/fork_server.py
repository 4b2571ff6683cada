"""A fork server: a process that has imported everything a server needs and forks one per request.

    python -m tests.support.fork_server mergeyard.__main__

Starting Python and importing the service takes longer than everything a server does in a typical test.
"""

import gc
import os
import select
import signal
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.support.host_log import SERVER_PROCESS_NAME

SERVER_MODULES = (
    "mergeyard.cli.server",
    "certifi.core",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.httptools_impl",
)
"""Imported before the fork; otherwise each child would import them when the command runs."""
ANSWER_FD = 1
"""File descriptor to which the PID of each child is written."""


class ForkRequest(Struct, frozen=True, kw_only=True):
    arguments: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    log: str
    exit_code_file: str
    """File that is created when the process has ended; it contains the exit code."""


class ForkServer:
    def __init__(self, main: Callable[[], None]) -> None:
        self._main = main
        self._children: dict[int, tuple[int, ForkRequest]] = {}
        """By process file descriptor."""

    def run(self) -> None:
        """Serves requests until stdin is closed, then kills all children."""
        is_open = True
        while is_open:
            ready, _, _ = select.select([sys.stdin.buffer, *self._children], [], [])
            for handle in ready:
                if isinstance(handle, int):
                    self._reap(handle)
                else:
                    is_open = self._handle_request(sys.stdin.buffer.readline())
        for process, _ in self._children.values():
            os.kill(process, signal.SIGKILL)

    def _handle_request(self, line: bytes) -> bool:
        if line:
            request = msgspec.json.decode(line, type=ForkRequest)
            process = os.fork()
            if not process:
                run_child(request, self._main)
            self._children[os.pidfd_open(process)] = (process, request)
            os.write(ANSWER_FD, b"%d\n" % process)
        return bool(line)

    def _reap(self, handle: int) -> None:
        process, request = self._children.pop(handle)
        os.close(handle)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        draft = Path(f"{request.exit_code_file}.new")
        draft.write_text(str(code))
        draft.rename(request.exit_code_file)


def run_child(request: ForkRequest, main: Callable[[], None]) -> None:
    """Runs as if the process had been started separately."""
    os.setsid()
    log, nothing = os.open(request.log, os.O_WRONLY | os.O_APPEND), os.open(os.devnull, os.O_RDWR)
    for target, source in ((0, nothing), (1, nothing), (2, log)):
        os.dup2(source, target)
    os.closerange(3, 256)
    Path("/proc/self/comm").write_text(SERVER_PROCESS_NAME)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    sys.argv = ["mergeyard", *request.arguments]
    try:
        main()
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else bool(end.code))
    os._exit(0)


if __name__ == "__main__":
    for name in SERVER_MODULES:
        import_module(name)
    gc.freeze()  # a child does not examine what it shares with this process, which would copy it
    ForkServer(import_module(sys.argv[1]).main).run()
