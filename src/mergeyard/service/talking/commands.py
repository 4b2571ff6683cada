"""Reads what somebody asks for in a comment: `/merge`, `/merge cancel`, `/merge restart` or `/merge status`.

GitLab takes `/merge` for itself, so `!merge` means the same everywhere.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain import priorities
from mergeyard.domain.ids import Sha

WORDS = ("/merge", "!merge")
A_COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
"""The whole of it: anybody can make a commit that begins like another."""


class Verb(StrEnum):
    SUBMIT = "submit"
    CANCEL = "cancel"
    RESTART = "restart"
    STATUS = "status"


class Command(Struct, frozen=True, kw_only=True):
    verb: Verb
    head: Sha | None = None
    """The one that they mean."""
    priority: int | None = None
    no_batch: bool | None = None
    forced: bool | None = None


class Misunderstood(Struct, frozen=True):
    """Somebody asked for something that we do not know."""

    word: str


OTHER_VERBS = (Verb.CANCEL, Verb.RESTART, Verb.STATUS)

Option = Callable[[Command, Iterator[str]], Command | Misunderstood]


def read(text: str) -> Command | Misunderstood | None:
    """Only the first line counts; None when it asks us for nothing."""
    words = text.strip().partition("\n")[0].split()
    if not words or words[0] not in WORDS:
        return None
    if words[1:] and words[1] in OTHER_VERBS:
        return Command(verb=Verb(words[1])) if len(words) == 2 else Misunderstood(words[2])
    return _submission(words[1:])


def _submission(words: Sequence[str]) -> Command | Misunderstood:
    command, rest = Command(verb=Verb.SUBMIT), iter(words)
    for word in rest:
        if A_COMMIT.fullmatch(word):
            command = replace(command, head=Sha(word))
            continue
        name, equals, value = word.partition("=")
        option = OPTIONS.get(name)
        if option is None:
            return Misunderstood(word)
        changed = option(command, iter([value]) if equals else rest)
        if isinstance(changed, Misunderstood):
            return changed
        command = changed
    return command


def _priority(command: Command, rest: Iterator[str]) -> Command | Misunderstood:
    word = next(rest, "")
    priority = priorities.named(word)
    return Misunderstood(word or "--priority") if priority is None else replace(command, priority=priority)


OPTIONS: dict[str, Option] = {
    "--priority": _priority,
    "--no-batch": lambda command, _: replace(command, no_batch=True),
    "--force": lambda command, _: replace(command, forced=True),
}
