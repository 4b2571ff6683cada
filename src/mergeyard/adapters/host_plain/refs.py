"""The refs that a pull request is kept in, and all refs that tell when something happened."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from mergeyard.adapters.host_plain.process import git
from mergeyard.domain.ids import PrNumber, Sha

OUR_PREFIX = "refs/heads/mergeyard/"
PULLS = "refs/pull/"
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
        before, now = set(self.listed.split(b"\n")), set(listed.split(b"\n"))
        gone, come = _read(before - now), _read(now - before)
        stayed = {ref: sha for ref, sha in self.refs.items() if ref not in gone} if gone else self.refs
        return {**stayed, **{ref: sha for ref, sha in come.items() if tells(ref)}}


async def _listed(folder: Path, *prefixes: str) -> bytes:
    return await git(folder, "for-each-ref", "--format=%(objectname) %(refname)", "--end-of-options", *prefixes)


def _read(lines: Iterable[bytes]) -> Mapping[str, Sha]:
    # No ref has a backslash in its name, so names that are no UTF-8 stay apart from each other.
    parts = (line.decode(errors="backslashreplace").partition(" ") for line in lines)
    return {ref: Sha(sha) for sha, _, ref in parts if ref}


def tells(ref: str) -> bool:
    if ref.startswith(PULLS):
        return number_of(ref) is not None
    return not ref.startswith(OUR_PREFIX)
