"""Takes what a command writes and keeps it in a file, up to a measure, in a process of its own."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import IO

from mergeyard.adapters.runner_local import keeper

MOST = 10 * 1024 * 1024
GRACE = 2
"""Seconds for what is still in the pipe. Longer than that, only one who escaped can hold it open."""


@asynccontextmanager
async def kept(output: Path) -> AsyncGenerator[IO[bytes]]:
    """Where a command may write to; all of it is in the file when this ends."""
    script = (sys.executable, "-I", "-S", keeper.__file__, str(MOST))
    with output.open("wb") as file, pipe() as (source, sink):
        process = await asyncio.create_subprocess_exec(
            *script, stdin=source, stdout=file, stderr=DEVNULL, env={}, start_new_session=True
        )
        source.close()
        try:
            yield sink
        finally:
            sink.close()
            await ended(process)


@contextmanager
def pipe() -> Generator[tuple[IO[bytes], IO[bytes]]]:
    source, sink = os.pipe()
    with open(source, "rb", buffering=0) as reading, open(sink, "wb", buffering=0) as writing:
        yield reading, writing


async def ended(process: Process) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), GRACE)
    if process.returncode is None:
        process.kill()
        await process.wait()
