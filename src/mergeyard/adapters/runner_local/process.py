"""Runs the command of one check under a supervisor: its working directory, its sandbox and its limits."""

import asyncio
import errno
import fcntl
import os
import shutil
import subprocess
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO
from uuid import uuid4

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

from mergeyard.adapters.runner_local import output_limiter, supervisor

LOCK_NAME = "lock"
ORPHANED_SUPERVISOR_TIMEOUT_S = 5.0
"""For the supervisors of a killed server: they end their commands before they exit."""
MIN_FREE_DISK_BYTES = 1024 * 1024


class Workspace(Struct, frozen=True):
    folder: Path

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def tmp(self) -> Path:
        """Mounted as /tmp of a sandboxed command."""
        return self.folder / "tmp"

    @property
    def lock(self) -> Path:
        """The supervisor holds this lock as long as it runs."""
        return self.folder / LOCK_NAME


class Workspaces:
    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        with _hold_lock(root / LOCK_NAME):
            _remove_abandoned(root)
            self._folder = root / uuid4().hex
            self._folder.mkdir()
            self._lock = ExitStack()
            self._lock.enter_context(_hold_lock(self._folder / LOCK_NAME))
        self._numbers = count(1)

    @asynccontextmanager
    async def create(self) -> AsyncGenerator[Workspace]:
        workspace = Workspace(self._folder / str(next(self._numbers)))
        try:
            for folder in (workspace.folder, workspace.home, workspace.tmp):
                folder.mkdir()
            yield workspace
        finally:
            await asyncio.to_thread(_remove_folder, workspace.folder)

    def close(self) -> None:
        _remove_folder(self._folder)
        self._lock.close()


def refuse_full_disk(workspace: Workspace) -> None:
    """Raises OSError on a full disk: a command that failed on it may have failed for that reason."""
    disk = os.statvfs(workspace.folder)
    if disk.f_bavail * disk.f_frsize < MIN_FREE_DISK_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(workspace.folder))


def _remove_abandoned(root: Path) -> None:
    for folder in root.iterdir():
        if folder.is_dir() and not _is_locked(folder / LOCK_NAME):
            _wait_for_supervisors(folder)
            _remove_folder(folder)


@contextmanager
def _hold_lock(lock: Path) -> Generator[None]:
    """The kernel releases the lock when the process ends for any reason; commands do not inherit it."""
    with lock.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_locked(lock: Path) -> bool:
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _wait_for_supervisors(folder: Path) -> None:
    deadline = time.monotonic() + ORPHANED_SUPERVISOR_TIMEOUT_S
    while any(_is_locked(lock) for lock in folder.glob(f"*/{LOCK_NAME}")) and time.monotonic() < deadline:
        time.sleep(0.02)


def _remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        make_writable(folder)
        shutil.rmtree(folder, ignore_errors=True)


def make_writable(folder: Path) -> None:
    """Some tools create folders that not even their owner can change. Skips links, because they lead elsewhere."""
    for parent, names, _ in os.walk(folder):
        for path in (os.path.join(parent, name) for name in names):
            if not os.path.islink(path):
                os.chmod(path, 0o700)


PROGRAM = "bwrap"
PROBE_TIMEOUT_S = 10
SHARED_MEMORY_BYTES = 256 * 2**20
"""/dev/shm is memory, and no other limit applies to it."""
SYSTEM_PATHS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
CONFIGURATION_PATHS = tuple(
    f"/etc/{name}"
    for name in (
        *("alternatives", "ca-certificates", "fonts", "group", "host.conf", "hosts", "inputrc", "ld.so.cache"),
        *("ld.so.conf", "ld.so.conf.d", "localtime", "login.defs", "mime.types", "nsswitch.conf", "os-release"),
        *("passwd", "pki", "profile", "protocols", "resolv.conf", "rpc", "services", "shells", "ssl", "timezone"),
    )
)
"""Not all of /etc: it holds keys and settings of services, Mergeyard's included."""


