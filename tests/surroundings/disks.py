"""Small disks that can be filled to the last byte: file systems in memory, mounted where a test wants one."""

import errno
import os
import subprocess
from pathlib import Path

PIECES = (64 * 1024, 4 * 1024)


class SmallDisk:
    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder], check=True)

    def fill(self) -> None:
        with self._ballast.open("ab", buffering=0) as ballast:
            for size in PIECES:
                while wrote(ballast.fileno(), size):
                    pass

    def make_room(self) -> None:
        self._ballast.unlink()

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", self.folder], check=True)


def wrote(file: int, size: int) -> bool:
    try:
        return os.write(file, bytes(size)) > 0
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False


def may_mount(folder: Path) -> bool:
    folder.mkdir(exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False).returncode:
        return False
    subprocess.run(["umount", folder], check=True)
    return True
