"""Reads what somebody filled in: bounded in size and time, and only from our own pages."""

import asyncio
import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from mergeyard.service.errors import Code, Refused
from mergeyard.web.visiting import FIELD, Visitor

MOST_BYTES = 256 * 1024
MOST_FIELDS = 200
SECONDS = 10.0
AGAIN = "Reload the page and try again."


class Form:
    """The fields of a form, with what stands in each, trimmed."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        self._fields = [(name, value.strip()) for name, value in fields]

    def get(self, name: str) -> str:
        return next((value for field, value in self._fields if field == name), "")

    def all(self, name: str) -> list[str]:
        return [value for field, value in self._fields if field == name and value]

    def __contains__(self, name: str) -> bool:
        return any(field == name for field, _ in self._fields)

    def values(self) -> Mapping[str, str]:
        return dict(self._fields)


async def filled_in(request: Request) -> Form:
    """Of somebody who is not signed in yet; the browser says that it came from our own page."""
    if not _is_ours(request):
        raise Refused(Code.INVALID_REQUEST, f"This form was sent from another site. {AGAIN}")
    try:
        fields = parse_qsl((await _body(request)).decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Refused(Code.INVALID_REQUEST, f"The form is not readable. {AGAIN}") from None
    if any("\0" in value for _, value in fields):
        raise Refused(Code.INVALID_STRING, "A field holds a character that no text has. Type it again.")
    return Form(fields)


async def filled_in_by(visitor: Visitor, request: Request) -> Form:
    form = await filled_in(request)
    if not hmac.compare_digest(form.get(FIELD).encode(), visitor.csrf.encode()):
        raise Refused(Code.INVALID_REQUEST, f"This form belongs to an older visit. {AGAIN}")
    return form


def _is_ours(request: Request) -> bool:
    """Over plain http browsers tell only the origin; who tells nothing is no browser, and nobody makes them send it."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site in ("same-origin", "none")
    return origin is None or origin.partition("://")[2] == request.headers.get("host")


async def _body(request: Request) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > MOST_BYTES:
                    raise Refused(Code.BODY_TOO_LARGE, "The form is too large. Fill in less.")
    except (TimeoutError, ClientDisconnect):
        raise Refused(Code.REQUEST_TIMEOUT, f"The form did not arrive. {AGAIN}") from None
    return bytes(body)
