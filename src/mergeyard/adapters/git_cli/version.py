"""Which git will do, and what to say when it will not."""

import re

OLDEST = (2, 38)
"""The first one that merges without a working tree: `git merge-tree --write-tree`."""

ADVICE = f"install git {OLDEST[0]}.{OLDEST[1]} or newer, and put it first in PATH"


def complaint(version: str) -> str | None:
    """What is wrong with a git that calls itself so, or None."""
    found = re.match(r"git version (\d+)\.(\d+)", version)
    if not found:
        return f"git calls itself {version!r}, which is no version: {ADVICE}"
    if (int(found[1]), int(found[2])) < OLDEST:
        return f"git {version.removeprefix('git version ')} is too old: {ADVICE}"
    return None
