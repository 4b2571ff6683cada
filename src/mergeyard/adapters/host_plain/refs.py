"""The refs that a pull request is kept in, and all refs that tell when something happened."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from mergeyard.adapters.host_plain.differing import differing_lines
from mergeyard.adapters.host_plain.process import git
from mergeyard.domain import ours
from mergeyard.domain.ids import PrNumber, Sha

PULLS = "refs/pull/"
SPACE_AND_PULLS = f" {PULLS}".encode()
EVERY_HEAD = "refs/pull/*/head"
NUMBER = re.compile(r"refs/pull/([1-9][0-9]{0,9})/(?:head|meta)")
GREATEST = 2**31 - 1


def head_ref(number: PrNumber) -> str:
    return f"{PULLS}{number}/head"


def meta_ref(number: PrNumber) -> str:
    return f"{PULLS}{number}/meta"


def number_of(ref: str) -> PrNumber | None:
    found = NUMBER.fullmatch(ref)
    return PrNumber(int(found[1])) if found and int(found[1]) <= GREATEST else None


async def refs_below(folder: Path, *prefixes: str) -> Mapping[str, Sha]:
    """A prefix ends where a name does: `refs/pull/1` finds nothing of `refs/pull/12`."""
    return _read((await _listed(folder, *prefixes)).split(b"\n"))


class Telling(Struct, frozen=True):
    """The refs that tell when something happened, and the list in which git named them."""

    listed: bytes = b""
    refs: Mapping[str, Sha] = {}

    async def again(self, folder: Path) -> "Telling":
        """As they are now; the very same as long as nothing happened, which is what most looks find."""
        listed = await _listed(folder, "refs/heads", "refs/pull")
        return self if listed == self.listed else Telling(listed, self._refs_in(listed))

    def _refs_in(self, listed: bytes) -> Mapping[str, Sha]:
        """Of the many that stayed as they were nothing is read again."""
        refs = dict(self.refs)
        for before, now in zip(_branches_and_pulls(self.listed), _branches_and_pulls(listed), strict=True):
            gone, come = map(_read, differing_lines(before, now))
            for ref in gone.keys() - come.keys():
                refs.pop(ref, None)
            refs.update((ref, sha) for ref, sha in come.items() if tells(ref))
        return refs


async def _listed(folder: Path, *prefixes: str) -> bytes:
    return await git(folder, "for-each-ref", "--format=%(objectname) %(refname)", "--end-of-options", *prefixes)


def _branches_and_pulls(listed: bytes) -> tuple[bytes, bytes]:
    """Each by itself: pull requests that change are mostly neighbours, but a branch is far away."""
    first = listed.find(SPACE_AND_PULLS)
    here = len(listed) if first < 0 else listed.rfind(b"\n", 0, first) + 1
    return listed[:here], listed[here:]


def _read(lines: Iterable[bytes]) -> Mapping[str, Sha]:
    # No ref has a backslash in its name, so names that are no UTF-8 stay apart from each other.
    parts = (line.decode(errors="backslashreplace").partition(" ") for line in lines)
    return {ref: Sha(sha) for sha, _, ref in parts if ref}


def tells(ref: str) -> bool:
    if ref.startswith(PULLS):
        return number_of(ref) is not None
    return not ref.startswith(f"refs/heads/{ours.BRANCHES}")
