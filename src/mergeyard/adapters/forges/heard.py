"""What may stand in a webhook of any forge. One in which something else stands makes no sense, and is no news."""

from typing import Annotated, TypeVar

from msgspec import DecodeError, Meta
from msgspec.json import Decoder

Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Commit = Annotated[str, Meta(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")]

T = TypeVar("T")


def read(body: bytes, decoder: Decoder[T]) -> T | None:
    try:
        return decoder.decode(body)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
