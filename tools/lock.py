"""Reads the lock files: the pins, their hashes, the environments that need them, and the packages that require them."""

import re
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parents[1]
RUN, TEST = ROOT / "requirements" / "run.txt", ROOT / "requirements" / "test.txt"
LOWEST = ROOT / "requirements" / "lowest.txt"
"""The oldest versions that pyproject.toml allows, and what they need."""
PROJECT_NAME = "mergeyard"

PINNED_AND_HASHED = re.compile(
    r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w, -]+)\])?==(?P<version>[\w.]+)(?: ; (?P<where>[^\\]+?))?"
    r"(?P<hashes>(?: --hash=sha256:[0-9a-f]{64})+)"
)


class Pin(Struct, frozen=True):
    name: str
    version: str
    extras: frozenset[str]
    marker: str
    """The environment marker; empty means everywhere."""
    hashes: tuple[str, ...]
    required_by: frozenset[str]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def pins(lock: Path) -> list[Pin]:
    return [_pin(entry) for entry in entries(lock.read_text())]


def entries(text: str) -> list[str]:
    """Returns each requirement together with the comments that follow it."""
    return re.findall(r"^(?![ #])\S.*(?:\n +\S.*)*", text, re.MULTILINE)


def requirement(entry: str) -> str:
    """Returns the requirement in one line, without comments."""
    lines = (line for line in entry.splitlines() if not line.lstrip().startswith("#"))
    return re.sub(r" *\\\n +", " ", "\n".join(lines))


def _pin(entry: str) -> Pin:
    found = PINNED_AND_HASHED.fullmatch(requirement(entry))
    if found is None:
        raise ValueError(f"not pinned by version and hash: {requirement(entry)[:200]}")
    return Pin(
        name=found["name"],
        version=found["version"],
        extras=frozenset(re.findall(r"[\w-]+", found["extras"] or "")),
        marker=found["where"] or "",
        hashes=tuple(re.findall(r"[0-9a-f]{64}", found["hashes"])),
        required_by=frozenset(_parse_required_by(entry)),
    )


def _parse_required_by(entry: str) -> list[str]:
    """Parses the packages of `# via a`, or of `# via` followed by lines `#   a`."""
    comments = [line.strip(" #") for line in entry.splitlines() if line.lstrip().startswith("#")]
    names = [comment.removeprefix("via").strip() for comment in comments]
    return [name.partition("[")[0] for name in names if name and not name.startswith("-c ")]
