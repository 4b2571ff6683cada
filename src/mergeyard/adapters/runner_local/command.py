"""Runs one command in a process group of its own, and ends the group with it."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import IO

from mergeyard.adapters.runner_local.workshop import Place

GRACE = 2
"""Seconds between asking a process to end and ending it."""


class TimedOut(Exception):
    """The command did not end in its time."""


class Command:
    """A command that was started."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def exit_code(self, timeout: int) -> int:
        """Negative: the number of the signal that ended it. The timeout is in milliseconds."""
        try:
            async with asyncio.timeout(timeout / 1000):
                return await self._process.wait()
        except TimeoutError:
            raise TimedOut from None

    async def end(self) -> None:
        if self._process.returncode is None:
            signal_group(self._process.pid, signal.SIGTERM)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), GRACE)
        signal_group(self._process.pid, signal.SIGKILL)
        await self._process.wait()


@asynccontextmanager
async def running(command: str, place: Place, variables: dict[str, str], sink: IO[bytes]) -> AsyncGenerator[Command]:
    with sink:  # from now on it is open in the command alone
        process = await asyncio.create_subprocess_exec(
            *("sh", "-c", command),
            stdin=DEVNULL,
            stdout=sink,
            stderr=sink,
            cwd=place.checkout,
            env=environment(place) | variables,
            start_new_session=True,
        )
    started = Command(process)
    try:
        yield started
    finally:
        await started.end()


def environment(place: Place) -> dict[str, str]:
    """Nothing of what the service itself was started with, which may be secret."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "HOME": str(place.home),
        "CI": "true",
    }


def signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
