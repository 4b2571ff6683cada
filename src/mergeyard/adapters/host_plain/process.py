"""Runs git on one repository, in an environment of its own making, and turns its failures into trouble."""

import asyncio
import os
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from mergeyard.ports.host import HostTrouble

PATIENCE = 30
"""Seconds. Reading refs takes milliseconds; a git that needs longer hangs."""

SETTINGS = (
    "safe.directory=*",  # repositories often belong to another user than the service does
    "core.hooksPath=/dev/null",
    "core.warnAmbiguousRefs=false",
)


class GitFailed(HostTrouble):
    """Git would not do it; the words are its own."""


def environment() -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


async def git(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    """What git writes to standard output."""
    try:
        with TemporaryFile() as source:
            source.write(given)
            source.seek(0)
            process = await started(folder, *arguments, source=source, errors=PIPE)
    except OSError as trouble:
        raise GitFailed(f"git {arguments[0]} in {folder} cannot be given anything: {trouble}") from trouble
    try:
        async with asyncio.timeout(PATIENCE):
            output, complaint = await process.communicate()
    except TimeoutError:
        raise GitFailed(f"git {arguments[0]} in {folder} did not end within {PATIENCE} seconds") from None
    finally:
        await killed(process)
    if process.returncode:
        words = complaint.decode(errors="replace").strip() or f"exit code {process.returncode}"
        raise GitFailed(f"git {arguments[0]} in {folder}: {words}")
    return output


async def started(folder: Path, *arguments: str, source: IO[bytes] | int, errors: int) -> Process:
    settings = (word for setting in SETTINGS for word in ("-c", setting))
    command = ("git", *settings, f"--git-dir={folder}", *arguments)
    try:
        return await asyncio.create_subprocess_exec(
            *command, stdin=source, stdout=PIPE, stderr=errors, env=environment(), cwd="/"
        )
    except OSError as trouble:
        raise GitFailed(f"git cannot be started: {trouble}") from trouble


async def killed(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
