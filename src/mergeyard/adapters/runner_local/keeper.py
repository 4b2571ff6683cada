"""Copies standard input to standard output, but no more than so many bytes; the rest is counted and dropped.

Started as a script of its own beside every command: a command that floods its output costs the service nothing.
"""

import os
import sys

PIECE = 64 * 1024


def keep(source: int, sink: int, most: int) -> None:
    kept = dropped = 0
    while piece := os.read(source, PIECE):
        room = most - kept
        write(sink, piece[:room])
        kept += min(len(piece), room)
        dropped += max(len(piece) - room, 0)
    if dropped:
        write(sink, f"\n[{dropped} more bytes were dropped: {most} are kept]\n".encode())


def write(sink: int, piece: bytes) -> None:
    while piece:
        piece = piece[os.write(sink, piece) :]


if __name__ == "__main__":
    keep(0, 1, int(sys.argv[1]))
