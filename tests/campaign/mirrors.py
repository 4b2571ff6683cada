"""Looks at what the service keeps on disk: bare mirrors, in which nothing was checked out and nothing ran."""

from collections.abc import Iterator
from pathlib import Path

OF_GIT = frozenset({"HEAD", "config", "description", "hooks", "info", "objects", "refs", "packed-refs", "branches"})


def flaws_of_mirrors(folder: Path) -> Iterator[str]:
    for mirror in folder.rglob("*.git"):
        if (mirror / "HEAD").is_file():
            yield from (f"the mirror holds {path.name}" for path in mirror.iterdir() if path.name not in OF_GIT)
            if any((mirror / "hooks").glob("*")):
                yield "the mirror has hooks"
