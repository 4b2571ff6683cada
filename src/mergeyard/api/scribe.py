"""Understands one large body after the other, as they come in, until nobody asks any more: in a process of its own.

Question and body stand behind their lengths in four bytes each, and so do the two parts of the answer.
"""

import os
import signal
import sys

from mergeyard.api.apart import answer


def main() -> None:
    os.nice(10)  # everybody else goes first
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks is told to end, and then asks no more
    while lengths := sys.stdin.buffer.read(8):
        answer_one(int.from_bytes(lengths[:4]), int.from_bytes(lengths[4:]))


def answer_one(question_length: int, body_length: int) -> None:
    """Nothing of it is held until the next one."""
    asking, answering = sys.stdin.buffer, sys.stdout.buffer
    said, long = answer(asking.read(question_length), asking.read(body_length))
    answering.write(len(said).to_bytes(4) + len(long).to_bytes(4) + said)
    answering.write(long)
    answering.flush()


if __name__ == "__main__":
    main()
