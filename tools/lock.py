"""Reads the locks: what is pinned, by which hashes, where it is needed, and by whom it is wanted."""

import re
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parents[1]
RUN, TEST = ROOT / "requirements" / "run.txt", ROOT / "requirements" / "test.txt"
OURSELVES = "mergeyard"

PINNED_AND_HASHED = re.compile(
    r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w, -]+)\])?==(?P<version>[\w.]+)(?: ; (?P<where>[^\\]+?))?"
    r"(?P<hashes>(?: --hash=sha256:[0-9a-f]{64})+)"
)


class Pin(Struct, frozen=True):
    name: str
    version: str
    extras: frozenset[str]
    where: str
    """The marker: in which surroundings it is needed. Empty is everywhere."""
    hashes: tuple[str, ...]
    wanted_by: frozenset[str]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def pins(lock: Path) -> list[Pin]:
    return [_pin(entry) for entry in entries(lock.read_text())]


def entries(text: str) -> list[str]:
    """Each requirement together with the comments that follow it."""
    return re.findall(r"^(?![ #])\S.*(?:\n +\S.*)*", text, re.MULTILINE)


def requirement(entry: str) -> str:
    """In one line, without comments."""
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
        where=found["where"] or "",
        hashes=tuple(re.findall(r"[0-9a-f]{64}", found["hashes"])),
        wanted_by=frozenset(_wanting(entry)),
    )


def _wanting(entry: str) -> list[str]:
    """Said in one line, `# via a`, or in several, `# via` and then `#   a`."""
    comments = [line.strip(" #") for line in entry.splitlines() if line.lstrip().startswith("#")]
    words = [comment.removeprefix("via").strip() for comment in comments]
    return [word.partition("[")[0] for word in words if word and not word.startswith("-c ")]
