"""Supervises the command of one check, as a process of its own between the server and the command.

Started as a script. Its order is one line of JSON on standard input, a pipe that only the server holds open: when the
server closes it or dies, the supervisor ends everything. It is a child subreaper: processes that the command detaches
become its children, so it ends when the command and all of its descendants have ended, and not before. Standard error
is the output of the check, where a breached limit is explained; the report for the server goes to standard output.
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
"""From linux/prctl.h. Elsewhere than on Linux only the process group of the command is ended."""
POLL_S = 0.25
"""Between two counts of the processes."""
GRACE_S = 2.0
"""Between SIGTERM and SIGKILL."""
OOM_SCORE = 500
"""When memory runs out the kernel ends the command rather than the server."""
MAX_POLLING_SHARE = 0.05
"""Of the time, for measuring the files: large checkouts are measured less often."""
MIN_ROOM = 1 << 30
MAX_SHARE_OF_ROOM = 0.9
"""With at least this many bytes free at the start, a check may not use more than this share of them."""


class Supervisor:
    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._folder: str = order["folder"]
        self._max_bytes = min(order["max_bytes"], usable_room(self._folder))
        self._code: int | None = None
        self._breach: str | None = None
        self._next_measure = 0.0
        self._signals = caught_signals()

    def run(self) -> dict[str, object]:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        try:
            command = self._start()
        except OSError as error:
            return {"trouble": f"the command cannot be started: {error}"}
        except ValueError as error:  # such as a null byte, which no attempt would change
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
        self._process = subprocess.Popen(  # kept: when it is deleted it would reap the command
            self._order["command"],
            stdin=subprocess.DEVNULL,
            stdout=2,
            cwd=self._order["cwd"],
            env=self._order["env"],
            start_new_session=True,
            preexec_fn=self._restrict,  # noqa: PLW1509 (there are no threads)
        )
        return self._process.pid

    def _restrict(self) -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if not self._order["sandboxed"]:  # the sandbox does it by itself, and may be a setuid program
            prctl(PR_SET_NO_NEW_PRIVS, 1)  # a setuid program would run as a user that the supervisor cannot signal
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        limit = self._max_bytes if hard == resource.RLIM_INFINITY else min(self._max_bytes, hard)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
            score.write(str(OOM_SCORE))

    def _watch(self, command: int) -> bool:
        """Until the command ends, breaches a limit, or the server wants it to end: then the answer is true."""
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
        most: int = self._order["max_processes"]
        if len(descendants()) > most:
            self._breach = f"it had more than {most} processes at once (runner_max_processes)"

    def _measure_if_due(self) -> None:
        started = time.monotonic()
        if started >= self._next_measure:
            self._measure()
            ended = time.monotonic()
            self._next_measure = ended + max(1.0, (ended - started) / MAX_POLLING_SHARE)

    def _measure(self) -> None:
        if self._breach is None and used_bytes(self._folder) >= self._max_bytes:
            self._breach = f"its files took more than {self._max_bytes // 2**20} MiB of the disk (runner_max_disk_mb)"

    def _terminate(self, command: int) -> None:
        """SIGTERM, and some time. The process that makes the sandbox would end it at once, so it gets no signal."""
        spared = {command} if self._order["sandboxed"] else set[int]()
        send(signal.SIGTERM, descendants() - spared, command)
        deadline = time.monotonic() + GRACE_S
        while self._reap(command) and time.monotonic() < deadline:
            time.sleep(0.02)

    def _kill_descendants(self, command: int) -> None:
        """Again until no child is left: a process may start others meanwhile, and orphans become children."""
        while self._reap(command):
            send(signal.SIGKILL, children(), command)
            time.sleep(0)

    def _reap(self, command: int) -> bool:
        """Whether any descendant is left. The exit code of the command is kept."""
        try:
            while True:
                process, status = os.waitpid(-1, os.WNOHANG)
                if process == 0:
                    return True
                if process == command:
                    self._code = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            return False


def children() -> set[int]:
    """Read at once where the kernel lists them, so that few processes can fork before they are killed."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            return set(map(int, file.read().split()))
    except OSError:
        return descendants()


def descendants() -> set[int]:
    """All processes below this one. Those that end meanwhile are left out."""
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


def send(number: int, processes: set[int], command: int) -> None:
    for process in processes:
        with suppress(OSError):
            os.kill(process, number)
    if sys.platform != "linux":
        with suppress(OSError):
            os.killpg(command, number)


def caught_signals() -> int:
    """A pipe to read from when a child has ended. Signals to end are ignored: only the server decides that."""
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    signal.set_wakeup_fd(sink, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, ignore)
    return source


def ignore(_number: int, _frame: object) -> None:
    """Unlike SIG_IGN, a handler is not inherited by the command."""


def used_bytes(folder: str) -> int:
    """What the files below a folder take on the disk; a file with several names counts once."""
    total = 0
    linked = set[int]()
    unseen = [folder]
    while unseen:
        with suppress(OSError), os.scandir(unseen.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    facts = entry.stat(follow_symlinks=False)
                    if facts.st_nlink == 1 or entry.is_dir(follow_symlinks=False) or facts.st_ino not in linked:
                        total += facts.st_blocks * 512
                    linked.add(facts.st_ino)
                    if entry.is_dir(follow_symlinks=False):
                        unseen.append(entry.path)
    return total


def usable_room(folder: str) -> int:
    """So that one check does not fill the disk. On a small disk there is no such limit: it may be full before."""
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    return int(free * MAX_SHARE_OF_ROOM) if free >= MIN_ROOM else sys.maxsize


def prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def main() -> None:
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return
    order = json.loads(line)
    with open(order["lock"], "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if select.select([0], [], [], 0)[0]:  # the server is gone: the next one may be removing the folder already
            return
        print(json.dumps(Supervisor(order).run()), flush=True)


if __name__ == "__main__":
    main()
