"""Reads JSON as the contract wants it: no doubled key, no depth or breadth that only an attack has, no broken text."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from json import JSONDecoder
from typing import Any, NoReturn, cast

from mergeyard.api import patient_json
from mergeyard.api.errors import ApiError, misfit
from mergeyard.service.errors import Code

DEPTH = 32
CONTAINERS = 10_000
MEMBERS = 100_000
DIGITS = 1_000
LARGE = 256 * 1024
PIECE = 64 * 1024

# Possessive, and a string without end reaches to the end: one pass, and not one for each of its characters.
STRING_OR_BRACKET = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
DIGITS_ALIKE = bytes.maketrans(b"123456789", b"0" * 9)
MANY_DIGITS = b"0" * (DIGITS + 1)
SUSPICIOUS_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
BYTES_OF_ESCAPE = 6


def parse(body: bytes) -> dict[str, Any]:
    value = _decoded(body)
    if not isinstance(value, dict):
        raise misfit("", "expected a JSON object")
    return cast(dict[str, Any], value)


def _decoded(body: bytes) -> Any:
    _refuse_bombs(body)
    decoder = CAREFUL_WITH_NUMBERS if _has_many_digits(body) else DECODER
    try:
        value = _patiently(decoder, body.decode()) if len(body) > LARGE else decoder.decode(body.decode())
    except ValueError as broken:
        raise ApiError(Code.INVALID_JSON, f"The body is not JSON in UTF-8 ({broken}): send one JSON object.") from None
    if any(map(SUSPICIOUS_ESCAPE.search, _pieces(body, BYTES_OF_ESCAPE))):
        _refuse_broken_text(value)
    return value


def _patiently(decoder: JSONDecoder, text: str) -> Any:
    try:
        return _object(patient_json.members(decoder, text))
    except patient_json.Irregular:
        return decoder.decode(text)


def _pieces(body: bytes, longest: int) -> Iterable[bytes]:
    """So that others are served in between; what is searched for and has at most so many bytes is whole in one."""
    if len(body) <= PIECE:
        return (body,)
    return (body[first : first + PIECE + longest - 1] for first in range(0, len(body), PIECE))


def _refuse_bombs(body: bytes) -> None:
    """Before anything is built. Few brackets cannot nest deep; of many, those inside strings do not count."""
    if sum(piece.count(b"[") + piece.count(b"{") for piece in _pieces(body, 1)) <= DEPTH:
        return
    depth = containers = 0
    for token in STRING_OR_BRACKET.finditer(body):
        match body[token.start()]:
            case 0x5B | 0x7B:
                depth += 1
                containers += 1
                if depth > DEPTH:
                    raise ApiError(Code.JSON_TOO_DEEP, f"The body is nested deeper than {DEPTH}: send a flatter one.")
                if containers > CONTAINERS:
                    raise _too_complex(f"more than {CONTAINERS:,} lists and objects")
            case 0x5D | 0x7D:
                depth -= 1
                if depth <= 0:
                    return  # Whatever follows the outermost value is refused unread.
            case _:
                pass


def _has_many_digits(body: bytes) -> bool:
    """Searched as text: an expression takes half a second for 20 MiB."""
    if len(body) <= DIGITS:
        return False
    return any(MANY_DIGITS in piece.translate(DIGITS_ALIKE) for piece in _pieces(body, len(MANY_DIGITS)))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MEMBERS:
        raise _too_complex(f"an object of more than {MEMBERS:,} members")
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    doubled, _ = Counter(name for name, _ in pairs).most_common(1)[0]
    raise ApiError(Code.DUPLICATE_KEY, f"The key {doubled[:100]!a} stands twice in one object: keep one of them.")


def _too_complex(what: str) -> ApiError:
    return ApiError(Code.JSON_TOO_COMPLEX, f"The body holds {what}: send less at once.")


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _integer(digits: str) -> int:
    if len(digits) > DIGITS:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


def _refuse_broken_text(value: Any) -> None:
    for text in _texts(value):
        if "\0" in text or not _has_utf8(text):
            words = "A string holds a NUL or half of a surrogate pair"
            raise ApiError(Code.INVALID_STRING, f"{words} ({text[:100]!a}): send plain Unicode text.")


def _has_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast(list[Any], value):
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in cast(dict[str, Any], value).items():
            yield key
            yield from _texts(item)


DECODER = JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant)
CAREFUL_WITH_NUMBERS = JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant, parse_int=_integer)
