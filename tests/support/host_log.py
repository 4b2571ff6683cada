"""The log of a bare repository: a hook records every change of its refs and runs the traps that tests set.

A trap holds a push, or kills the server, at one exact stage of the push, and says how the push continues.
"""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.repositories import Origin

ZERO_SHA = "0" * 40
SERVICE_NAME = "service"
TARGET_REF = "refs/heads/main"
TEST_BRANCH_PREFIX = "refs/heads/mergeyard/"

HEADS_HOOK = """\
export GIT_COMMITTER_NAME=host
while read -r old new ref; do
    case "$ref $new" in
    refs/heads/mergeyard/*|refs/heads/main*|*" 0000000000000000000000000000000000000000") continue ;;
    esac
    for head in $(git for-each-ref --format='%(refname)' --points-at="$old" 'refs/pull/*/head' 2>/dev/null); do
        case $(git cat-file blob "${head%/head}/meta" | tr -d ' ') in
        *'"state":"merged"'*|*'"state":"closed"'*) ;;
        *"\"branch\":\"${ref#refs/heads/}\""*) git update-ref "$head" "$new" "$old" ;;
        esac
    done
done
exit 0
"""
"""As on a forge, the head of an open pull request follows its branch, which the server moves before the target
branch."""

HOOK_SCRIPT = """\
moved=
while read -r old new ref; do moved="$moved|$old $new $ref"; done
phase=${{1:-received}}
if [ -f {folder}/trap ]; then . {folder}/trap; fi
if [ "$phase" = committed ]; then printf '%s\\n' "${{GIT_COMMITTER_NAME:-service}}$moved" >> {folder}/log; fi
exit 0
"""

TRAP_SCRIPT = """\
case "$phase$moved" in {phase}*"|{old}"*"{new} {ref}"*)
    if mv {folder}/trap {folder}/sprung; then {then}; fi
esac
"""


SERVER_PROCESS_NAME = "mergeyard serve"
"""How the process is found: by its command line, or by its name if it was forked."""
SIGNAL_SCRIPT = """
process=$$
while [ "$process" -gt 1 ] && ! cat /proc/$process/cmdline /proc/$process/comm | tr '\\0' ' ' | grep -q '{server}'; do
    process=$(sed -n 's/^PPid:.//p' /proc/$process/status)
done
if [ "$process" -gt 1 ]; then echo "$process" > {{folder}}/signalled; kill -{signal} "$process"; fi
{fate}"""


class PushStage(StrEnum):
    """A stage of a push."""

    RECEIVED = "received"
    """It has arrived; no ref is locked yet."""
    PREPARED = "prepared"
    """All its refs are locked and have the expected values."""
    COMMITTED = "committed"
    """The refs have moved; the client has no response yet."""


class PushOutcome(StrEnum):
    """What happens to a push whose server was killed."""

    CONTINUES = ":"
    FAILS = "exit 1"
    IS_DELAYED = "while [ ! -f {folder}/released ]; do sleep 0.02; done"


class RefUpdate(Struct, frozen=True):
    ref: str
    old: Sha | None
    new: Sha | None


class Transaction(Struct, frozen=True):
    """Refs that were updated together."""

    index: int
    by_service: bool
    updates: tuple[RefUpdate, ...]

    def update_of(self, ref: str) -> RefUpdate | None:
        return next((update for update in self.updates if update.ref == ref), None)


class HostLog:
    def __init__(self, origin: Origin, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._path = folder / "log"
        self._path.touch()
        for name in ("reference-transaction", "pre-receive"):
            origin.install_hook(name, HOOK_SCRIPT.format(folder=folder))

    def __len__(self) -> int:
        return self._path.read_bytes().count(b"\n")

    def __iter__(self) -> Iterator[Transaction]:
        """An update without an old value starts from the last logged value."""
        values = dict[str, Sha | None]()
        for index, line in enumerate(self._path.read_text().splitlines()):
            committer, *lines = line.split("|")
            parsed = tuple(parse_update(text) for text in lines if " refs/" in text)
            updates = tuple(
                RefUpdate(update.ref, update.old or values.get(update.ref), update.new) for update in parsed
            )
            values |= {update.ref: update.new for update in updates}
            if updates:
                yield Transaction(index, committer == SERVICE_NAME, updates)

    def kill_server(
        self, process: int, stage: PushStage, outcome: PushOutcome, *, ref: str, old: str = "", new: str = ""
    ) -> None:
        """Kills the server when the next push updates a ref with this prefix, optionally between two given values."""
        self._set_trap(f"kill -9 {process}; {outcome}", phase=stage, ref=ref, old=old, new=new)

    def signal_on_push(self, signal: str, stage: PushStage, outcome: PushOutcome, *, ref: str) -> None:
        """Sends a signal to the server whose push next updates a ref with this prefix."""
        self._set_trap(
            SIGNAL_SCRIPT.format(server=SERVER_PROCESS_NAME, signal=signal, fate=outcome),
            phase=stage,
            ref=ref,
            old="",
            new="",
        )

    def cancel_signal(self) -> int | None:
        """Removes the trap; returns the process that got the signal, if any."""
        (self._folder / "trap").unlink(missing_ok=True)
        signalled = self._folder / "signalled"
        try:
            return int(signalled.read_text())
        except FileNotFoundError:
            return None
        finally:
            signalled.unlink(missing_ok=True)

    def hold_push(self, stage: PushStage, *, ref: str) -> None:
        """The next push that updates a ref with this prefix waits at this stage until `release_push`."""
        self._set_trap(PushOutcome.IS_DELAYED, phase=stage, ref=ref, old="", new="")

    def _set_trap(self, then: str, **what: str) -> None:
        trap = TRAP_SCRIPT.format(folder=self._folder, then=then.format(folder=self._folder), **what)
        (self._folder / "trap.new").write_text(trap)
        (self._folder / "trap.new").rename(self._folder / "trap")

    @property
    def triggered(self) -> bool:
        return (self._folder / "sprung").exists()

    def release_push(self) -> None:
        (self._folder / "released").touch()


def parse_update(text: str) -> RefUpdate:
    old, new, ref = text.split(" ")
    return RefUpdate(ref, None if old == ZERO_SHA else Sha(old), None if new == ZERO_SHA else Sha(new))
