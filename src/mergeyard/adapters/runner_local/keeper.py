"""Copies standard input to standard output, but no more than so many bytes; the rest is counted and dropped.

Started as a script of its own beside every command: a command that floods its output costs the service nothing.
"""

import os
import sys
from contextlib import suppress

PIECE = 64 * 1024


def keep(source: int, sink: int, most: int) -> None:
    kept = dropped = 0
    while piece := os.read(source, PIECE):
        written = write(sink, piece[: most - kept])
        kept += written
        dropped += len(piece) - written
    if dropped:
        write(sink, f"\n[{dropped} more bytes were dropped: {kept} are kept]\n".encode())


def write(sink: int, piece: bytes) -> int:
    """How much of it found room: a full disk must not end the command that writes."""
    written = 0
    with suppress(OSError):
        while written < len(piece):
            written += os.write(sink, piece[written:])
    return written


if __name__ == "__main__":
    keep(0, 1, int(sys.argv[1]))
