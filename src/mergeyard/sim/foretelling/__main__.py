"""Foretells one queue after the other, as they come in, until nobody asks any more: in a process of its own.

Questions and answers are MessagePack behind their length in four bytes.
"""

import os
import signal
import sys
from collections.abc import Iterator
from random import Random
from time import process_time

from msgspec import msgpack

from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue
from mergeyard.sim.foretelling.forecast import FEWEST, foretell

MOST = 39
"""Courses of a queue."""
ENOUGH, AT_MOST = 1.0, 10.0
"""Seconds of a processor: after the first the fewest courses will do, and after the second there are none."""

read = msgpack.Decoder[tuple[Queue, Instant]](tuple[Queue, Instant]).decode


def main() -> None:
    os.nice(10)  # the queues go first
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks is told to end, and then asks no more
    asking, answering = sys.stdin.buffer, sys.stdout.buffer
    while length := asking.read(4):
        queue, now = read(asking.read(int.from_bytes(length)))
        answer = msgpack.encode(foretell(queue, now, dice_in_time()))
        answering.write(len(answer).to_bytes(4) + answer)
        answering.flush()


def dice_in_time() -> Iterator[Random]:
    """The same ones every time, so that a forecast moves only when the queue does."""
    begun = process_time()
    for seed in range(MOST):
        if process_time() - begun > (AT_MOST if seed < FEWEST else ENOUGH):
            return
        yield Random(seed)


if __name__ == "__main__":
    main()
