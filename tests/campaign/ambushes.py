"""Lets something happen at the host in the very moment in which a push of ours is there."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from shlex import quote

from msgspec.structs import replace

from mergeyard.domain.ids import Sha
from tests.support.host_log import HostLog, Transaction
from tests.support.repositories import Origin

HOOK = """\
while read -r old new ref; do
    if [ -f {folder}/{name}.ambush ]; then . {folder}/{name}.ambush; fi
done
"""
AMBUSH = """\
case "$ref" in {ref}*)
    rm {folder}/{name}.ambush
    message=$(git log -1 --format=%B "$new") parent=$(git rev-parse "$new^")
    unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
    export GIT_COMMITTER_NAME=Ada GIT_COMMITTER_EMAIL=ada@example.org GIT_AUTHOR_NAME=Ada GIT_AUTHOR_EMAIL=a@example.org
    {act}
esac
"""
"""What a push brings is set apart until it is accepted, and so is every git that a hook starts, unless it forgets."""


class When(StrEnum):
    """In which hook."""

    ARRIVED = "update"
    """It has arrived, and nothing has moved."""
    MOVED = "post-receive"
    """All has moved, and nobody was told."""


class Ambushes(HostLog):
    def __init__(self, origin: Origin, folder: Path) -> None:
        super().__init__(origin, folder)
        self._ambushes = folder
        for when, told in ((When.ARRIVED, 'echo "$2" "$3" "$1"'), (When.MOVED, "cat")):
            origin.hook(when, f"{told} | {{\n{HOOK.format(folder=folder, name=when)}}}\nexit 0")

    def __iter__(self) -> Iterator[Transaction]:
        """Whoever moves a ref without saying from where is written down as if it had been nowhere."""
        there = dict[str, Sha | None]()
        for transaction in super().__iter__():
            moves = tuple(replace(move, old=move.old or there.get(move.ref)) for move in transaction.moves)
            there |= {move.ref: move.new for move in moves}
            yield replace(transaction, moves=moves)

    def lay(self, when: When, ref: str, act: str) -> None:
        """When the next push moves a ref that begins so, somebody acts."""
        ambush = AMBUSH.format(ref=ref, folder=self._ambushes, name=when, act=act)
        (self._ambushes / f"{when}.ambush").write_text(ambush)

    def lift(self) -> None:
        for when in When:
            (self._ambushes / f"{when}.ambush").unlink(missing_ok=True)


def moving(*orders: str) -> str:
    """Refs are moved, in the words of `git update-ref --stdin`."""
    return f"printf '%s\\n' {' '.join(map(quote, orders))} | git update-ref --no-deref --stdin"


def forging(contents: Sha) -> str:
    """Somebody is there first, with a commit that is told in our words and holds something else."""
    return f'git update-ref "$ref" $(printf %s "$message" | git commit-tree {contents}^{{tree}} -p "$parent")'
