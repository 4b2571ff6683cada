"""Names that may become arguments of git, and where a mirror keeps the refs of its remote.

`refs/heads/main` is kept as `refs/origin/2/heads/main`. The number counts the slashes of the name: a branch `a` that
gave way to a branch `a/b` would else stand in its way for ever, for what was seen once is not removed.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import GitTrouble

KEPT = "refs/origin/"
SHA = re.compile(r"[0-9a-f]{40}")
COMPONENT = r"/(?!\.)[^\x00-\x20\x7f~^:?*\[\\/]+(?<!\.lock)"
REF = re.compile(rf"refs(?:{COMPONENT})+(?<!\.)")
NEVER_IN_A_REF = ("..", "@{")


def checked_sha(sha: Sha) -> Sha:
    if not SHA.fullmatch(sha):
        raise GitTrouble(f"{sha!r} is not the name of an object")
    return sha


def checked_ref(ref: str) -> str:
    if not REF.fullmatch(ref) or any(part in ref for part in NEVER_IN_A_REF):
        raise GitTrouble(f"{ref!r} is not the full name of a ref")
    return ref


def checked_pattern(pattern: str) -> str:
    checked_ref(pattern.replace("*", "-", 1))
    return pattern


def matches(pattern: str, ref: str) -> bool:
    """As in the refspecs of git: a star stands for anything, also for several components."""
    head, star, tail = pattern.partition("*")
    if not star:
        return ref == pattern
    return ref.startswith(head) and ref.endswith(tail) and len(ref) >= len(head) + len(tail)


def kept(ref: str) -> str:
    return f"{KEPT}{ref.count('/')}/{ref.removeprefix('refs/')}"


def kept_glob(pattern: str) -> str:
    """Holds all that the pattern matches, and more: sort out with `matches`."""
    head, star, _ = pattern.partition("*")
    if not star:
        return kept(pattern)
    folder = head.rpartition("/")[0].removeprefix("refs")
    return f"{KEPT}*{folder}/**"


def original(kept_ref: str) -> str:
    return "refs/" + kept_ref.removeprefix(KEPT).partition("/")[2]


def refs_in(out: bytes) -> Iterator[tuple[Sha, str]]:
    """Every ref that git lists, last in a line that its object begins. As text, a name may hold what Python takes for
    the end of a line; one that is no text cannot be named by us and is left out."""
    for line in BytesIO(out):  # one after the other: there may be many
        sha, *_, ref = line.split()
        with suppress(UnicodeDecodeError):
            yield Sha(sha.decode()), ref.decode()


def readable(path: bytes) -> str:
    """A path for people: bytes that are no text are shown as escapes."""
    return path.decode(errors="backslashreplace")
