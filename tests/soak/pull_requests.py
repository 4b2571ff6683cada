"""Creates many pull requests with one git process, on the present tip of the target branch.

All change files of a fixed set, so that the tree of the target branch does not grow with the traffic.
"""

from collections.abc import Iterator
from enum import StrEnum
from random import Random

from msgspec import Struct, json

from mergeyard.domain.ids import Sha
from tests.support.repositories import ADA, FIRST_COMMIT_TIME, Files, Origin, encode_change, encode_data

FILES = 1000
FILES_PER_FOLDER = 40
CREATED_AT_ONCE = 100
PAIR_SLOTS = 50
"""The number of pairs that can be in progress together."""


class PullRequestKind(StrEnum):
    GOOD = "good"
    BAD = "bad"
    LEFT = "left of a pair that fails together"
    RIGHT = "right of a pair that fails together"
    TWIN = "twin"
    """Changes the same file as the one before it: they conflict."""


class SoakPullRequest(Struct, frozen=True):
    number: int
    kind: PullRequestKind


def initial_files() -> Files:
    return {path_of(number): "as it was" for number in range(FILES)}


def path_of(number: int) -> str:
    at = number % FILES
    return f"folder{at // FILES_PER_FOLDER}/file{at}"


def evaluate_commit(origin: Origin, commit: Sha) -> str:
    """A commit fails with a file in `bad/`, and with both pull requests of a pair."""
    entries = origin.run("ls-tree", "-r", commit, "bad/", "pairs/").decode().splitlines()
    blobs = {path: entry_fields.split(" ")[2] for entry_fields, path in (entry.split("\t") for entry in entries)}
    pairs = (blobs[path] == blobs.get(path.replace("left", "right")) for path in blobs if "left" in path)
    return "failure" if any(pairs) or any(path.startswith("bad/") for path in blobs) else "success"


class PullRequestFactory:
    def __init__(self, origin: Origin, target: str, random: Random) -> None:
        self._origin = origin
        self._target = target
        self._random = random
        self._written = 0
        self._waiting: list[SoakPullRequest] = []

    def next(self) -> SoakPullRequest:
        if not self._waiting:
            self._waiting = self._write(list(self._kinds()))
        return self._waiting.pop(0)

    def _kinds(self) -> Iterator[PullRequestKind]:
        for _ in range(CREATED_AT_ONCE):
            match self._random.randrange(100):
                case 0 | 1 | 2:
                    yield PullRequestKind.BAD
                case 3 | 4:
                    yield from (PullRequestKind.LEFT, PullRequestKind.RIGHT)
                case 5 | 6:
                    yield from (PullRequestKind.GOOD, PullRequestKind.TWIN)
                case _:
                    yield PullRequestKind.GOOD

    def _write(self, kinds: list[PullRequestKind]) -> list[SoakPullRequest]:
        first, tip = self._written + 1, self._origin.tip(self._target)
        pulls = [SoakPullRequest(number, kind) for number, kind in enumerate(kinds, first)]
        self._written += len(pulls)
        stream = b"".join(part for pull in pulls for part in self._commands(pull, tip))
        metas = self._origin.run("fast-import", "--quiet", "--force", stdin=stream).splitlines()
        refs = (b"create refs/pull/%d/meta %b\n" % (pull.number, meta) for pull, meta in zip(pulls, metas, strict=True))
        self._origin.run("update-ref", "--stdin", stdin=b"".join(refs))
        return pulls

    def _commands(self, pull: SoakPullRequest, tip: Sha) -> Iterator[bytes]:
        """Commands for `git fast-import`, which prints the SHA of the blob with the metadata."""
        title, ref = f"Change number {pull.number}", f"refs/pull/{pull.number}/head"
        yield f"commit {ref}\ncommitter {ADA} {FIRST_COMMIT_TIME + pull.number} +0000\n".encode()
        yield encode_data(title.encode()) + f"from {tip}\n".encode()
        path, content = _changed(pull)
        yield encode_change(path, content) + b"\n"
        meta = {"title": title, "author": "Ada", "base": self._target, "branch": f"topic-{pull.number}"}
        yield b"blob\nmark :%d\n" % pull.number + encode_data(json.encode(meta)) + b"get-mark :%d\n" % pull.number


def _changed(pull: SoakPullRequest) -> tuple[str, str]:
    """The path and its new content; the two of a pair fail together because they have the same content."""
    number = pull.number
    match pull.kind:
        case PullRequestKind.GOOD:
            return path_of(number), f"changed by {number}"
        case PullRequestKind.TWIN:
            return path_of(number - 1), f"changed differently by {number}"
        case PullRequestKind.BAD:
            return f"bad/{number}", "1"
        case PullRequestKind.LEFT:
            return f"pairs/left{number % PAIR_SLOTS}", f"pair {number}"
        case PullRequestKind.RIGHT:
            return f"pairs/right{(number - 1) % PAIR_SLOTS}", f"pair {number - 1}"
