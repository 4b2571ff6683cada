"""What one git process may use, and how many of them run at once.

A pull request decides how much work git has with it: eleven small objects can describe a tree of 10^10 files. So every
process has a limit, and the processes that work on contents have slots of their own: others never wait for them.

Memory is limited with RLIMIT_DATA, which counts what git allocates and what it cannot give back. RLIMIT_AS would count
packs as well, which git maps read-only and all at once: a large repository could not be read, although the kernel drops
mapped pages of a file whenever it needs them.
"""

import resource
import signal
from asyncio import Future, get_running_loop
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from enum import Enum
from os import sysconf
from pathlib import Path

import structlog
from msgspec import Struct

from mergeyard.ports.git import LimitExceededError

log = structlog.get_logger()

MIB = 2**20
DEFAULT_CPU_S = 60
MEMORY_SHARE = 4
"""One merge may allocate a quarter of the memory, so that two at their limit leave enough for the server."""
MIN_SHARE_BYTES = 256 * MIB
"""Git keeps up to 96 MiB of unpacked objects alone."""
MAX_SHARE_BYTES = 1024 * MIB
"""A merge of 26,000 changed files among 200,000 takes 84 MiB."""
REPOSITORY_SHARE = 2
"""What grows with the repository, which no single pull request decides, may take half of the memory."""
LOCAL_TIMEOUT_S = 120.0
NETWORK_TIMEOUT_S = 600.0
WAIT_PER_CPU_SECOND = 5
"""On a busy machine a process waits for a processor much longer than it uses one."""
CPU_GRACE_S = 5
"""Between SIGXCPU and SIGKILL."""


class Work(Enum):
    """What decides how long a command of git takes."""

    LOOKUP = "lookup"
    """A few objects: it takes milliseconds."""
    CONTENTS = "contents"
    """The files that a pull request changes, when git merges or compares them."""
    TRANSFER = "transfer"
    """The network, and the size of the repository."""


SLOTS = {Work.LOOKUP: 8, Work.CONTENTS: 4, Work.TRANSFER: 8}
"""How many processes run at once. Work on contents needs a processor and memory all the time, so more slots would not
make it faster."""
MAX_PROCESSES = sum(SLOTS.values())

NO_MEMORY_MARKERS = ("out of memory", "cannot allocate memory")
REMOTE_PREFIX = "remote:"
"""What the Git host says about its own processes."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""A service manager sends these to all processes of a server that it stops: they say nothing about a commit."""


class Limits(Struct, frozen=True):
    memory_bytes: int
    """Of one process that works on contents."""
    repository_memory_bytes: int
    """Of one process whose work grows with the repository, such as a first fetch, or a walk through the history."""
    cpu_s: int = DEFAULT_CPU_S

    def memory_of(self, work: Work) -> int:
        return self.memory_bytes if work is Work.CONTENTS else self.repository_memory_bytes

    def timeout_of(self, work: Work) -> float:
        match work:
            case Work.LOOKUP:
                return LOCAL_TIMEOUT_S
            case Work.CONTENTS:
                return max(LOCAL_TIMEOUT_S, self.cpu_s * WAIT_PER_CPU_SECOND)
            case Work.TRANSFER:
                return NETWORK_TIMEOUT_S

    def apply(self, pid: int, work: Work) -> None:
        """From outside, right after the start: code between fork and exec is not safe in a process with threads, and a
        shell that calls `ulimit` first makes a short command take twice as long. A child inherits the limits unless git
        started it within its first moments, and only transfers have children."""
        if not hasattr(resource, "prlimit"):
            return  # only Linux has it
        memory = self.memory_of(work)
        try:
            resource.prlimit(pid, resource.RLIMIT_DATA, (memory, memory))
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
            if work is not Work.TRANSFER:
                resource.prlimit(pid, resource.RLIMIT_CPU, (self.cpu_s, self.cpu_s + CPU_GRACE_S))
        except ProcessLookupError:
            pass  # it has ended already
        except (OSError, ValueError) as error:
            log.error("git_not_limited", error=str(error))

    def check(self, command: str, work: Work, exit_code: int, stderr: str) -> None:
        """Raises `LimitExceededError` if this is why git failed."""
        if exit_code == 0:
            return
        own_lines = (line for line in stderr.lower().splitlines() if not line.startswith(REMOTE_PREFIX))
        if any(marker in line for line in own_lines for marker in NO_MEMORY_MARKERS):
            memory = self.memory_of(work) // MIB
            raise LimitExceededError(f"git {command} needs more memory than its limit of {memory} MiB")
        if exit_code > 0 or work is Work.TRANSFER:
            return
        number = -exit_code
        if number == signal.SIGXCPU:
            raise LimitExceededError(f"git {command} needs more than {self.cpu_s} seconds of processor time")
        if number not in STOP_SIGNALS:
            raise LimitExceededError(f"git {command} was killed by signal {number}, as when memory runs out")


