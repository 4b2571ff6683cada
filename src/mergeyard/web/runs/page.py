"""The page of one run: what it tests upon what, how far it is, and what was reported of it."""

import re
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.domain.ids import RunId
from mergeyard.domain.runs import Run
from mergeyard.service.errors import Code, Refused
from mergeyard.service.naming_branches import BISECTION
from mergeyard.service.turn import Keeper
from mergeyard.web.hall import Hall
from mergeyard.web.runs.shown import shown
from mergeyard.web.visiting import Visitor

A_RUN = re.compile(r"[0-9a-f-]{36}")


class RunPage:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self._service = hall.service

    def routes(self) -> Sequence[Route]:
        return (Route("/runs/{run}", self.show),)

    async def show(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request)
        keeper, run = await find(self._hall, visitor, request.path_params["run"])
        view = await self._service.runs.show(keeper.key, run.id)
        source = self._service.sites.host(keeper.key.repo.host).checks_from
        page = shown(keeper.key, keeper.queue, view, source, self._service.clock.now())
        return self._hall.page(request, "run.html", visitor, shown=page)


async def find(hall: Hall, visitor: Visitor, name: str) -> tuple[Keeper, Run]:
    """Among the runs of all repositories that the visitor may see."""
    name = name.removesuffix(BISECTION)
    found = await hall.service.runs.find_by_id(RunId(name), visitor.token) if A_RUN.fullmatch(name) else None
    if found is None or found[1].started_at is None:
        words = "There is no such test run, or none that you may see. A pull request's page lists those it was in."
        raise Refused(Code.TEST_RUN_NOT_FOUND, words)
    return found
