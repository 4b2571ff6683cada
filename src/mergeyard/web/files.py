"""Serves styles, scripts and icons: few, read once, and kept by browsers for ever if they asked for just these."""

import mimetypes
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.web.addresses import nothing_here
from mergeyard.web.shipped import FINGERPRINTS, STATIC

FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
"""The page comes from another version of the server than the file, or names no version."""


def routes() -> Sequence[Route]:
    return (Route("/static/{name:path}", serve), Route("/favicon.ico", icon))


async def serve(request: Request) -> Response:
    return _file(request.path_params["name"], request.url.query)


async def icon(_: Request) -> Response:
    return _file("icon.svg")


def _file(name: str, fingerprint: str = "") -> Response:
    if name not in STATIC:
        raise nothing_here()
    keeping = {"cache-control": FOR_EVER if fingerprint == FINGERPRINTS[name] else ASK_AGAIN}
    return Response(STATIC[name], headers=keeping, media_type=mimetypes.guess_type(name)[0] or "text/plain")
