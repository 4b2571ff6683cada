"""Foretells in another process, one queue at a time: it takes all of a core for a second, and no queue waits for it.

The process starts with the first question and stays for the next ones. One that takes too long is ended, and so is one
whose answer nobody waits for any more; the next question starts another.
"""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress

from msgspec import MsgspecError, msgpack

from mergeyard.domain.expected import Expected
from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue
from mergeyard.ports.foretelling import Forecast, ForetellingTrouble

ROOM = "mergeyard.sim.foretelling"
SECONDS = 120
"""On a busy machine it is the last to be served, and nobody waits for it."""

read = msgpack.Decoder(dict[Ticket, Expected | None]).decode


class ForetellerApart:
    def __init__(self, seconds: float = SECONDS) -> None:
        self.process: Process | None = None
        self._seconds = seconds
        self._one_at_a_time = asyncio.Lock()

    async def foretell(self, queue: Queue, now: Instant) -> Forecast:
        async with self._one_at_a_time:
            question = await asyncio.to_thread(msgpack.encode, (queue, now))
            try:
                async with asyncio.timeout(self._seconds):
                    return read(await self._answered(question))
            except TimeoutError:
                await self.close()
                raise ForetellingTrouble(f"it takes longer than {self._seconds:g} seconds") from None
            except (EOFError, OSError, MsgspecError) as trouble:
                await self.close()
                raise ForetellingTrouble(f"it broke off: {trouble!r}") from trouble
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        process, self.process = self.process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _answered(self, question: bytes) -> bytes:
        if self.process is None:
            command = (sys.executable, "-m", ROOM)
            self.process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        asking, answering = self.process.stdin, self.process.stdout
        assert asking is not None
        assert answering is not None
        asking.write(len(question).to_bytes(4) + question)
        await asking.drain()
        length = await answering.readexactly(4)
        return await answering.readexactly(int.from_bytes(length))
