"""Runs git processes with a fixed environment and limits on memory, time, output and concurrency.

A process that exceeds its timeout, or whose caller was cancelled, is ended together with its child processes.
"""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, TypedDict, Unpack

from msgspec import Struct

from mergeyard.adapters.git_cli.limits import MAX_PROCESSES, SLOTS, FairSlots, Limits, Work, choose_limits
from mergeyard.domain.ids import SHA1, SHA256, SHA_PATTERN, ObjectFormat, Sha, object_format_of
from mergeyard.ports.git import GitError, LimitExceededError, MissingObject, OutputTooLargeError

TERMINATION_GRACE_S = 2.0
"""Time for git to remove its lock files after SIGTERM, before SIGKILL."""
MAX_OUTPUT_BYTES = 64 * 1024 * 1024
"""Default limit of one output: its size can depend on the contents of a pull request."""
CHUNK_BYTES = 64 * 1024
MAX_STDERR_BYTES = 16 * 1024
"""How much of stderr is kept, from its end: GitHub's reason for a refusal is before the list of what it is about."""
MAX_MESSAGE_CHARS = 2000

INHERITED_VARIABLES = (
    "PATH", "TMPDIR", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO",
    "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
)  # fmt: skip
FIXED_VARIABLES = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": str(Path(__file__).with_name("gitconfig")),
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "HOME": os.devnull,
    "LC_ALL": "C",
}


class GitResult(Struct, frozen=True):
    exit_code: int
    stdout: bytes
    stderr: str
    """The end of stderr. If git failed without any, a message with the exit code."""
    is_complete: bool = True
    """False: git was killed because its output exceeded the limit, and `stdout` is the beginning of it."""


class GitOptions(TypedDict, total=False):
    stdin: bytes
    environment: Mapping[str, str]
    work: Work
    timeout_s: float
    """Instead of the one for this kind of work."""
    max_bytes: int
    allow_truncated: bool


class GitRunner:
    """Uses threads, because the subprocess support of event loops costs as much time as a small merge."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or choose_limits()
        self._slots = {work: FairSlots(count) for work, count in SLOTS.items()}
        self._threads = ThreadPoolExecutor(MAX_PROCESSES, "git")

    async def run(self, *arguments: str, repository: str = "", **options: Unpack[GitOptions]) -> GitResult:
        """Kills git when its output exceeds `max_bytes`, and raises unless `allow_truncated` is set. The repository is
        the one that the process counts for when others wait."""
        max_bytes = options.get("max_bytes", MAX_OUTPUT_BYTES)
        work = options.get("work", Work.LOOKUP)
        environment = build_environment() | dict(options.get("environment", {}))
        process = GitProcess(arguments, options.get("stdin", b""), environment, max_bytes, self._limits, work)
        timeout_s = options.get("timeout_s", self._limits.timeout_of(work))
        async with self._slots[work].slot(repository):
            result = await self._run(process, timeout_s)
        if not result.is_complete and not options.get("allow_truncated"):
            raise OutputTooLargeError(f"the output of git exceeds {max_bytes} bytes: {' '.join(arguments)[:80]}")
        return result

    async def _run(self, process: "GitProcess", timeout_s: float) -> GitResult:
        result = asyncio.get_running_loop().run_in_executor(self._threads, process.run)
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(result)
        except TimeoutError as error:
            message = f"git did not finish within {timeout_s:g} seconds and was ended: {process}"
            if process.work is Work.CONTENTS:
                raise LimitExceededError(message) from error
            raise GitError(message) from error
        finally:
            await process.stop(result)


class GitProcess:
    def __init__(
        self,
        arguments: Sequence[str],
        stdin: bytes,
        environment: Mapping[str, str],
        max_bytes: int,
        limits: Limits,
        work: Work,
    ) -> None:
        self.work = work
        self._arguments = arguments
        self._stdin = stdin
        self._environment = environment
        self._max_bytes = max_bytes
        self._limits = limits
        self._process: Popen[bytes] | None = None
        self._is_cancelled = False
        self._starting = Lock()

    def __str__(self) -> str:
        return " ".join(each for each in self._arguments if not each.startswith("--git-dir="))[:80]

    @property
    def _command_name(self) -> str:
        """`merge-tree` in `git --git-dir=... merge-tree ...`."""
        return next((each for each in self._arguments if not each.startswith("-")), "")

    def run(self) -> GitResult:
        """Blocks. stdin and stderr are files, so that only one pipe has to be read."""
        with open_scratch_file() as stderr:
            with self._starting:
                self._process = None if self._is_cancelled else self._start(stderr)
            if self._process is None:
                raise GitError(f"git was stopped before it started: {self}")
            assert self._process.stdout
            with self._process.stdout as stdout:
                out, is_complete = read_at_most(stdout, self._max_bytes)
                if not is_complete:
                    self._kill()
            code = self._process.wait()
            detail = read_end(stderr)
            if is_complete and not self._is_cancelled:
                self._limits.check(self._command_name, self.work, code, detail)
            detail = detail if detail or not code else f"git ended with exit code {code} and no message: {self}"
            return GitResult(code, out, detail, is_complete)

    def _kill(self) -> None:
        """SIGKILL instead of SIGTERM: git can be blocked on the pipe that we no longer read."""
        with suppress(ProcessLookupError):
            assert self._process
            os.killpg(self._process.pid, signal.SIGKILL)

    def _start(self, stderr: IO[bytes]) -> Popen[bytes]:
        """In a new session: without a terminal for prompts, and with one process group to signal. In the root folder,
        because git fails in a working directory that was deleted."""
        command = ("git", *self._arguments)
        try:
            with open_scratch_file() as stdin:
                stdin.write(self._stdin)
                stdin.seek(0)
                process = Popen(
                    command,
                    stdin=stdin if self._stdin else DEVNULL,
                    stdout=PIPE,
                    stderr=stderr,
                    env=self._environment,
                    cwd="/",
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            raise GitError(f"git could not be started: {error}") from error
        self._limits.apply(process.pid, self.work)
        return process

    async def stop(self, result: asyncio.Future[GitResult]) -> None:
        """SIGTERM first, on which git removes its lock files; then SIGKILL for the processes that are left."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not result.done():
                self._signal(number)
                await asyncio.wait({result}, timeout=TERMINATION_GRACE_S)
        if result.done() and not result.cancelled():
            result.exception()  # retrieved, so that asyncio does not log it: the caller is gone

    def _signal(self, number: signal.Signals) -> None:
        with self._starting, suppress(ProcessLookupError):
            self._is_cancelled = True
            if self._process:
                os.killpg(self._process.pid, number)


