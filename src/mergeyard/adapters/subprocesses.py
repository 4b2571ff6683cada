"""Simulations in another process: forecasts and what-if replays would block the event loop."""

import asyncio
import sys
from asyncio.subprocess import Process
from contextlib import suppress
from subprocess import PIPE

from msgspec import MsgspecError, msgpack

from mergeyard.domain.ids import SubmissionId
from mergeyard.domain.queue import Queue
from mergeyard.domain.timestamps import Instant, MergeEstimate
from mergeyard.ports.external import Forecast, ForecastUnavailable

FORECAST_MODULE = "mergeyard.simulation.forecast"
FORECAST_TIMEOUT_S = 120
"""Generous: the process has the lowest priority on a busy machine, and no request waits for a forecast."""
REPLAY_MODULE = "mergeyard.simulation.whatif"
REPLAY_TIMEOUT_S = 300

decode_forecast = msgpack.Decoder(dict[SubmissionId, MergeEstimate | None]).decode


class PythonProcess:
    """Runs a module that responds to requests on its standard input.

    Starts with the first request and is reused. It is killed when a request takes too long, fails or is cancelled:
    its output would otherwise be read as the response to the next request.
    """

    def __init__(self, module: str, timeout_s: float) -> None:
        self.process: Process | None = None
        self._module = module
        self._timeout_s = timeout_s

    async def respond(self, request: bytes) -> bytes:
        """Raises `TimeoutError`, and `EOFError` or `OSError` if the process ends without a response."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._exchange(request)
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
            command = (sys.executable, "-m", self._module)
            self.process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(len(request).to_bytes(4) + request)
        await stdin.drain()
        length = await stdout.readexactly(4)
        return await stdout.readexactly(int.from_bytes(length))


class SubprocessForecaster:
    def __init__(self, timeout_s: float = FORECAST_TIMEOUT_S) -> None:
        self.simulation = PythonProcess(FORECAST_MODULE, timeout_s)
        self._one_at_a_time = asyncio.Lock()

    async def forecast(self, queue: Queue, now: Instant) -> Forecast:
        async with self._one_at_a_time:
            request = await asyncio.to_thread(msgpack.encode, (queue, now))
            try:
                return decode_forecast(await self.simulation.respond(request))
            except TimeoutError:
                raise ForecastUnavailable("the forecast takes too long") from None
            except (EOFError, OSError, MsgspecError) as error:
                raise ForecastUnavailable(f"the forecast process failed: {error!r}") from error

    async def close(self) -> None:
        await self.simulation.close()


async def replay_in_subprocess(request: bytes, timeout_s: float = REPLAY_TIMEOUT_S) -> bytes:
    """Each replay has its own process: several run at a time, and each needs a lot of memory."""
    simulation = PythonProcess(REPLAY_MODULE, timeout_s)
    try:
        return await simulation.respond(request)
    finally:
        await simulation.close()
