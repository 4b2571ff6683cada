"""The hall that every page is reached through: who visits, what they may see, and how a page is drawn."""

from collections.abc import Sized

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.tokens import Scope, Token
from mergeyard.service.refusal_log import RefusalKind
from mergeyard.service.service import Service
from mergeyard.service.yard import queue_not_found
from mergeyard.web import addresses, drawing, visiting
from mergeyard.web.visiting import Visitor

UNPROCESSABLE = 422


class Hall:
    def __init__(self, service: Service, elsewhere: str | None = None, *, over_tls: bool = False) -> None:
        """`elsewhere` is where people may sign in instead, if there is such a place; `over_tls`: browsers reach us that
        way, and keep what they get for nothing else."""
        self.service = service
        self.elsewhere = elsewhere
        self.over_tls = over_tls

    async def visitor(self, request: Request, scope: Scope = Scope.READ) -> Visitor:
        visitor = await visiting.visitor(request, self.service.sessions, over_tls=self.over_tls)
        visitor.must(scope)
        return visitor

    def record_refusal(self, kind: RefusalKind, request: Request, token: Token | None = None, **fields: str) -> None:
        request_id = request.headers.get("x-request-id", "")
        address = visiting.client_address(request)
        self.service.refusals.record(kind, address, token, path=request.url.path, request_id=request_id, **fields)

    def queue(self, visitor: Visitor, name: str) -> QueueKey:
        """The queue of this name, if the visitor may see its repository."""
        named = addresses.queue_named(name)
        key = QueueKey(self.service.sites.repo(named.repo, visitor.token), named.branch)
        if not visitor.token.sees(key.repo):
            raise queue_not_found(key)
        return key

    def page(self, request: Request, template: str, visitor: Visitor | None = None, **context: object) -> HTMLResponse:
        return self.answer(request, template, 200, visitor=visitor, **context)

    def form(
        self, request: Request, template: str, visitor: Visitor, troubles: Sized, /, **context: object
    ) -> HTMLResponse:
        """To be filled in, and once more as long as there is trouble with it."""
        return self.answer(request, template, UNPROCESSABLE if troubles else 200, visitor=visitor, **context)

    def answer(self, request: Request, template: str, status: int, **context: object) -> HTMLResponse:
        here, now = addresses.here(request.scope), self.service.clock.now()
        return HTMLResponse(drawing.draw(template, path=request.url.path, here=here, now=now, **context), status)

    def done(self, request: Request, words: str, there: str) -> Response:
        """After an action: whoever stays on the page is told there, and everybody else is led on."""
        if "hx-request" in request.headers:
            return self.page(request, "said.html", words=words)
        return RedirectResponse(there, 303)
