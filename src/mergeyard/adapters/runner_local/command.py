"""Runs one command under a supervisor (see `supervisor`), which ends all that the command started."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import IO

from msgspec import DecodeError, Struct, json

from mergeyard.adapters.runner_local import supervisor
from mergeyard.adapters.runner_local.sandbox import Sandbox
from mergeyard.adapters.runner_local.workshop import Place

SUPERVISOR_TIMEOUT_S = 10
"""For ending all processes. A supervisor that needs longer was stopped by its own command."""


class TimedOut(Exception):
    """The command did not end in its time."""


class SupervisorKilledError(Exception):
    """The supervisor ended without a report. Only the command itself, or the kernel for want of memory, does that."""


class Limits(Struct, frozen=True):
    max_bytes: int = 10 * 2**30
    """Of all files of one check, and of each of them."""
    max_processes: int = 1000


class Report(Struct, frozen=True):
    """What the supervisor says at its end."""

    code: int | None = None
    """The exit code of the command; negative: the number of the signal that ended it."""
    breach: str | None = None
    """Which limit the command breached."""
    trouble: str | None = None
    """Why the command was not started."""


class Command:
    """A command that was started."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def give(self, order: bytes) -> None:
        assert self._process.stdin
        self._process.stdin.write(order)
        await self._process.stdin.drain()

    async def report(self, timeout: int) -> Report:
        """The timeout is in milliseconds. Raises OSError when the machine could not start the command."""
        assert self._process.stdout
        try:
            async with asyncio.timeout(timeout / 1000):
                text = await self._process.stdout.read()
        except TimeoutError:
            raise TimedOut from None
        try:
            report = json.decode(text, type=Report)
        except DecodeError:
            raise SupervisorKilledError("the process that supervises the command was killed") from None
        if report.trouble:
            raise OSError(report.trouble)
        return report

    async def end(self) -> None:
        """The supervisor takes the end of its standard input as a wish to end everything."""
        assert self._process.stdin
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), SUPERVISOR_TIMEOUT_S)
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def running(
    command: str, place: Place, variables: dict[str, str], sink: IO[bytes], limits: Limits, sandbox: Sandbox | None
) -> AsyncGenerator[Command]:
    arguments = ["sh", "-c", command]
    order = {
        "command": sandbox.wrap(arguments, place) if sandbox else arguments,
        "sandboxed": sandbox is not None,
        "cwd": str(place.checkout),
        "env": environment(place) | variables,
        "folder": str(place.folder),
        "lock": str(place.lock),
        "max_bytes": limits.max_bytes,
        "max_processes": limits.max_processes,
    }
    script = (sys.executable, "-I", "-S", supervisor.__file__)
    with sink:  # from now on it is open in the supervisor and the command alone
        process = await asyncio.create_subprocess_exec(
            *script, stdin=PIPE, stdout=PIPE, stderr=sink, env={}, start_new_session=True
        )
    started = Command(process)
    try:
        await started.give(json.encode(order) + b"\n")
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
