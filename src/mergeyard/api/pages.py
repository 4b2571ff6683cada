"""Routes outside `/v1`: output of local checks, the API documentation, and incoming forge webhooks.

A program with an API token gets the text. A browser, which sends no API token, is redirected to the page of the output.
"""

import re
from collections.abc import Mapping
from importlib.resources import files
from urllib.parse import quote

from mergeyard.api import auth
from mergeyard.api.endpoint import AccessControl
from mergeyard.api.request_body import BodyReader, RequestBody, RequestHead, Route
from mergeyard.api.responses import Reply
from mergeyard.domain.access import Scope, Token
from mergeyard.domain.ids import RunId
from mergeyard.service.audit_log import RefusalKind, RefusalLog
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.forge_events import ForgeEventDispatcher
from mergeyard.service.service import Service

SECURITY_HEADERS = (
    (b"content-security-policy", b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
DOCS_FILES = {
    "/docs": ("docs.html", b"text/html; charset=utf-8"),
    "/docs/docs.css": ("docs.css", b"text/css; charset=utf-8"),
    "/docs/docs.js": ("docs.js", b"text/javascript; charset=utf-8"),
    "/docs/render.js": ("render.js", b"text/javascript; charset=utf-8"),
    "/docs/icon.svg": ("icon.svg", b"image/svg+xml"),
}


def build_docs_routes() -> Mapping[str, Route]:
    return {path: serve_static(_read(name), content_type) for path, (name, content_type) in DOCS_FILES.items()}


def serve_static(content: bytes, content_type: bytes) -> Route:
    reply = Reply(content, content_type=content_type, headers=SECURITY_HEADERS)

    async def route(_: RequestHead, __: RequestBody) -> Reply:
        return reply

    return route


def _read(name: str) -> bytes:
    return files("mergeyard.api").joinpath("static", name).read_bytes()


CHECK_OUTPUT_PATH = re.compile(r"/runs/([0-9a-f-]{36})/checks/(.+)", re.DOTALL)
TEXT = b"text/plain; charset=utf-8"


class CheckOutput:
    def __init__(self, service: Service, access: AccessControl) -> None:
        self._service = service
        self._access = access

    def find_route(self, path: str) -> Mapping[str, Route] | None:
        match = CHECK_OUTPUT_PATH.fullmatch(path)
        return None if match is None else {"GET": self._route(RunId(match[1]), match[2])}

    def _route(self, run: RunId, check: str) -> Route:
        async def route(request_head: RequestHead, _: RequestBody) -> Reply:
            if _is_browser(request_head):
                page = f"/runs/{run}/output/{quote(check, safe='')}"
                return Reply(b"", status=303, content_type=TEXT, headers=((b"location", page.encode()),))
            token = await auth.authenticate(self._access, request_head)
            with auth.log_missing_scope(self._access, token, request_head):
                auth.require_scope(token, Scope.READ)
            return Reply(await self._read_output(token, run, check), content_type=TEXT, headers=SECURITY_HEADERS)

        return route

    async def _read_output(self, token: Token, run: RunId, check: str) -> bytes:
        found = await self._service.runs.find_by_id(run, token)
        output = None if found is None else await self._service.runner.output(run, check)
        if output is None:
            detail = "There is no output for this check: see `statusChecks` of the test run for its checks."
            raise RequestRefused(Code.TEST_RUN_NOT_FOUND, detail)
        return output


def _is_browser(request_head: RequestHead) -> bool:
    return not request_head.get(auth.TOKEN_HEADER) and b"text/html" in request_head.accept.lower()


WEBHOOK_PATH = re.compile(r"/hooks/([a-z]{1,20})/([a-z0-9.:-]{1,260})")


class ForgeWebhooks:
    def __init__(
        self, dispatcher: ForgeEventDispatcher, refusals: RefusalLog, body_reader: BodyReader | None = None
    ) -> None:
        self._dispatcher = dispatcher
        self._refusals = refusals
        self._body_reader = body_reader or BodyReader()

    def find_route(self, path: str) -> Mapping[str, Route] | None:
        match = WEBHOOK_PATH.fullmatch(path)
        return None if match is None else {"POST": self._route(match[1], match[2])}

    def _route(self, provider: str, host: str) -> Route:
        async def route(request_head: RequestHead, body: RequestBody) -> Reply:
            # A repeated header is dropped: the signature must not be ambiguous.
            headers = {
                name.decode("latin-1"): value.decode("latin-1")
                for name, value in request_head.values.items()
                if name not in request_head.repeated
            }
            parse = self._dispatcher.build_parser(provider, host)
            try:
                notices = await self._body_reader.read(body, lambda raw: parse(headers, raw))
            except RequestRefused as refused:
                self._record(refused, request_head, provider, host)
                raise
            self._dispatcher.dispatch(notices)
            return Reply(b'{"accepted":true}', 202)

        return route

    def _record(self, refused: RequestRefused, request_head: RequestHead, provider: str, host: str) -> None:
        if refused.code is Code.INVALID_TOKEN:
            self._refusals.record(
                RefusalKind.WEBHOOK_SIGNATURE_INVALID,
                request_head.client,
                path=request_head.path,
                request_id=request_head.request_id,
                provider=provider,
                host=host,
                cause=str(refused.__cause__),
            )
