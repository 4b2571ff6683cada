"""Reads the list of vendored files of the web pages from the table in their folder's README."""

import re
from pathlib import Path

from msgspec import Struct

from tools.lock import ROOT

FOLDER = ROOT / "src" / "mergeyard" / "web" / "static" / "vendor"
ROW = re.compile(r"^\| (`.+?`) \| ([\w.@/-]+), (`.+?`) \| ([\w.]+) \| ([\w.-]+)(?:, see `(.+?)`)? \|$", re.MULTILINE)


class Vendored(Struct, frozen=True):
    package: str
    version: str
    license: str
    files: dict[str, str]
    """Our name of each file, and its path in the published package."""

    @property
    def purl(self) -> str:
        return f"pkg:npm/{self.package}@{self.version}"


def vendored(folder: Path = FOLDER) -> list[Vendored]:
    rows = ROW.findall((folder / "README.md").read_text())
    return [
        Vendored(package, version, license_id, dict(zip(_quoted(ours), _quoted(theirs), strict=True)))
        for ours, package, theirs, version, license_id, _ in rows
    ]


def license_texts(folder: Path = FOLDER) -> set[str]:
    return {row[-1] for row in ROW.findall((folder / "README.md").read_text())} - {""}


def _quoted(cell: str) -> list[str]:
    return re.findall(r"`(.+?)`", cell)
