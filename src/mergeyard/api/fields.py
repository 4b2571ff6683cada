"""Coerces single values of a request: digits to a number, enum values in any case, names that are checked.

A value of another type is passed through: the declared type of the member rejects it with the usual message.
"""

import re
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, cast

from msgspec import Raw, Struct, json

from mergeyard.domain import ids
from mergeyard.domain.config import LOWEST_PRIORITY, MAX_TEMPLATE_LENGTH, PRIORITIES
from mergeyard.domain.pull_requests import ALL_TARGETS, ImpactedTargets
from mergeyard.domain.timestamps import Instant
from mergeyard.service import git_names
from mergeyard.service.commit_messages import find_template_problem
from mergeyard.service.errors import Code
from mergeyard.service.impacted_targets import EncodedTargets, collect_names, encode_targets

NAIVE_EPOCH = datetime(1970, 1, 1)
EPOCH = NAIVE_EPOCH.replace(tzinfo=UTC)
TIME_PATTERN = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?([Zz]|[+-]\d\d(:?\d\d)?)", re.ASCII)


@lru_cache(maxsize=4096)
def format_time(instant: Instant) -> str:
    return (NAIVE_EPOCH + timedelta(milliseconds=instant)).isoformat(timespec="milliseconds") + "Z"


def parse_time(text: str) -> Instant | None:
    """Returns None for text that is not a time with a UTC offset; without an offset a time is ambiguous."""
    if not TIME_PATTERN.fullmatch(text):
        return None
    try:
        time = datetime.fromisoformat(text.upper())
        return Instant((time - EPOCH) // timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        return None


MAX_TARGET_BYTES = 1024
DIGITS_PATTERN = re.compile(r"[0-9]{1,20}")
FULL_SHA = re.compile(ids.SHA_PATTERN)
ALL_SPELLINGS = {"all", "impacts_all"}

_decode_names = json.Decoder(list[str] | str).decode


class InvalidValueError(Exception):
    """An invalid value. `pointer` is relative to the value being read; `nest_under` extends it on the way up."""

    def __init__(self, message: str, *, code: Code = Code.INVALID_REQUEST, pointer: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.pointer = pointer

    def nest_under(self, name: str) -> "InvalidValueError":
        return InvalidValueError(self.message, code=self.code, pointer=f"/{name}{self.pointer}")


class CoerceWith(Struct, frozen=True):
    """Annotates a member with the function that coerces its value before the declared type is checked."""

    coerce: Callable[[Any], Any]


def coerce_integer(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def coerce_number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and DIGITS_PATTERN.fullmatch(value) else coerce_integer(value)


def coerce_priority(value: Any) -> Any:
    if not isinstance(value, str):
        return coerce_integer(value)
    if value.lower() not in PRIORITIES:
        raise InvalidValueError(f"expected an integer from 0 to {LOWEST_PRIORITY}, or one of {', '.join(PRIORITIES)}")
    return PRIORITIES[value.lower()]


def coerce_sha(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if not FULL_SHA.fullmatch(value.lower()):
        raise InvalidValueError("expected a full commit SHA: 40 or 64 hexadecimal digits")
    return value.lower()


def coerce_time(value: Any) -> Any:
    instant = parse_time(value) if isinstance(value, str) else None
    if instant is None:
        raise InvalidValueError("expected a time with a UTC offset, such as 2026-11-14T10:16:02.000Z")
    return instant


def coerce_host(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _name_coercer(is_valid: Callable[[str], bool], code: Code, message: str) -> Callable[[Any], Any]:
    def coerce(value: Any) -> Any:
        if isinstance(value, str) and not is_valid(value):
            raise InvalidValueError(message, code=code)
        return value

    return coerce


NAME_RULE = "expected 1 to 100 of A-Z a-z 0-9 . _ -, not starting with - and not . or .."
coerce_repository_name = _name_coercer(git_names.is_repository_name, Code.INVALID_REPO, NAME_RULE)
coerce_owner = _name_coercer(
    git_names.is_owner,
    Code.INVALID_REPO,
    f"{NAME_RULE}, or, for nested groups, up to {git_names.MAX_OWNER_GROUPS} such names with a / between them",
)
coerce_target_branch = _name_coercer(
    git_names.is_target_branch,
    Code.INVALID_BRANCH,
    f"expected a branch name that git accepts, up to {git_names.MAX_BRANCH_BYTES} bytes, "
    f"not under {ids.TEST_BRANCH_PREFIX}",
)


def decode_impacted_targets(raw: Raw) -> EncodedTargets:
    """The list is stored as the client sent it, unless names are dropped."""
    value = _decode_names(raw)
    if isinstance(value, str):
        if value.lower() not in ALL_SPELLINGS:
            raise InvalidValueError('expected a list of target names, or "ALL"')
        return EncodedTargets(encode_targets(ALL_TARGETS), ALL_TARGETS)
    for at, target in enumerate(value):
        if "\0" in target or len(target.encode()) > MAX_TARGET_BYTES:
            message = f"expected a string of at most {MAX_TARGET_BYTES:,} bytes, without NUL characters"
            raise InvalidValueError(message, pointer=f"/{at}")
    names = collect_names(value)
    if "ALL" in names or len(names) < len(value):
        targets = ALL_TARGETS if "ALL" in names else ImpactedTargets(names)
        return EncodedTargets(encode_targets(targets), targets)
    return EncodedTargets(b"".join((b'{"names":', raw, b"}")), ImpactedTargets(names))


def coerce_required_statuses(value: Any) -> Any:
    statuses = cast(list[Any], value) if isinstance(value, list) else []
    if "" in statuses:
        raise InvalidValueError("expected the name of a check", pointer=f"/{statuses.index('')}")
    return cast(Any, value)


TEMPLATE_SCHEMA = {"type": "string", "maxLength": MAX_TEMPLATE_LENGTH}


def coerce_template(value: Any) -> Any:
    if isinstance(value, str) and (problem := find_template_problem(value)):
        raise InvalidValueError(problem)
    return value


def choice_coercer(choices: Collection[str]) -> Callable[[Any], Any]:
    spellings = {choice.lower(): str(choice) for choice in choices}

    def coerce(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value.lower() not in spellings:
            raise InvalidValueError(f"expected one of {', '.join(spellings.values())}")
        return spellings[value.lower()]

    return coerce
