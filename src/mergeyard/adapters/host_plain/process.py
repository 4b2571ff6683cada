"""Runs git in the repositories of a plain host, with the runner of `git_cli` and failures as `HostUnavailable`.

The repositories belong to other users and programs, so their hooks are switched off here; mirrors have that setting in
their own configuration.
"""

import asyncio
import os
from asyncio.subprocess import Process
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from weakref import WeakKeyDictionary

from mergeyard.adapters.git_cli.process import UNKNOWN_FORMAT, UNKNOWN_FORMAT_ADVICE, GitRunner, build_environment
from mergeyard.ports.forge import HostRefused, HostUnavailable
from mergeyard.ports.git import GitError

TIMEOUT_S = 30
"""Reading refs takes milliseconds; a git that needs longer hangs."""
MAX_OUTPUT_BYTES = 256 * 1024 * 1024
"""The largest output is the list of all refs."""
CONFIG_VARIABLES = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.hooksPath",
    "GIT_CONFIG_VALUE_0": os.devnull,
    "GIT_CONFIG_KEY_1": "core.warnAmbiguousRefs",
    "GIT_CONFIG_VALUE_1": "false",
}

_runners = WeakKeyDictionary[asyncio.AbstractEventLoop, GitRunner]()
"""One per event loop, because the semaphore of a runner belongs to one."""


class GitFailed(HostUnavailable):
    """git failed; the message is git's."""


async def run_git(folder: Path, *arguments: str, stdin: bytes = b"", max_bytes: int = MAX_OUTPUT_BYTES) -> bytes:
    """Returns stdout. Raises `HostRefused` for a repository that no retry can read."""
    loop = asyncio.get_running_loop()
    runner = _runners.get(loop) or _runners.setdefault(loop, GitRunner())
    command = (f"--git-dir={folder}", *arguments)
    try:
        result = await runner.run(
            *command,
            repository=str(folder),
            stdin=stdin,
            environment=CONFIG_VARIABLES,
            timeout_s=TIMEOUT_S,
            max_bytes=max_bytes,
        )
    except GitError as error:
        raise GitFailed(f"git {arguments[0]} in {folder}: {error}") from error
    if result.exit_code and UNKNOWN_FORMAT.search(result.stderr):
        raise HostRefused(f"git {arguments[0]} in {folder}: {result.stderr}: {UNKNOWN_FORMAT_ADVICE}")
    if result.exit_code:
        raise GitFailed(f"git {arguments[0]} in {folder}: {result.stderr}")
    return result.stdout


async def start_git(folder: Path, *arguments: str) -> Process:
    """A long-lived process that the caller writes to."""
    command, environment = ("git", f"--git-dir={folder}", *arguments), build_environment() | CONFIG_VARIABLES
    try:
        return await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment, cwd="/"
        )
    except OSError as error:
        raise GitFailed(f"git cannot be started: {error}") from error


async def kill_and_wait(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
