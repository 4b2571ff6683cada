"""Moves refs at the remote: all or none, each only from where we think it is.

`Pushed` says that this push moved every ref, or that afterwards every ref was read to be exactly at its new value,
whoever moved it: git calls a ref that is there already a success, whatever value we expected before.
Whenever git does not plainly say that it moved all, the remote is read and decides; exit codes do not.
A push whose answer was lost may still be at work there. That is `GitTrouble`, unless all is already where it should be.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from mergeyard.adapters.git_cli.fetching import remote_refs
from mergeyard.adapters.git_cli.names import checked_ref, checked_sha
from mergeyard.adapters.git_cli.process import SECONDS_OVER_THE_NETWORK, Answer
from mergeyard.adapters.git_cli.repository import Repository
from mergeyard.ports.git import Pushed, PushOutcome, PushRefused, RefUpdate, Remote, Stale

PUSH = ("push", "--atomic", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no")

MOVED = frozenset(" +*-t")
REJECTED = "!"

DRAWN_IN = re.compile(r"atomic push fail")
"""Said of refs that did not move because others did not."""
UNKNOWN = re.compile(r"\[remote failure\]")
OVERTAKEN = re.compile(r"but expected|reference already exists|reference is missing|unable to resolve reference")
LASTING = re.compile(r"exists; cannot create")
PASSING = re.compile(
    r"unpacker error|failed to (?:update|lock|write)|unable to (?:create '|write)|atomic transaction failed"
    r"|no space|internal (?:server |api )?error|temporar|time[d ]*out|try again|unavailable"
    r"|fatal error in commit_refs|internal api|api is not accessible|unreachable|read-only|\b50[0-9]\b",
    re.IGNORECASE,
)


class Line(Struct, frozen=True):
    """What git says about one ref: in porcelain, `<flag> <from>:<to> <summary>` between tabs."""

    flag: str
    summary: str


async def push(repository: Repository, remote: Remote, updates: Sequence[RefUpdate]) -> PushOutcome:
    if not updates:
        return Pushed()
    answer = await repository.call(
        *PUSH,
        *map(lease, updates),
        "--end-of-options",
        remote.url,
        *map(refspec, updates),
        environment=remote.environment,
        seconds=SECONDS_OVER_THE_NETWORK,
    )
    lines = list(parsed(answer.out))
    if answer.code == 0 and [line.flag in MOVED for line in lines] == [True] * len(updates):
        return Pushed()
    there = await remote_refs(repository, remote, [update.ref for update in updates])
    if all(there.get(update.ref) == update.new for update in updates):
        return Pushed()
    if nothing_moved(lines) and any(there.get(update.ref) != update.old for update in updates):
        return Stale()
    outcome = judged(answer, lines) if nothing_moved(lines) else None
    if outcome is None:
        raise await repository.trouble(answer, [update.new for update in updates if update.new])
    return outcome


def lease(update: RefUpdate) -> str:
    return f"--force-with-lease={checked_ref(update.ref)}:{checked_sha(update.old) if update.old else ''}"


def refspec(update: RefUpdate) -> str:
    return f"{checked_sha(update.new) if update.new else ''}:{update.ref}"


def parsed(out: bytes) -> Iterator[Line]:
    for text in out.decode(errors="replace").split("\n"):
        flag, tab, rest = text.partition("\t")
        if tab:
            yield Line(flag, rest.partition("\t")[2])


def nothing_moved(lines: Sequence[Line]) -> bool:
    """Whether git knows so for certain."""
    return bool(lines) and not any(line.flag in MOVED or UNKNOWN.search(line.summary) for line in lines)


def judged(answer: Answer, lines: Sequence[Line]) -> Stale | PushRefused | None:
    """Why nothing moved, though every ref is (again) where we thought; None when that may pass."""
    reasons = " ".join(line.summary for line in lines if line.flag == REJECTED and not DRAWN_IN.search(line.summary))
    words = spoken_by_the_host(answer.words) or reasons
    if "[remote rejected]" not in reasons or OVERTAKEN.search(words):
        return Stale()
    if PASSING.search(f"{reasons} {words}") and not LASTING.search(words):
        return None
    return PushRefused(words)


def spoken_by_the_host(words: str) -> str:
    lines = (line.removeprefix("remote:").strip() for line in words.splitlines() if line.startswith("remote:"))
    return "\n".join(filter(None, lines))
