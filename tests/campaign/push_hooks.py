"""Hooks that change refs on the Git host in the middle of a push by the service."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from shlex import quote

from msgspec.structs import replace

from mergeyard.domain.ids import Sha
from tests.support.host_log import HEADS_HOOK, HostLog, Transaction
from tests.support.repositories import Origin

HOOK = """\
while read -r old new ref; do
    if [ -f {folder}/{name}.script ]; then . {folder}/{name}.script; fi
done
"""
SCRIPT = """\
case "$ref" in {ref}*)
    rm {folder}/{name}.script
    message=$(git log -1 --format=%B "$new") parent=$(git rev-parse "$new^")
    unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
    export GIT_COMMITTER_NAME=Ada GIT_COMMITTER_EMAIL=ada@example.org GIT_AUTHOR_NAME=Ada GIT_AUTHOR_EMAIL=a@example.org
    {act}
esac
"""
"""Objects of a push are quarantined until it is accepted, and so is every git process of a hook unless these variables
are unset."""


class PushMoment(StrEnum):
    """The moment of a push, as the name of the hook that runs then."""

    RECEIVED = "update"
    """The push was received, and no ref has moved."""
    APPLIED = "post-receive"
    """All refs have moved, and the service has no answer yet."""


class PushHooks(HostLog):
    def __init__(self, origin: Origin, folder: Path, *, heads_follow: bool = False) -> None:
        """`heads_follow`: the heads of pull requests follow their branches, as on a forge."""
        super().__init__(origin, folder)
        self._scripts = folder
        received, applied = (HOOK.format(folder=folder, name=when) for when in PushMoment)
        follow = f"printf '%s\\n' \"$moves\" | (\n{HEADS_HOOK})" if heads_follow else ""
        origin.install_hook(PushMoment.RECEIVED, f'echo "$2" "$3" "$1" | {{\n{received}}}\nexit 0')
        origin.install_hook(
            PushMoment.APPLIED, f"moves=$(cat)\n{follow}\nprintf '%s\\n' \"$moves\" | {{\n{applied}}}\nexit 0"
        )

    def __iter__(self) -> Iterator[Transaction]:
        """An update without an old value is logged as if the ref had not existed: fills in the value that it had."""
        tips = dict[str, Sha | None]()
        for transaction in super().__iter__():
            moves = tuple(replace(move, old=move.old or tips.get(move.ref)) for move in transaction.updates)
            tips |= {move.ref: move.new for move in moves}
            yield replace(transaction, updates=moves)

    def arm(self, when: PushMoment, ref: str, command: str) -> None:
        """Runs a command when the next push moves a ref with this prefix."""
        script = SCRIPT.format(ref=ref, folder=self._scripts, name=when, act=command)
        (self._scripts / f"{when}.script").write_text(script)

    def disarm(self) -> None:
        for when in PushMoment:
            (self._scripts / f"{when}.script").unlink(missing_ok=True)


def update_refs_command(*orders: str) -> str:
    """A command that moves refs, in the syntax of `git update-ref --stdin`."""
    return f"printf '%s\\n' {' '.join(map(quote, orders))} | git update-ref --no-deref --stdin"


def forge_commit_command(contents: Sha) -> str:
    """A command that creates the ref first, with a commit that has our message and other contents."""
    return f'git update-ref "$ref" $(printf %s "$message" | git commit-tree {contents}^{{tree}} -p "$parent")'
