"""Decodes a large JSON object member by member, and its lists item by item.

A decoder that is given all of it at once serves nobody else until it is done, on whichever thread it works.
"""

from json import JSONDecoder
from typing import Any

BLANK = " \t\n\r"


class Irregular(Exception):
    """Not the shape of an object: whoever decodes all of it at once can say what is wrong."""


def members(decoder: JSONDecoder, text: str) -> list[tuple[str, Any]]:
    """In their order, also those that stand twice."""
    try:
        return _members(decoder, text)
    except (ValueError, IndexError):
        raise Irregular from None


def _members(decoder: JSONDecoder, text: str) -> list[tuple[str, Any]]:
    found, at = list[tuple[str, Any]](), _past(text, "{", _next(text, 0))
    while True:
        name, at = decoder.raw_decode(text, at)
        if not isinstance(name, str):
            raise Irregular
        value, at = _value(decoder, text, _past(text, ":", _next(text, at)))
        found.append((name, value))
        at = _next(text, at)
        if text[at] != ",":
            break
        at = _next(text, at + 1)
    if _past(text, "}", at) != len(text):
        raise Irregular
    return found


def _value(decoder: JSONDecoder, text: str, at: int) -> tuple[Any, int]:
    if text[at] != "[":
        return decoder.raw_decode(text, at)
    items, at = list[Any](), _next(text, at + 1)
    if text[at] == "]":
        return items, at + 1
    while True:
        item, at = decoder.raw_decode(text, at)
        items.append(item)
        if text[at] != ",":
            at = _next(text, at)
        if text[at] != ",":
            return items, _past(text, "]", at)
        at = _next(text, at + 1)


def _past(text: str, mark: str, at: int) -> int:
    if text[at] != mark:
        raise Irregular
    return _next(text, at + 1)


def _next(text: str, at: int) -> int:
    """Where something stands again; the end when nothing does."""
    while at < len(text) and text[at] in BLANK:
        at += 1
    return at
