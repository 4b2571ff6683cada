"""The process that parses large request bodies for the server: one at a time, over standard input and output."""

import os
import signal
import sys

from msgspec import msgpack

from mergeyard.api.large_bodies import Misfit, Understood, read_question, understand, without_targets
from mergeyard.api.responses import ApiError
from mergeyard.api.routes import TABLE


def answer(question: bytes, body: bytes) -> tuple[bytes, bytes]:
    """Returns the parsed body and, apart from it, its long part."""
    try:
        asked = read_question(question)
        meaning = understand(TABLE[asked.endpoint]["request"], asked, body)
    except ApiError as error:
        return msgpack.encode(Misfit(error.code, error.detail, error.errors)), b""
    request, long = without_targets(meaning.request)
    return msgpack.encode(Understood(msgpack.encode(request), meaning.digest)), long


def main() -> None:
    os.nice(10)  # the server has priority
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server gets the signal too, and closes our input
    while lengths := sys.stdin.buffer.read(8):
        answer_one(int.from_bytes(lengths[:4]), int.from_bytes(lengths[4:]))


def answer_one(question_length: int, body_length: int) -> None:
    """A function of its own, so that its memory is free before the next body."""
    asking, answering = sys.stdin.buffer, sys.stdout.buffer
    said, long = answer(asking.read(question_length), asking.read(body_length))
    answering.write(len(said).to_bytes(4) + len(long).to_bytes(4) + said)
    answering.write(long)
    answering.flush()


if __name__ == "__main__":
    main()