def open_scratch_file() -> IO[bytes]:
    """An anonymous file, in memory on Linux."""
    return open(os.memfd_create("git"), "w+b") if sys.platform == "linux" else TemporaryFile()


def read_at_most(source: IO[bytes], max_bytes: int) -> tuple[bytes, bool]:
    """The output up to `max_bytes`, and whether that was all of it."""
    chunks, left = list[bytes](), max_bytes
    while chunk := source.read(min(CHUNK_BYTES, left + 1)):
        if len(chunk) > left:
            return b"".join((*chunks, chunk[:left])), False
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks), True


def read_end(stderr: IO[bytes]) -> str:
    stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - MAX_STDERR_BYTES))
    return stderr.read().decode(errors="replace").strip()


def build_environment() -> dict[str, str]:
    """The API clients read `SSL_CERT_FILE`; git has its own variable for the same file. Its path is made absolute,
    because git runs in another folder."""
    inherited = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
    ca_file = inherited.get("GIT_SSL_CAINFO") or inherited.get("SSL_CERT_FILE")
    return inherited | FIXED_VARIABLES | ({"GIT_SSL_CAINFO": os.path.abspath(ca_file)} if ca_file else {})


# The lengths of paths are limited, because unlimited ones would take quadratic time on partial matches.
DAMAGE_PATTERN = re.compile(
    r"not a git repository|bad config|unknown repository extension|expected git repo version"
    r"|object file .{0,300} is empty|is corrupt|object corrupt|corrupt (?:loose )?object|garbage at end of|inflate"
    r"|packfile .{0,300} (?:is|does|cannot|claims|truncated|invalid)|pack is corrupted"
    r"|index file .{0,300} (?:is|corrupt)|non-monotonic index|bad (?:packed object|object header|tree object)"
    rf"|missing (?:object|commit|tree|blob) [0-9a-f]|broken link|could not read (?:{SHA_PATTERN})|failed to read object"
    rf"|unable to (?:read tree|(?:find|read|unpack) (?:{SHA_PATTERN}))|failed to traverse parents"
    r"|(?:bad|invalid) object|invalid sha1 pointer|reference broken|bad ref\b|does not point to a valid",
    re.IGNORECASE,
)
STALE_FILES_PATTERN = re.compile(
    r"\.lock': file exists|no space left|disk quota|unable to (?:create temporary|write)|index-pack", re.IGNORECASE
)
IGNORED_PREFIXES = ("remote:", "error in ", "warning in ")
"""Messages of the remote about itself, and fsck findings about objects that were pushed like that."""


def is_damage_message(stderr: str) -> bool:
    return bool(DAMAGE_PATTERN.search(_select_mirror_lines(stderr)))


def is_stale_file_message(stderr: str) -> bool:
    """Lock files of a killed process, or a disk that partial packs may have filled."""
    return bool(STALE_FILES_PATTERN.search(_select_mirror_lines(stderr)))


