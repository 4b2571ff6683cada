"""Supervises the command of one check: a process between the server and the command.

Started as a script. Its input is one line of JSON on standard input, a pipe that only the server holds open: when the
server closes it or dies, the supervisor ends everything. It is a child subreaper: processes that the command detaches
become its children, so it ends when the command and all of its descendants have ended, and not before. Standard error
is the output of the check, where an exceeded limit is explained; the report for the server goes to standard output.
"""

import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
"""From linux/prctl.h. On other systems than Linux, only the process group of the command is ended."""
POLL_S = 0.25
"""Between two counts of the processes."""
GRACE_S = 2.0
"""Between SIGTERM and SIGKILL."""
OOM_SCORE = 500
"""When memory runs out, the kernel ends the command rather than the server."""
MAX_MEASURING_SHARE = 0.05
"""Share of the time spent on measuring the files: large checkouts are measured less often."""
MIN_FREE_BYTES = 1 << 30
MAX_DISK_SHARE = 0.9
"""If at least this many bytes are free at the start, a check must not use more than this share of them."""


class Supervisor:
    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self._folder: str = spec["folder"]
        self._max_bytes = min(spec["max_bytes"], max_disk_use(self._folder))
        self._code: int | None = None
        self._breach: str | None = None
        self._next_measure = 0.0
        self._signals = catch_signals()

    def run(self) -> dict[str, object]:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        try:
            command = self._start()
        except OSError as error:
            return {"start_error": f"the command cannot be started: {error}"}
        except ValueError as error:  # such as a null byte: another attempt would fail as well
            return {"breach": f"the command cannot be run: {error}"}
        stopped = self._watch(command)
        if stopped or self._breach:
            self._terminate(command)
        self._kill_descendants(command)
        if self._code and not stopped:
            self._measure()
        if self._breach:
            os.write(2, f"\n[the check was ended: {self._breach}]\n".encode())
        return {"code": self._code, "breach": self._breach}

    def _start(self) -> int:
        self._process = subprocess.Popen(  # kept as an attribute: its destructor would reap the command
            self._spec["command"],
            stdin=subprocess.DEVNULL,
            stdout=2,
            cwd=self._spec["cwd"],
            env=self._spec["env"],
            start_new_session=True,
            preexec_fn=self._restrict,  # noqa: PLW1509 (there are no threads)
        )
        return self._process.pid

    def _restrict(self) -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if not self._spec["sandboxed"]:  # bwrap sets it itself, and can be a setuid program
            prctl(PR_SET_NO_NEW_PRIVS, 1)  # a setuid program would run as a user that the supervisor cannot signal
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        limit = self._max_bytes if hard == resource.RLIM_INFINITY else min(self._max_bytes, hard)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
            score.write(str(OOM_SCORE))

    def _watch(self, command: int) -> bool:
        """Waits until the command ends, exceeds a limit, or the server ends it. Returns true in the last case."""
        events = select.poll()
        events.register(0, select.POLLIN | select.POLLHUP)
        events.register(self._signals, select.POLLIN)
        while True:
            ready = {handle for handle, _ in events.poll(POLL_S * 1000)}
            if 0 in ready:
                return True
            if self._signals in ready:
                os.read(self._signals, 1000)
            self._reap(command)
            if self._code is not None:
                return False
            self._count()
            self._measure_if_due()
            if self._breach:
                return False

    def _count(self) -> None:
        limit: int = self._spec["max_processes"]
        if len(find_descendants()) > limit:
            self._breach = f"it had more than {limit} processes at once (runner_max_processes)"

    def _measure_if_due(self) -> None:
        started = time.monotonic()
        if started >= self._next_measure:
            self._measure()
            ended = time.monotonic()
            self._next_measure = ended + max(1.0, (ended - started) / MAX_MEASURING_SHARE)

    def _measure(self) -> None:
        if self._breach is None and measure_disk_use(self._folder) >= self._max_bytes:
            self._breach = f"its files took more than {self._max_bytes // 2**20} MiB of the disk (runner_max_disk_mb)"

    def _terminate(self, command: int) -> None:
        """Sends SIGTERM and waits. bwrap gets no signal, because it would end the sandbox at once."""
        spared = {command} if self._spec["sandboxed"] else set[int]()
        send_signal(signal.SIGTERM, find_descendants() - spared, command)
        deadline = time.monotonic() + GRACE_S
        while self._reap(command) and time.monotonic() < deadline:
            time.sleep(0.02)

    def _kill_descendants(self, command: int) -> None:
        """Repeats until no child is left: a process can start others meanwhile, and orphans become children."""
        while self._reap(command):
            send_signal(signal.SIGKILL, find_children(), command)
            time.sleep(0)

    def _reap(self, command: int) -> bool:
        """Reaps ended children and stores the exit code of the command. Returns whether any descendant is left."""
        try:
            while True:
                process, status = os.waitpid(-1, os.WNOHANG)
                if process == 0:
                    return True
                if process == command:
                    self._code = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            return False


def find_children() -> set[int]:
    """Uses the kernel's list where it exists: that is fast, so few processes can fork before they are killed."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            return set(map(int, file.read().split()))
    except OSError:
        return find_descendants()


def find_descendants() -> set[int]:
    """All descendants of this process, except those that end meanwhile."""
    by_parent: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdecimal():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
                by_parent.setdefault(parent, []).append(int(name))
    found = set[int]()
    unseen = [os.getpid()]
    while unseen:
        new = by_parent.get(unseen.pop(), [])
        found.update(new)
        unseen += new
    return found


def send_signal(number: int, processes: set[int], command: int) -> None:
    for process in processes:
        with suppress(OSError):
            os.kill(process, number)
    if sys.platform != "linux":
        with suppress(OSError):
            os.killpg(command, number)


def catch_signals() -> int:
    """Returns a pipe that becomes readable when a child ends. Ignores SIGTERM: only the server ends it."""
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    signal.set_wakeup_fd(sink, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, ignore_signal)
    return source


def ignore_signal(_number: int, _frame: object) -> None:
    """A handler instead of SIG_IGN, because the command would inherit SIG_IGN."""


def measure_disk_use(folder: str) -> int:
    """Disk usage of a folder; a file with several hard links counts once."""
    total = 0
    linked = set[int]()
    unseen = [folder]
    while unseen:
        with suppress(OSError), os.scandir(unseen.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    stat = entry.stat(follow_symlinks=False)
                    if stat.st_nlink == 1 or entry.is_dir(follow_symlinks=False) or stat.st_ino not in linked:
                        total += stat.st_blocks * 512
                    linked.add(stat.st_ino)
                    if entry.is_dir(follow_symlinks=False):
                        unseen.append(entry.path)
    return total


def max_disk_use(folder: str) -> int:
    """Keeps one check from filling the disk. Without a limit if the disk is small: it may be almost full already."""
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    return int(free * MAX_DISK_SHARE) if free >= MIN_FREE_BYTES else sys.maxsize


def prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def main() -> None:
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return
    spec = json.loads(line)
    with open(spec["lock"], "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if select.select([0], [], [], 0)[0]:  # the server is gone: the next one can be removing the folder already
            return
        print(json.dumps(Supervisor(spec).run()), flush=True)


if __name__ == "__main__":
    main()
