"""What a server is told about its end, in a file that it reads when it starts."""

from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

VARIABLE = "KILLS_ORDERS"
"""The environment variable that names the file."""


class Moment(StrEnum):
    """Of an effect."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


class GitFate(StrEnum):
    """Of the git processes that a server leaves behind."""

    GOES_ON = "goes on"
    IS_LATE = "is late"
    """It stands still for a while, and goes on when the next server is at work."""
    DIES = "dies"


class Orders(Struct, frozen=True, kw_only=True):
    tomb: str
    """Where the boundary is written down at which it ended."""
    boundaries: dict[str, int] = {}
    """At any of these it ends, when it comes there for so many times."""
    delay: float = 0.0
    """Seconds between the beginning of an effect and an end in its midst."""
    git_fate: GitFate = GitFate.GOES_ON
    rival: str | None = None
    """A command that pushes to a target right before the first landing does: it is given the ref and its commit."""

    def save(self, path: Path) -> None:
        path.write_bytes(msgspec.json.encode(self))

    @classmethod
    def load(cls, path: str) -> "Orders":
        return msgspec.json.decode(Path(path).read_bytes(), type=cls)
