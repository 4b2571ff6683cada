"""Pull requests by the sheet: many are written with one git, upon the target as it is just now.

All change files of a set that stays as large as it is, so that the tree of the target does not grow with the traffic.
"""

from collections.abc import Iterator
from enum import StrEnum
from random import Random

from msgspec import Struct, json

from mergeyard.domain.ids import Sha
from tests.support.repositories import ADA, SOME_DAY, Files, Origin, change, data

FILES = 1000
IN_A_FOLDER = 40
SHEET = 100
SLOTS = 50
"""For pairs: so many may be on their way at once."""


class Kind(StrEnum):
    GOOD = "good"
    BAD = "bad"
    LEFT = "left of a pair that is red together"
    RIGHT = "right of a pair that is red together"
    TWIN = "twin"
    """Changes the same file as the one before it: they conflict."""


class Pull(Struct, frozen=True):
    number: int
    kind: Kind


def ground() -> Files:
    return {path_of(number): "as it was" for number in range(FILES)}


def path_of(number: int) -> str:
    at = number % FILES
    return f"folder{at // IN_A_FOLDER}/file{at}"


def verdict(origin: Origin, commit: Sha) -> str:
    """Red is whatever has something bad, and where both of a pair have come."""
    entries = origin.run("ls-tree", "-r", commit, "bad/", "pairs/").decode().splitlines()
    blobs = {path: facts.split(" ")[2] for facts, path in (entry.split("\t") for entry in entries)}
    pairs = (blobs[path] == blobs.get(path.replace("left", "right")) for path in blobs if "left" in path)
    return "failure" if any(pairs) or any(path.startswith("bad/") for path in blobs) else "success"


class Sheets:
    def __init__(self, origin: Origin, target: str, random: Random) -> None:
        self._origin = origin
        self._target = target
        self._random = random
        self._written = 0
        self._waiting: list[Pull] = []

    def next(self) -> Pull:
        if not self._waiting:
            self._waiting = self._write(list(self._kinds()))
        return self._waiting.pop(0)

    def _kinds(self) -> Iterator[Kind]:
        for _ in range(SHEET):
            match self._random.randrange(100):
                case 0 | 1 | 2:
                    yield Kind.BAD
                case 3 | 4:
                    yield from (Kind.LEFT, Kind.RIGHT)
                case 5 | 6:
                    yield from (Kind.GOOD, Kind.TWIN)
                case _:
                    yield Kind.GOOD

    def _write(self, kinds: list[Kind]) -> list[Pull]:
        first, tip = self._written + 1, self._origin.tip(self._target)
        pulls = [Pull(number, kind) for number, kind in enumerate(kinds, first)]
        self._written += len(pulls)
        stream = b"".join(part for pull in pulls for part in self._told(pull, tip))
        metas = self._origin.run("fast-import", "--quiet", "--force", stdin=stream).splitlines()
        refs = (b"create refs/pull/%d/meta %b\n" % (pull.number, meta) for pull, meta in zip(pulls, metas, strict=True))
        self._origin.run("update-ref", "--stdin", stdin=b"".join(refs))
        return pulls

    def _told(self, pull: Pull, tip: Sha) -> Iterator[bytes]:
        """In the language of `git fast-import`, which answers with the name of the blob that holds the data."""
        title, ref = f"Change number {pull.number}", f"refs/pull/{pull.number}/head"
        yield f"commit {ref}\ncommitter {ADA} {SOME_DAY + pull.number} +0000\n".encode()
        yield data(title.encode()) + f"from {tip}\n".encode()
        path, content = _changed(pull)
        yield change(path, content) + b"\n"
        meta = {"title": title, "author": "Ada", "base": self._target, "branch": f"topic-{pull.number}"}
        yield b"blob\nmark :%d\n" % pull.number + data(json.encode(meta)) + b"get-mark :%d\n" % pull.number


def _changed(pull: Pull) -> tuple[str, str]:
    """The path and its new content; those of a pair are red together because they say the same."""
    number = pull.number
    match pull.kind:
        case Kind.GOOD:
            return path_of(number), f"changed by {number}"
        case Kind.TWIN:
            return path_of(number - 1), f"changed otherwise by {number}"
        case Kind.BAD:
            return f"bad/{number}", "1"
        case Kind.LEFT:
            return f"pairs/left{number % SLOTS}", f"pair {number}"
        case Kind.RIGHT:
            return f"pairs/right{(number - 1) % SLOTS}", f"pair {number - 1}"
