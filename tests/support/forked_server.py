"""A server process that the fork server started, with the interface of `Popen`."""

import os
import subprocess
import sys
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from signal import SIGKILL, SIGTERM

import msgspec

from tests.support.fork_server import ForkRequest
from tests.support.polling import eventually
from tests.support.server import Process, Server

ROOT = Path(__file__).parents[2]
EXIT_TIMEOUT_S = 60.0
PROCESS_NUMBERS = count(1)


class ForkedProcess:
    def __init__(
        self, program: str, folder: Path, log: Path, environment: dict[str, str], arguments: tuple[str, ...]
    ) -> None:
        """`program` is a module with a function `main`."""
        self.returncode: int | None = None
        self._exit_code_file = folder / f"ended-{next(PROCESS_NUMBERS)}"
        request = ForkRequest(
            arguments=arguments,
            folder=str(folder),
            environment=environment,
            log=str(log),
            exit_code_file=str(self._exit_code_file),
        )
        self.pid = request_fork(program, request)

    def poll(self) -> int | None:
        if self.returncode is None and self._exit_code_file.exists():
            self.returncode = int(self._exit_code_file.read_text())
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        eventually(lambda: self.poll() is not None, timeout or EXIT_TIMEOUT_S)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(SIGTERM)

    def kill(self) -> None:
        self.send_signal(SIGKILL)


def request_fork(program: str, request: ForkRequest) -> int:
    stdin, stdout = fork_server(program).stdin, fork_server(program).stdout
    assert stdin
    assert stdout
    stdin.write(msgspec.json.encode(request) + b"\n")
    stdin.flush()
    return int(stdout.readline())


@cache
def fork_server(program: str) -> subprocess.Popen[bytes]:
    """Ends only with this process, because its stdin is closed then."""
    command = [sys.executable, "-m", ForkRequest.__module__, program]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, start_new_session=True)


class ForkedServer(Server):
    program = "mergeyard.__main__"

    def _spawn(self, *arguments: str) -> Process:
        return ForkedProcess(self.program, self.folder, self._log, self.environment, arguments)