def choose_limits(memory_mb: int = 0, cpu_s: int = DEFAULT_CPU_S) -> Limits:
    """0: a share of the memory that this process may use."""
    usable = read_usable_memory()
    memory = memory_mb * MIB or min(max(usable // MEMORY_SHARE, MIN_SHARE_BYTES), MAX_SHARE_BYTES)
    return Limits(memory, max(usable // REPOSITORY_SHARE, 2 * memory), cpu_s)


CGROUP_ROOT = Path("/sys/fs/cgroup")
CGROUP_OF_PROCESS = Path("/proc/self/cgroup")


def read_usable_memory(root: Path = CGROUP_ROOT, own: Path = CGROUP_OF_PROCESS) -> int:
    """The memory of the machine, or less if a container or a service manager allows less, in bytes."""
    usable = sysconf("SC_PAGE_SIZE") * sysconf("SC_PHYS_PAGES")
    for folder in list_cgroup_folders(root, own):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with suppress(OSError, ValueError):  # absent, or `max`
                usable = min(usable, int((folder / name).read_text()))
    return usable


def list_cgroup_folders(root: Path, own: Path) -> list[Path]:
    """Every group that this process is in. In a container its own group is the root."""
    folders = [root, root / "memory"]
    with suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers not in ("", "memory"):
                continue
            group = root / controllers / path.lstrip("/")
            folders += [group, *(parent for parent in group.parents if parent.is_relative_to(root))]
    return folders


class FairSlots:
    """Slots that repositories share. A repository can take one more while it has fewer than are free: a single
    repository gets half of them, and the next one always finds some.

    4 slots: the first repository gets 2, the second 1, the third 1.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._taken = Counter[str]()
        self._waiting: list[tuple[str, Future[None]]] = []

    @asynccontextmanager
    async def slot(self, repository: str) -> AsyncGenerator[None]:
        await self._take(repository)
        try:
            yield
        finally:
            self._give_back(repository)

    async def _take(self, repository: str) -> None:
        waits = any(name == repository for name, _ in self._waiting)
        if not waits and self._can_take(repository):
            self._count(repository)
            return
        turn = get_running_loop().create_future()
        self._waiting.append((repository, turn))
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self._give_back(repository)  # the slot was given to a caller that is gone
            else:
                self._waiting.remove((repository, turn))
            raise

    def _can_take(self, repository: str) -> bool:
        return self._taken[repository] < self._free

    def _count(self, repository: str) -> None:
        self._taken[repository] += 1
        self._free -= 1

    def _give_back(self, repository: str) -> None:
        self._free += 1
        self._taken[repository] -= 1
        if not self._taken[repository]:
            del self._taken[repository]
        for name, turn in tuple(self._waiting):
            if not turn.done() and self._can_take(name):
                self._waiting.remove((name, turn))
                self._count(name)
                turn.set_result(None)
