"""Puts a command into namespaces of its own with bubblewrap (`bwrap`), where that is installed and permitted.

The command sees the system's programs and libraries read-only, its checkout, an empty home and a /tmp of its own; no
other file, no other process, and no network unless that is allowed.
"""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from mergeyard.adapters.runner_local.workshop import Place

PROGRAM = "bwrap"
PROBE_TIMEOUT_S = 10
SHARED_MEMORY_BYTES = 256 * 2**20
"""/dev/shm is memory, which is limited by nothing else."""
SYSTEM_PATHS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
CONFIGURATION_PATHS = tuple(
    f"/etc/{name}"
    for name in (
        *("alternatives", "ca-certificates", "fonts", "group", "host.conf", "hosts", "inputrc", "ld.so.cache"),
        *("ld.so.conf", "ld.so.conf.d", "localtime", "login.defs", "mime.types", "nsswitch.conf", "os-release"),
        *("passwd", "pki", "profile", "protocols", "resolv.conf", "rpc", "services", "shells", "ssl", "timezone"),
    )
)
"""Not all of /etc: keys and settings of services lie there, also ours."""


class Sandbox(Struct, frozen=True):
    network: bool = False
    readable: tuple[Path, ...] = ()
    """Further folders that commands may read."""
    hidden: tuple[Path, ...] = ()
    """Folders of the service that stay hidden, also within readable ones."""

    def wrap(self, command: Sequence[str], place: Place) -> list[str]:
        return [PROGRAM, *self._options(place), "--", *command]

    def find_problem(self, folder: Path) -> str | None:
        """Why commands cannot be sandboxed here, tried with a command that does nothing; None: they can."""
        if shutil.which(PROGRAM) is None:
            return f"{PROGRAM} is not installed"
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="probe-", dir=folder) as name:
            place = Place(Path(name))
            for path in (place.checkout, place.home, place.tmp):
                path.mkdir()
            try:
                tried = subprocess.run(
                    self.wrap(["true"], place), capture_output=True, check=False, timeout=PROBE_TIMEOUT_S
                )
            except (OSError, subprocess.SubprocessError) as error:
                return f"{PROGRAM} cannot be run: {error}"
        return tried.stderr.decode(errors="replace").strip() or "it failed" if tried.returncode else None

    def _options(self, place: Place) -> Iterator[str]:
        """Later mounts cover earlier ones, so the order matters."""
        yield from ("--unshare-user-try", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
        if not self.network:
            yield "--unshare-net"
        yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL")
        yield from ("--bind", str(place.tmp), "/tmp")
        for path in (*SYSTEM_PATHS, *CONFIGURATION_PATHS, *map(str, self.readable)):
            yield from ("--ro-bind-try", path, path)
        hidden = [str(path) for path in self.hidden if any(path.is_relative_to(seen) for seen in self._visible)]
        for path in hidden:
            yield from ("--tmpfs", path)
        yield from ("--proc", "/proc", "--dev", "/dev", "--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm")
        for path in map(str, (place.checkout, place.home)):
            yield from ("--bind", path, path)
        for path in (*hidden, "/dev", "/"):
            yield from ("--remount-ro", path)
        yield from ("--chdir", str(place.checkout))

    @property
    def _visible(self) -> tuple[Path, ...]:
        return (*map(Path, SYSTEM_PATHS), *self.readable)
