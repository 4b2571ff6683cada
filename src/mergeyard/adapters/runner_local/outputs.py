"""Keeps what commands write, each in a file of its own: `<folder>/<run>/<check>.log`."""

import shutil
from collections.abc import Collection
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from mergeyard.domain.ids import RunId

LONGEST = 150
"""File names end at 255 bytes."""


class Outputs:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def prepare(self, run: RunId, check: str) -> Path:
        place = self._place(run, check)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return place

    def read(self, run: RunId, check: str) -> bytes | None:
        try:
            return self._place(run, check).read_bytes()
        except FileNotFoundError:
            return None

    def delete_older(self, before: float, keep: Collection[RunId]) -> None:
        """All of a run whose newest file is older than this, in seconds since 1970."""
        kept = {file_name(run) for run in keep}
        for run in self._folder.glob("[!.]*"):
            try:
                newest = max(each.stat().st_mtime for each in (run, *run.iterdir()))
            except OSError:
                continue  # deleted meanwhile, or no folder of a run
            if newest < before and run.name not in kept:
                shutil.rmtree(run, ignore_errors=True)

    def _place(self, run: RunId, check: str) -> Path:
        return self._folder / file_name(run) / f"{file_name(check)}.log"


def file_name(text: str) -> str:
    """A name that stays in its folder, whatever the text; different texts have different names."""
    name = quote(text, safe="", errors="surrogatepass").replace(".", "%2E")
    if len(name) <= LONGEST:
        return name
    return f"{name[:100]}-{sha256(name.encode()).hexdigest()}"
