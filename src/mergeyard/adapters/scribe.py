"""Reads in another process, one body at a time: its interpreter is not the one that serves everybody else.

The process starts with the first body and stays for the next ones. One that takes too long is ended, and after one that
ended the next body starts another. No bytes are copied here while the interpreter is held.
"""

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen
from threading import Lock, Timer
from typing import IO

from mergeyard.ports.scribe import ScribeTrouble

ROOM = "mergeyard.api.scribe"
SECONDS = 60
"""On a busy machine it is the last to be served, and somebody waits for it."""
GIVES_MEMORY_BACK = {"MALLOC_MMAP_THRESHOLD_": "131072"}
"""Else glibc learns from the first large body to keep room for the next one."""


class ScribeApart:
    def __init__(self, seconds: float = SECONDS) -> None:
        self.process: Popen[bytes] | None = None
        self._seconds = seconds
        self._one_at_a_time = Lock()

    def read(self, question: bytes, body: bytes | bytearray) -> tuple[bytes, bytes]:
        with self._one_at_a_time:
            try:
                return self._answered(question, body)
            except (OSError, EOFError) as trouble:
                self._end()
                raise ScribeTrouble(f"it broke off: {trouble!r}") from trouble

    async def close(self) -> None:
        """A body that is being read is broken off."""
        if self.process is not None:
            self.process.kill()
            await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._one_at_a_time:
            self._end()

    def _answered(self, question: bytes, body: bytes | bytearray) -> tuple[bytes, bytes]:
        process = self.process = self.process or _begun()
        assert process.stdin is not None
        assert process.stdout is not None
        too_late = Timer(self._seconds, process.kill)
        too_late.start()
        try:
            process.stdin.write(len(question).to_bytes(4) + len(body).to_bytes(4) + question)
            process.stdin.write(body)
            process.stdin.flush()
            lengths = _exactly(process.stdout, 8)
            said = _exactly(process.stdout, int.from_bytes(lengths[:4]))
            return said, _exactly(process.stdout, int.from_bytes(lengths[4:]))
        finally:
            too_late.cancel()

    def _end(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            with suppress(OSError), process:
                """Its pipes are closed, and it is waited for."""


def _begun() -> Popen[bytes]:
    command, surroundings = (sys.executable, "-m", ROOM), os.environ | GIVES_MEMORY_BACK
    return subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=surroundings)


def _exactly(answering: IO[bytes], length: int) -> bytes:
    part = answering.read(length)
    if len(part) < length:
        raise EOFError("the process has ended")
    return part
