"""Reads what a commit holds, path by path, so that people can change it."""

from mergeyard.domain.ids import Sha
from tests.support.repositories import Content, Executable, Files, Origin, Submodule, Symlink, as_text

KINDS_WITHOUT_CONTENT = frozenset({"160000"})


def snapshot(origin: Origin, place: str) -> dict[str, Content]:
    """Of a branch, a commit or a tree."""
    found = [_entry(entry) for entry in origin.run("ls-tree", "-r", "-z", place).split(b"\0")[:-1]]
    blobs = _blobs(origin, [sha for mode, sha, _ in found if mode not in KINDS_WITHOUT_CONTENT])
    return {path: _content(mode, sha, blobs) for mode, sha, path in found}


def changes(before: Files, after: Files) -> dict[str, Content]:
    """What makes one out of the other."""
    gone = dict.fromkeys(path for path in before if path not in after)
    return {**gone, **{path: content for path, content in after.items() if before.get(path) != content}}


def _entry(entry: bytes) -> tuple[str, Sha, str]:
    facts, _, path = entry.partition(b"\t")
    mode, _, sha = facts.decode().split(" ")
    return mode, Sha(sha), as_text(path)


def _blobs(origin: Origin, names: list[Sha]) -> dict[Sha, bytes]:
    told = origin.run("cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode())
    blobs, at = dict[Sha, bytes](), 0
    for name in names:
        header = told[at : told.index(b"\n", at)]
        start, size = at + len(header) + 1, int(header.rpartition(b" ")[2])
        blobs[name] = told[start : start + size]
        at = start + size + 1
    return blobs


def _content(mode: str, sha: Sha, blobs: dict[Sha, bytes]) -> Content:
    match mode:
        case "160000":
            return Submodule(sha)
        case "120000":
            return Symlink(as_text(blobs[sha]))
        case "100755":
            return Executable(as_text(blobs[sha]))
        case _:
            return blobs[sha] if b"\0" in blobs[sha] else as_text(blobs[sha])
