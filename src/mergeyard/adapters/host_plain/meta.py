"""The data of a pull request: a small JSON object that anybody who may push can have written."""

from enum import StrEnum

import msgspec
from msgspec import Struct

LARGEST = 64 * 1024


class BadMeta(Exception):
    """This is not the data of a pull request; the words say why."""


class PullState(StrEnum):
    OPEN = "open"
    CLOSED = "closed"
    MERGED = "merged"


class Meta(Struct, frozen=True, kw_only=True):
    title: str = ""
    author: str = ""
    base: str
    branch: str = ""
    draft: bool = False
    state: PullState = PullState.OPEN


def parsed(raw: bytes) -> Meta:
    """All of it is text, also what we do not know and only write again."""
    try:
        return msgspec.json.decode(raw.decode(), type=Meta)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as trouble:
        raise BadMeta(str(trouble)) from trouble


def written(meta: Meta, upon: bytes = b"{}") -> bytes:
    """The new data, with whatever else stood in the old."""
    others = msgspec.json.decode(upon, type=dict[str, msgspec.Raw])
    try:
        raw = msgspec.json.encode(others | msgspec.to_builtins(meta))
    except UnicodeEncodeError as trouble:
        raise BadMeta("title, author and branches must be text in UTF-8") from trouble
    if len(raw) > LARGEST:
        raise BadMeta(f"title, author and the rest are {len(raw)} bytes together, and {LARGEST} is the most")
    return raw
