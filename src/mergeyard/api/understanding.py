"""Says what a body means: the request of an endpoint, and by what its like is known again."""

from hashlib import sha256
from json import dumps
from typing import Any, NamedTuple

from msgspec import Struct

from mergeyard.api import strict_json, tolerance


class Meaning(NamedTuple):
    request: Any
    digest: bytes | None
    """None: nobody asked for it."""


def understand(kind: type[Struct], repeatable_at: str | None, body: bytes) -> Meaning:
    """`repeatable_at` is the path of the endpoint, where a request may come again and must be known then."""
    members = strict_json.parse(body)
    return Meaning(tolerance.request(kind, members), None if repeatable_at is None else digest(repeatable_at, members))


def digest(path: str, members: dict[str, Any]) -> bytes:
    """The same for the same path and JSON, however it is spaced and ordered."""
    canonical = dumps(members, sort_keys=True, separators=(",", ":"))
    return sha256(f"{path}\n{canonical}".encode()).digest()
