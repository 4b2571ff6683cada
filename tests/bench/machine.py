"""Describes the machine and the commit: figures of another machine or commit are not comparable."""

import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def describe_machine() -> dict[str, str | int]:
    return {
        "machine_cores": os.cpu_count() or 0,
        "machine_system": f"{platform.system()} {platform.machine()}",
        "python_version": platform.python_version(),
        "git_version": _git("version").removeprefix("git version "),
        "commit": _git("rev-parse", "--short", "HEAD"),
    }


def format_machine(machine: dict[str, str | int]) -> str:
    return (
        f"{machine['machine_cores']} cores of {machine['machine_system']}, Python {machine['python_version']}, "
        f"git {machine['git_version']}, at commit {machine['commit']}"
    )


def _git(*arguments: str) -> str:
    """Empty where there is no history, as in an unpacked archive."""
    result = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False, text=True)
    return result.stdout.strip()
