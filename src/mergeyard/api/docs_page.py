"""The page that shows the API to people: our own few files, and nothing from another host."""

from collections.abc import Mapping
from importlib.resources import files

from mergeyard.api.head import Head
from mergeyard.api.receiving import Body
from mergeyard.api.reply import Reply
from mergeyard.api.serving import Route

GUARDED = (
    (b"content-security-policy", b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
FILES = {
    "/docs": ("docs.html", b"text/html; charset=utf-8"),
    "/docs/docs.css": ("docs.css", b"text/css; charset=utf-8"),
    "/docs/docs.js": ("docs.js", b"text/javascript; charset=utf-8"),
    "/docs/render.js": ("render.js", b"text/javascript; charset=utf-8"),
    "/docs/icon.svg": ("icon.svg", b"image/svg+xml"),
}


def routes() -> Mapping[str, Route]:
    return {path: shown(_read(name), content_type) for path, (name, content_type) in FILES.items()}


def shown(content: bytes, content_type: bytes) -> Route:
    reply = Reply(content, content_type=content_type, headers=GUARDED)

    async def route(_: Head, __: Body) -> Reply:
        return reply

    return route


def _read(name: str) -> bytes:
    return files("mergeyard.api").joinpath("static", name).read_bytes()
