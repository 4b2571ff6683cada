"""Reads single values with tolerance: digits for a number, any case for a word, and a name only if it is a good one."""

import re
from collections.abc import Callable, Collection
from typing import Any, cast

from msgspec import Struct

from mergeyard.api import times
from mergeyard.domain import ours
from mergeyard.domain.priorities import LOWEST, PRIORITIES
from mergeyard.domain.targets import ALL, Targets
from mergeyard.service import names
from mergeyard.service.errors import Code
from mergeyard.service.written_targets import WrittenTargets, written

TARGET_BYTES = 1024
TOGETHER = 1000
"""Targets that are gathered in one go, so that nobody else waits for many."""
DIGITS = re.compile(r"[0-9]{1,20}")
A_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
WORDS_FOR_ALL = {"all", "impacts_all"}


class Unreadable(Exception):
    """A value that cannot be taken, and where it stands, seen from the one that reads on."""

    def __init__(self, message: str, *, code: Code = Code.INVALID_REQUEST, pointer: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.pointer = pointer

    def below(self, name: str) -> "Unreadable":
        return Unreadable(self.message, code=self.code, pointer=f"/{name}{self.pointer}")


class Read(Struct, frozen=True):
    """Stands in a member's annotation and says how it is read. What it passes on, the declared type still checks."""

    read: Callable[[Any], Any]


def whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and DIGITS.fullmatch(value) else whole(value)


def priority(value: Any) -> Any:
    if not isinstance(value, str):
        return whole(value)
    if value.lower() not in PRIORITIES:
        raise Unreadable(f"expected an integer from 0 to {LOWEST}, or one of {', '.join(PRIORITIES)}")
    return PRIORITIES[value.lower()]


def sha(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if not A_SHA.fullmatch(value.lower()):
        raise Unreadable("expected a commit's full name: 40 or 64 hexadecimal digits")
    return value.lower()


def time(value: Any) -> Any:
    instant = times.read(value) if isinstance(value, str) else None
    if instant is None:
        raise Unreadable("expected a time with its offset, such as 2026-11-14T10:16:02.000Z")
    return instant


def host(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def part_of_a_repository(value: Any) -> Any:
    if isinstance(value, str) and not names.is_part_of_a_repository(value):
        raise Unreadable(
            "expected 1 to 100 of A-Z a-z 0-9 . _ -, without a leading - and neither . nor ..", code=Code.INVALID_REPO
        )
    return value


def owner_of_a_repository(value: Any) -> Any:
    if isinstance(value, str) and not names.is_owner(value):
        raise Unreadable(
            "expected 1 to 100 of A-Z a-z 0-9 . _ -, without a leading - and neither . nor .., or, where groups stand "
            f"within groups, up to {names.MOST_GROUPS} such names with a / between them",
            code=Code.INVALID_REPO,
        )
    return value


def target_branch(value: Any) -> Any:
    if isinstance(value, str) and not names.is_target_branch(value):
        raise Unreadable(
            f"expected a branch name that git takes, of at most {names.BRANCH_BYTES} bytes, not below {ours.BRANCHES}",
            code=Code.INVALID_BRANCH,
        )
    return value


def targets(value: Any) -> WrittenTargets:
    if isinstance(value, str) and value.lower() in WORDS_FOR_ALL:
        return written(ALL)
    if not isinstance(value, list):
        raise Unreadable('expected a list of target names, or "ALL"')
    targets = cast(list[Any], value)
    for at, target in enumerate(targets):
        if not isinstance(target, str) or not target or len(target.encode()) > TARGET_BYTES:
            raise Unreadable(f"expected a non-empty string of at most {TARGET_BYTES:,} bytes", pointer=f"/{at}")
    named = set[str]()
    for first in range(0, len(targets), TOGETHER):
        named.update(targets[first : first + TOGETHER])
    return written(ALL if "ALL" in named else Targets(frozenset(named)))


def required_statuses(value: Any) -> Any:
    statuses = cast(list[Any], value) if isinstance(value, list) else []
    if "" in statuses:
        raise Unreadable("expected the name of a status", pointer=f"/{statuses.index('')}")
    return cast(Any, value)


def any_case(words: Collection[str]) -> Callable[[Any], Any]:
    spelling = {word.lower(): str(word) for word in words}

    def word(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value.lower() not in spelling:
            raise Unreadable(f"expected one of {', '.join(spelling.values())}")
        return spelling[value.lower()]

    return word
