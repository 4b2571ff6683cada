"""Answers one question that comes in, and ends: so that a replay has a process of its own, and can be stopped."""

import os
import sys

from msgspec import json

from mergeyard.sim.replaying.whatif import Question, answer


def main() -> None:
    os.nice(10)  # the queues go first
    question = json.decode(sys.stdin.buffer.read(), type=Question)
    sys.stdout.buffer.write(json.encode(answer(question)))


if __name__ == "__main__":
    main()
