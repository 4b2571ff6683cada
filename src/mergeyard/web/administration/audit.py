"""The audit log: who did what, when, to which queue or to the installation itself."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.domain.tokens import Scope
from mergeyard.service.auditing import Audited, Auditing
from mergeyard.service.errors import Refused
from mergeyard.web.addresses import queue_name
from mergeyard.web.administration.audit_filter import Filter
from mergeyard.web.administration.audit_words import KINDS, line_of
from mergeyard.web.hall import Hall
from mergeyard.web.visiting import Visitor

PAGE = "/administration/audit"
SHOWN = 50


class AuditLog:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self._auditing = Auditing(hall.service.store)

    def routes(self) -> Sequence[Route]:
        return (Route(PAGE, self.show, methods=["GET"]),)

    async def show(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        asked, before = Filter.in_address(request.query_params), request.query_params.get("before", "")
        try:
            page = asked.understood(self._hall.service.sites, SHOWN, before)
        except Refused as refused:
            return await self._page(request, visitor, asked, ((), None), refused.detail)
        return await self._page(request, visitor, asked, await self._auditing.page(visitor.token, page))

    async def _page(
        self,
        request: Request,
        visitor: Visitor,
        asked: Filter,
        found: tuple[Sequence[Audited], int | None],
        trouble: str = "",
    ) -> Response:
        entries, more = found
        keepers = await self._hall.service.yard.seen_by(visitor.token)
        return self._hall.form(
            request,
            "administration/audit.html",
            visitor,
            trouble,
            asked=asked,
            lines=[line_of(entry) for entry in entries],
            older=None if more is None else f"{PAGE}?{asked.address(before=str(more))}",
            newest=f"{PAGE}?{asked.address()}" if "before" in request.query_params else None,
            trouble=trouble,
            kinds=KINDS,
            queues=sorted(queue_name(keeper.key) for keeper in keepers),
        )
