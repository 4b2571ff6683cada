"""Puts on every answer what tells the browser to trust nothing but ourselves."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


OVER_TLS = {"strict-transport-security": "max-age=31536000"}
"""For a year, a browser that was here over https does not come over http."""


class Guard:
    def __init__(self, app: ASGIApp, *, over_tls: bool = False) -> None:
        self._app = app
        self._headers = HEADERS | (OVER_TLS if over_tls else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            await self._app(scope, receive, guarded)
        except Exception:
            if not begun:  # else the page of what went wrong is out, and the log has the rest
                raise
