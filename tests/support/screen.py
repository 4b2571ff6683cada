"""A terminal of a certain size, with a program in it whose screen can be read and whose keys can be pressed."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.support.patience import eventually


class Screen:
    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(100, 30)
        self.before = termios.tcgetattr(theirs)
        self._theirs = theirs
        self.written = ""
        """Everything that was ever written, with all that steers the terminal."""
        self._process = subprocess.Popen(
            command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, key: str) -> None:
        os.write(self._ours, key.encode())

    def shows(self, words: str) -> None:
        """Sooner or later, and from now on."""
        begun = len(self.written)
        eventually(lambda: self._read() and words in self.written[begun:], but=lambda: self.written[begun:])

    def ended(self) -> int:
        """With which code, once it has."""
        eventually(lambda: self._read() and self._process.poll() is not None, but=lambda: self.written)
        return self._process.returncode

    @property
    def settings(self) -> Any:
        return termios.tcgetattr(self._theirs)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def _read(self) -> bool:
        while select.select([self._ours], [], [], 0)[0]:
            self.written += os.read(self._ours, 65536).decode(errors="replace")
        return True


@contextmanager
def a_screen(command: Sequence[str], environment: Mapping[str, str]) -> Generator[Screen]:
    screen = Screen(command, environment)
    try:
        yield screen
    finally:
        screen.close()
