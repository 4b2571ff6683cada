"""Finds what should be gone when everybody has ended: branches, locks and files for a moment."""

from collections.abc import Iterator
from pathlib import Path

from tests.support.host_log import TEST_BRANCHES
from tests.support.repositories import Origin

FOR_A_MOMENT = ("index-*", "tmp_*", "*.lock", ".new-*", "incoming-*", "*.tmp")


def left_over(folder: Path, origins: list[Origin], temporary: Path) -> Iterator[str]:
    for origin in origins:
        yield from (f"the branch {ref} is left over" for ref in origin.refs() if ref.startswith(TEST_BRANCHES))
    mirrors = (folder / "data").rglob("*.git")
    for place in (*mirrors, *(origin.path for origin in origins)):
        found = (path for pattern in FOR_A_MOMENT for path in place.rglob(pattern))
        yield from (f"{path.relative_to(folder)} is left over" for path in found)
    yield from (f"{path.name} is left over in the folder for temporary files" for path in temporary.iterdir())
