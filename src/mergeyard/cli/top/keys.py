"""Hears single keys from the terminal, without showing them."""

import os
import select
import sys
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def hearing_keys() -> Generator[None]:
    """Ctrl-C still interrupts. The terminal is left as it was found."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin, termios.TCSANOW)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def key_within(seconds: float) -> str:
    """The key that was pressed, or nothing when the time is over."""
    inputs = [sys.stdin.fileno()] if sys.stdin.isatty() else []
    ready, _, _ = select.select(inputs, [], [], seconds)
    return os.read(ready[0], 1).decode(errors="replace") if ready else ""
