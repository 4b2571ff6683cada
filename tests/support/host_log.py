"""The memory of a bare repository: a hook writes down every change of its refs, and springs the traps that tests set.

A trap holds a push, or kills the server, at one very moment, and says what becomes of the push afterwards.
"""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.repositories import Origin

NOTHING = "0" * 40
SERVICE = "service"
TARGET = "refs/heads/main"
TEST_BRANCHES = "refs/heads/mergeyard/"

HOOK = """\
moved=
while read -r old new ref; do moved="$moved|$old $new $ref"; done
phase=${{1:-received}}
if [ -f {folder}/trap ]; then . {folder}/trap; fi
if [ "$phase" = committed ]; then printf '%s\\n' "${{GIT_COMMITTER_NAME:-service}}$moved" >> {folder}/log; fi
exit 0
"""

TRAP = """\
case "$phase$moved" in {phase}*"|{old}"*"{new} {ref}"*)
    if mv {folder}/trap {folder}/sprung; then {then}; fi
esac
"""


SERVER = "mergeyard serve"
"""How it is called among processes: by its command line, or by its name when it was forked."""
STRIKE = """
process=$$
while [ "$process" -gt 1 ] && ! cat /proc/$process/cmdline /proc/$process/comm | tr '\\0' ' ' | grep -q '{server}'; do
    process=$(sed -n 's/^PPid:.//p' /proc/$process/status)
done
if [ "$process" -gt 1 ]; then echo "$process" > {{folder}}/struck; kill -{signal} "$process"; fi
{fate}"""


class Moment(StrEnum):
    """Of a push."""

    RECEIVED = "received"
    """It has arrived, and no ref is locked yet."""
    PREPARED = "prepared"
    """All its refs are locked and where it expects them."""
    COMMITTED = "committed"
    """They have moved, and nobody was told."""


class Fate(StrEnum):
    """Of a push whose server was killed."""

    GOES_ON = ":"
    DIES = "exit 1"
    IS_LATE = "while [ ! -f {folder}/released ]; do sleep 0.02; done"


class Move(Struct, frozen=True):
    ref: str
    old: Sha | None
    new: Sha | None


class Transaction(Struct, frozen=True):
    """Refs that moved together."""

    place: int
    by_service: bool
    moves: tuple[Move, ...]

    def of(self, ref: str) -> Move | None:
        return next((move for move in self.moves if move.ref == ref), None)


class HostLog:
    def __init__(self, origin: Origin, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._path = folder / "log"
        self._path.touch()
        for name in ("reference-transaction", "pre-receive"):
            origin.hook(name, HOOK.format(folder=folder))

    def __len__(self) -> int:
        return self._path.read_bytes().count(b"\n")

    def __iter__(self) -> Iterator[Transaction]:
        """Whoever moves a ref without saying from where moved it from where it was."""
        there = dict[str, Sha | None]()
        for place, line in enumerate(self._path.read_text().splitlines()):
            who, *moves = line.split("|")
            told = tuple(move_told(move) for move in moves if " refs/" in move)
            told = tuple(Move(move.ref, move.old or there.get(move.ref), move.new) for move in told)
            there |= {move.ref: move.new for move in told}
            if told:
                yield Transaction(place, who == SERVICE, told)

    def kill_server(self, process: int, moment: Moment, fate: Fate, *, ref: str, old: str = "", new: str = "") -> None:
        """When the next push moves a ref that begins so, from an old value to a new one, if they are named."""
        self._set_trap(f"kill -9 {process}; {fate}", phase=moment, ref=ref, old=old, new=new)

    def ambush(self, signal: str, moment: Moment, fate: Fate, *, ref: str) -> None:
        """Whichever server's push next moves a ref that begins so gets a signal."""
        self._set_trap(STRIKE.format(server=SERVER, signal=signal, fate=fate), phase=moment, ref=ref, old="", new="")

    def lift_ambush(self) -> int | None:
        """The process that walked into it, if one did."""
        (self._folder / "trap").unlink(missing_ok=True)
        struck = self._folder / "struck"
        try:
            return int(struck.read_text())
        except FileNotFoundError:
            return None
        finally:
            struck.unlink(missing_ok=True)

    def hold(self, moment: Moment, *, ref: str) -> None:
        """The next push that moves a ref that begins so waits there until it is released."""
        self._set_trap(Fate.IS_LATE, phase=moment, ref=ref, old="", new="")

    def _set_trap(self, then: str, **what: str) -> None:
        trap = TRAP.format(folder=self._folder, then=then.format(folder=self._folder), **what)
        (self._folder / "trap.new").write_text(trap)
        (self._folder / "trap.new").rename(self._folder / "trap")

    @property
    def sprung(self) -> bool:
        return (self._folder / "sprung").exists()

    def release(self) -> None:
        (self._folder / "released").touch()


def move_told(text: str) -> Move:
    old, new, ref = text.split(" ")
    return Move(ref, None if old == NOTHING else Sha(old), None if new == NOTHING else Sha(new))
