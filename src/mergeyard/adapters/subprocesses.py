"""Helper processes of the server: one computes forecasts, one parses large request bodies.

The process starts with the first request and is reused. It is killed when a request exceeds the timeout or is
cancelled, because its output would otherwise be read as the response to the next request; that request starts a new
process.
"""

import asyncio
import os
import subprocess
import sys
from asyncio.subprocess import Process
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen
from threading import Lock, Timer
from typing import IO

from msgspec import MsgspecError, msgpack

from mergeyard.domain.ids import SubmissionId
from mergeyard.domain.queue import Queue
from mergeyard.domain.timestamps import Instant, MergeEstimate
from mergeyard.ports.external import BodyParserUnavailable, Forecast, ForecastUnavailable

FORECAST_MODULE = "mergeyard.simulation.forecast"
FORECAST_TIMEOUT_S = 120
"""Generous: the process has the lowest priority on a busy machine, and no request waits for a forecast."""

decode_forecast = msgpack.Decoder(dict[SubmissionId, MergeEstimate | None]).decode


class SubprocessForecaster:
    def __init__(self, timeout_s: float = FORECAST_TIMEOUT_S) -> None:
        self.process: Process | None = None
        self._timeout_s = timeout_s
        self._one_at_a_time = asyncio.Lock()

    async def forecast(self, queue: Queue, now: Instant) -> Forecast:
        async with self._one_at_a_time:
            request = await asyncio.to_thread(msgpack.encode, (queue, now))
            try:
                async with asyncio.timeout(self._timeout_s):
                    return decode_forecast(await self._exchange(request))
            except TimeoutError:
                await self.close()
                raise ForecastUnavailable(f"the forecast takes longer than {self._timeout_s:g} seconds") from None
            except (EOFError, OSError, MsgspecError) as error:
                await self.close()
                raise ForecastUnavailable(f"the forecast process failed: {error!r}") from error
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        process, self.process = self.process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _exchange(self, request: bytes) -> bytes:
        """Messages in both directions are prefixed with their length in four bytes."""
        if self.process is None:
            command = (sys.executable, "-m", FORECAST_MODULE)
            self.process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(len(request).to_bytes(4) + request)
        await stdin.drain()
        length = await stdout.readexactly(4)
        return await stdout.readexactly(int.from_bytes(length))


ROOM = "mergeyard.api.body_parser_process"
SECONDS = 60
"""Generous for a busy machine; a client waits for the result."""
GIVES_MEMORY_BACK = {"MALLOC_MMAP_THRESHOLD_": "131072"}
"""Else glibc learns from the first large body to keep room for the next one."""


class ScribeApart:
    def __init__(self, seconds: float = SECONDS) -> None:
        self.process: Popen[bytes] | None = None
        self._seconds = seconds
        self._one_at_a_time = Lock()

    def parse(self, question: bytes, body: bytes | bytearray) -> tuple[bytes, bytes]:
        with self._one_at_a_time:
            try:
                return self._answered(question, body)
            except (OSError, EOFError) as trouble:
                self._end()
                raise BodyParserUnavailable(f"it broke off: {trouble!r}") from trouble

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
