"""What stands above the body: the headers that the door looks at, counted and checked once."""

import re
from collections.abc import Iterable
from random import getrandbits

from msgspec import Struct

from mergeyard.api.errors import ApiError, misfit
from mergeyard.service.errors import Code

ADDRESS_BYTES = 8 * 1024
HEADER_BYTES = 64 * 1024
A_REQUEST_ID = re.compile(rb"[\x20-\x7e]{1,128}")
AN_IDEMPOTENCY_KEY = re.compile(rb"[\x20-\x7e]{1,255}")


class Head(Struct, frozen=True):
    values: dict[bytes, bytes]
    doubled: frozenset[bytes]
    """Headers that stand more than once: for those that decide something, none of them counts."""
    size: int
    request_id: str
    query: bytes
    path: str = ""
    client: str = ""
    """The address of the client, as the server knows it behind its trusted proxies."""

    def get(self, name: bytes) -> bytes:
        return self.values.get(name, b"")

    @property
    def accept(self) -> bytes:
        return self.get(b"accept")


NONE_DOUBLED = frozenset[bytes]()


def read(headers: Iterable[tuple[bytes, bytes]], query: bytes, path: str = "", client: str = "") -> Head:
    values: dict[bytes, bytes] = {}
    doubled: set[bytes] = set()
    size = 0
    for name, value in headers:
        if name in values:
            doubled.add(name)
        values[name] = value
        size += len(name) + len(value) + 4
    twice = frozenset(doubled) if doubled else NONE_DOUBLED
    return Head(values, twice, size, _request_id(values, doubled), query, path, client)


def _request_id(values: dict[bytes, bytes], doubled: set[bytes]) -> str:
    given = values.get(b"x-request-id", b"")
    if A_REQUEST_ID.fullmatch(given) and b"x-request-id" not in doubled:
        return given.decode()
    return new_request_id()


def new_request_id() -> str:
    """It names, and protects nothing: so the system need not be asked for what nobody can guess."""
    return f"{getrandbits(128):032x}"


def refuse_too_much(head: Head, path: bytes) -> None:
    if len(path) + len(head.query) > ADDRESS_BYTES:
        raise address_too_long()
    if head.size > HEADER_BYTES:
        raise headers_too_large()


def address_too_long() -> ApiError:
    return ApiError(Code.URI_TOO_LONG, f"The address has more than {ADDRESS_BYTES:,} bytes: ask with a body instead.")


def headers_too_large() -> ApiError:
    return ApiError(Code.HEADERS_TOO_LARGE, f"The headers have more than {HEADER_BYTES:,} bytes: send fewer of them.")


def head_too_slow() -> ApiError:
    return ApiError(Code.REQUEST_TIMEOUT, "The headers did not come in time: send the request again, all at once.")


def too_many_connections() -> ApiError:
    return ApiError(
        Code.RATE_LIMITED, "Too many connections are open: close those you do not need, and ask again soon."
    )


def refuse_other_media(head: Head) -> None:
    media = head.get(b"content-type").partition(b";")[0].strip().lower()
    if media != b"application/json" or b"content-type" in head.doubled:
        raise ApiError(Code.UNSUPPORTED_MEDIA_TYPE, "Send the body as `Content-Type: application/json`.")
    if b"content-encoding" in head.values:
        raise ApiError(Code.UNSUPPORTED_MEDIA_TYPE, "Send the body as it is, without a Content-Encoding.")


def idempotency_key(head: Head) -> str | None:
    key = head.values.get(b"idempotency-key")
    if key is None:
        return None
    if not AN_IDEMPOTENCY_KEY.fullmatch(key) or b"idempotency-key" in head.doubled:
        raise misfit("", "the header Idempotency-Key must stand once, with 1 to 255 printable ASCII characters")
    return key.decode()