def _select_mirror_lines(stderr: str) -> str:
    return "\n".join(line for line in stderr.splitlines() if not line.startswith(IGNORED_PREFIXES))


UNKNOWN_FORMAT = re.compile(r"unknown object format|'extensions\.objectformat'|unknown repository extension")
UNKNOWN_FORMAT_ADVICE = (
    "the repository has a format that the git of this server does not know. Install a newer git here, or convert the "
    "repository to another format"
)
SHA_IN_TEXT = re.compile(rf"(?<![0-9a-f])(?:{SHA_PATTERN})(?![0-9a-f])")


MAINTENANCE_ROUNDS = 2
"""The second round removes the loose objects that the first one packed."""


class Repository:
    def __init__(self, path: Path, runner: GitRunner) -> None:
        self.path = path
        self.maintenance_rounds_left = MAINTENANCE_ROUNDS
        """How many maintenance rounds are needed."""
        self.damage_message = ""
        """git's last message that indicates damage or stale files in this repository; empty if there was none."""
        self._runner = runner
        self._head = os.path.join(path, "HEAD")
        self._object_format: ObjectFormat | None = None

    @property
    def is_healthy(self) -> bool:
        """No git process has reported damage, and the repository exists."""
        return not self.damage_message and self.has_head

    @property
    def has_head(self) -> bool:
        """Every repository has this file."""
        return os.path.exists(self._head)

    async def read_object_format(self) -> ObjectFormat:
        """Remembered, because it changes only when the whole repository is replaced."""
        if self._object_format is None:
            name = (await self.run_checked("rev-parse", "--show-object-format")).decode().strip()
            self._object_format = SHA256 if name == SHA256.name else SHA1
        return self._object_format

    async def check_object_format(self, sha: Sha) -> None:
        """Raises `MissingObject` for a name of the other format. To git, 40 digits would be the beginning of 64, and 64
        digits the name of a branch."""
        if object_format_of(sha) != await self.read_object_format():
            raise MissingObject(f"{self.path.name} has no objects with names like {sha}")

    def forget_state(self) -> None:
        """Another repository took the place of this one."""
        self._object_format = None
        self.damage_message = ""

    async def run(self, *arguments: str, **options: Unpack[GitOptions]) -> GitResult:
        """Returns the result also when git failed."""
        return await self._runner.run(f"--git-dir={self.path}", *arguments, repository=str(self.path), **options)

    async def run_checked(self, *arguments: str, **options: Unpack[GitOptions]) -> bytes:
        """Returns stdout; raises `GitError` when git failed."""
        result = await self.run(*arguments, **options)
        if result.exit_code != 0:
            input_text = " ".join((*arguments, options.get("stdin", b"").decode(errors="replace")))
            raise await self.to_error(result, SHA_IN_TEXT.findall(input_text))
        return result.stdout

    async def read_sha(self, *arguments: str, **options: Unpack[GitOptions]) -> Sha:
        """The object name that git prints."""
        return Sha((await self.run_checked(*arguments, **options)).decode().strip())

    async def to_error(self, result: GitResult, objects: Iterable[str]) -> GitError:
        """The error for a failed result. git has many messages for a missing object, so the objects are looked up."""
        missing = await self.find_missing(objects)
        if missing:
            return MissingObject(f"{self.path.name} lacks {', '.join(missing)}")
        self._note_damage(result.stderr)
        return GitError(result.stderr[-MAX_MESSAGE_CHARS:])

    async def find_missing(self, objects: Iterable[str]) -> list[str]:
        """The objects that git reports as missing; none if that check itself failed."""
        names = "".join(f"{name}\n" for name in dict.fromkeys(objects))
        if not names:
            return []
        result = await self.run("cat-file", "--batch-check", stdin=names.encode())
        self._note_damage(result.stderr)
        return [line.split()[0] for line in result.stdout.decode().splitlines() if line.endswith(" missing")]

    def _note_damage(self, stderr: str) -> None:
        if is_damage_message(stderr) or is_stale_file_message(stderr):
            self.damage_message = stderr


MIN_VERSION = (2, 38)
"""The first version with `git merge-tree --write-tree`, which merges without a working tree."""

UPGRADE_ADVICE = f"install git {MIN_VERSION[0]}.{MIN_VERSION[1]} or newer, and put it first in PATH"


def find_version_problem(version: str) -> str | None:
    """What is wrong with the output of `git version`, or None."""
    found = re.match(r"git version (\d+)\.(\d+)", version)
    if not found:
        return f"git reports the version {version!r}, which is not valid: {UPGRADE_ADVICE}"
    if (int(found[1]), int(found[2])) < MIN_VERSION:
        return f"git {version.removeprefix('git version ')} is too old: {UPGRADE_ADVICE}"
    return None
