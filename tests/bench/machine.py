"""Says on what it was measured: figures of another machine, or of another commit, are other figures."""

import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def machine() -> dict[str, str | int]:
    return {
        "machine_cores": os.cpu_count() or 0,
        "machine_system": f"{platform.system()} {platform.machine()}",
        "python_version": platform.python_version(),
        "git_version": _said_by_git("version").removeprefix("git version "),
        "commit": _said_by_git("rev-parse", "--short", "HEAD"),
    }


def in_words(machine: dict[str, str | int]) -> str:
    return (
        f"{machine['machine_cores']} cores of {machine['machine_system']}, Python {machine['python_version']}, "
        f"git {machine['git_version']}, at commit {machine['commit']}"
    )


def _said_by_git(*arguments: str) -> str:
    """Nothing where there is no history, as in an unpacked archive."""
    answer = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False, text=True)
    return answer.stdout.strip()
