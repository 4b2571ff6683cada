"""A server out of the nursery, held like any other process."""

import os
import subprocess
import sys
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from signal import SIGKILL, SIGTERM

import msgspec

from tests.support.nursery import Birth
from tests.support.patience import eventually

ROOT = Path(__file__).parents[2]
SECONDS_TO_END = 60.0
NUMBERS = count(1)


class Forked:
    def __init__(
        self, program: str, folder: Path, log: Path, surroundings: dict[str, str], arguments: tuple[str, ...]
    ) -> None:
        """A program is a module with a `main`."""
        self.returncode: int | None = None
        self._ended = folder / f"ended-{next(NUMBERS)}"
        birth = Birth(
            arguments=arguments, folder=str(folder), surroundings=surroundings, log=str(log), ended=str(self._ended)
        )
        self.pid = born(program, birth)

    def poll(self) -> int | None:
        if self.returncode is None and self._ended.exists():
            self.returncode = int(self._ended.read_text())
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        eventually(lambda: self.poll() is not None, timeout or SECONDS_TO_END)
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


def born(program: str, birth: Birth) -> int:
    asking, answering = nursery(program).stdin, nursery(program).stdout
    assert asking
    assert answering
    asking.write(msgspec.json.encode(birth) + b"\n")
    asking.flush()
    return int(answering.readline())


@cache
def nursery(program: str) -> subprocess.Popen[bytes]:
    """Ends with this process, which it reads from, and by nothing else."""
    command = [sys.executable, "-m", "tests.support.nursery", program]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, start_new_session=True)