class Sandbox(Struct, frozen=True):
    network: bool = False
    readable: tuple[Path, ...] = ()
    """Further folders that commands can read."""
    hidden: tuple[Path, ...] = ()
    """Folders of the server that stay hidden, even within readable ones."""
    nested_namespaces: bool = True
    """Whether commands can create user namespaces of their own. In these they are root, and reach parts of the kernel
    that are closed to them otherwise. Only bubblewrap 0.8 and newer can forbid it, and not as a setuid program."""

    def strictest(self, folder: Path) -> "Sandbox":
        """The same sandbox without nested namespaces, if it works here."""
        strict = replace(self, nested_namespaces=False)
        return strict if strict.find_problem(folder) is None else self

    def wrap(self, command: Sequence[str], workspace: Workspace) -> list[str]:
        return [PROGRAM, *self._options(workspace), "--", *command]

    def find_problem(self, folder: Path) -> str | None:
        """Why commands cannot be sandboxed here, found by running `true` in a sandbox; None if they can."""
        if shutil.which(PROGRAM) is None:
            return f"{PROGRAM} is not installed"
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="probe-", dir=folder) as name:
            workspace = Workspace(Path(name))
            for path in (workspace.checkout, workspace.home, workspace.tmp):
                path.mkdir()
            try:
                probe = subprocess.run(
                    self.wrap(["true"], workspace), capture_output=True, check=False, timeout=PROBE_TIMEOUT_S
                )
            except (OSError, subprocess.SubprocessError) as error:
                return f"{PROGRAM} cannot be run: {error}"
        return probe.stderr.decode(errors="replace").strip() or f"{PROGRAM} failed" if probe.returncode else None

    def _options(self, workspace: Workspace) -> Iterator[str]:
        """Options for bwrap. Later mounts cover earlier ones, so the order matters."""
        if self.nested_namespaces:
            yield "--unshare-user-try"
        else:
            yield from ("--unshare-user", "--disable-userns")
        yield from ("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
        if not self.network:
            yield "--unshare-net"
        yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL")
        yield from ("--bind", str(workspace.tmp), "/tmp")
        for path in (*SYSTEM_PATHS, *CONFIGURATION_PATHS, *map(str, self.readable)):
            yield from ("--ro-bind-try", path, path)
        hidden = [str(path) for path in self.hidden if any(path.is_relative_to(root) for root in self._visible)]
        for path in hidden:
            yield from ("--tmpfs", path)
        yield from ("--proc", "/proc", "--dev", "/dev", "--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm")
        for path in map(str, (workspace.checkout, workspace.home)):
            yield from ("--bind", path, path)
        for path in (*hidden, "/dev", "/"):
            yield from ("--remount-ro", path)
        yield from ("--chdir", str(workspace.checkout))

    @property
    def _visible(self) -> tuple[Path, ...]:
        return (*map(Path, SYSTEM_PATHS), *self.readable)


SUPERVISOR_EXIT_TIMEOUT_S = 10
"""For ending all processes. A supervisor that takes longer was stopped by its own command."""


class TimedOut(Exception):
    """The command did not end within its timeout."""


class SupervisorKilledError(Exception):
    """The supervisor ended without a report: the command killed it, or the kernel, because memory ran out."""


class Limits(Struct, frozen=True):
    max_bytes: int = 10 * 2**30
    """Of all files of one check together, and of each single file."""
    max_processes: int = 1000


class Report(Struct, frozen=True):
    """The supervisor's report, as JSON on its standard output."""

    code: int | None = None
    """The exit code of the command; if negative, the number of the signal that ended it."""
    breach: str | None = None
    """Which limit the command exceeded."""
    start_error: str | None = None
    """Why the command was not started."""


class Command:
    """A command that was started."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def read_report(self, timeout: int) -> Report:
        """`timeout` is in milliseconds. Raises OSError when the machine could not start the command."""
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
        if report.start_error:
            raise OSError(report.start_error)
        return report

    async def end(self) -> None:
        """Closes the supervisor's standard input, which makes it end everything."""
        assert self._process.stdin
        self._process.stdin.close()
        await _wait_or_kill(self._process, SUPERVISOR_EXIT_TIMEOUT_S)


@asynccontextmanager
async def start_command(
    command: str,
    workspace: Workspace,
    variables: dict[str, str],
    sink: IO[bytes],
    limits: Limits,
    sandbox: Sandbox | None,
) -> AsyncGenerator[Command]:
    arguments = ["sh", "-c", command]
    spec = {
        "command": sandbox.wrap(arguments, workspace) if sandbox else arguments,
        "sandboxed": sandbox is not None,
        "cwd": str(workspace.checkout),
        "env": _make_environment(workspace) | variables,
        "folder": str(workspace.folder),
        "lock": str(workspace.lock),
        "max_bytes": limits.max_bytes,
        "max_processes": limits.max_processes,
    }
    script = (sys.executable, "-I", "-S", supervisor.__file__)
    with sink:  # closed here once started: only the supervisor and the command keep it open
        process = await asyncio.create_subprocess_exec(
            *script, stdin=PIPE, stdout=PIPE, stderr=sink, env={}, start_new_session=True
        )
    started = Command(process)
    assert process.stdin
    try:
        process.stdin.write(json.encode(spec) + b"\n")
        await process.stdin.drain()
        yield started
    finally:
        await started.end()


def _make_environment(workspace: Workspace) -> dict[str, str]:
    """Passes no variable of the server itself except these two, because others can be secret."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "HOME": str(workspace.home),
        "CI": "true",
    }


MAX_OUTPUT_BYTES = 10 * 1024 * 1024
DRAIN_TIMEOUT_S = 2
"""For bytes that are still in the pipe. Longer than that, only a process that escaped the supervisor holds it open."""


@asynccontextmanager
async def capture_output(output: Path) -> AsyncGenerator[IO[bytes]]:
    """Yields the pipe that the command writes to. On exit, the file holds all of its output."""
    script = (sys.executable, "-I", "-S", output_limiter.__file__, str(MAX_OUTPUT_BYTES))
    with output.open("wb") as file, _open_pipe() as (source, sink):
        process = await asyncio.create_subprocess_exec(
            *script, stdin=source, stdout=file, stderr=DEVNULL, env={}, start_new_session=True
        )
        source.close()
        try:
            yield sink
        finally:
            sink.close()
            await _wait_or_kill(process, DRAIN_TIMEOUT_S)


@contextmanager
def _open_pipe() -> Generator[tuple[IO[bytes], IO[bytes]]]:
    source, sink = os.pipe()
    with open(source, "rb", buffering=0) as reader, open(sink, "wb", buffering=0) as writer:
        yield reader, writer


async def _wait_or_kill(process: Process, timeout_s: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), timeout_s)
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
