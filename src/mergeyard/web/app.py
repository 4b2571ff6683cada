"""The pages as one application: which there are, and what is shown when one cannot be."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from urllib.parse import quote

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from mergeyard.ports.git import GitTrouble
from mergeyard.ports.host import HostTrouble
from mergeyard.ports.store import StoreTrouble
from mergeyard.service.errors import Code, Refused
from mergeyard.service.refusal_log import RefusalKind
from mergeyard.service.service import Service
from mergeyard.service.vouching import Vouching
from mergeyard.web import addresses, files
from mergeyard.web.actions import Actions
from mergeyard.web.administration import entrance as administration
from mergeyard.web.founding import Founding
from mergeyard.web.guarding import Guard
from mergeyard.web.hall import Hall
from mergeyard.web.health.page import HealthPage
from mergeyard.web.live import LivePages
from mergeyard.web.preparing import Prepared
from mergeyard.web.pulls.page import PullPage
from mergeyard.web.queue import QueuePage
from mergeyard.web.queues import QueuesPage
from mergeyard.web.refusing import refused_in_words
from mergeyard.web.runs.output import CheckOutputPage
from mergeyard.web.runs.page import RunPage
from mergeyard.web.settings import SettingsPage
from mergeyard.web.signing_in import SigningIn
from mergeyard.web.signing_in_elsewhere import SigningInElsewhere
from mergeyard.web.visiting import Forbidden, SignInNeeded
from mergeyard.web.whatif.page import WhatIfPage

log = structlog.get_logger()

SAID_IN_PLACE = {"hx-retarget": "#said", "hx-reswap": "innerHTML", "hx-reselect": ".said"}
"""A page that cannot fetch itself anew stays as it was, and says so."""

Handler = Callable[[Request, Exception], Awaitable[Response]]


def application(service: Service, vouching: Vouching | None = None, *, over_tls: bool = False) -> ASGIApp:
    """`vouching` lets people in whom somebody else knows."""
    hall = Hall(service, vouching.label if vouching else None, over_tls=over_tls)
    rooms = (
        QueuesPage(hall),
        Founding(hall),
        QueuePage(hall),
        SettingsPage(hall),
        PullPage(hall),
        RunPage(hall),
        CheckOutputPage(hall),
        Actions(hall),
        HealthPage(hall),
        WhatIfPage(hall),
        *administration.rooms(hall),
        SigningIn(hall),
        LivePages(hall),
    )
    elsewhere = () if vouching is None else SigningInElsewhere(hall, vouching).routes()
    routes = [*elsewhere, *(route for room in rooms for route in room.routes())]
    return Guard(
        Prepared(Starlette(routes=[*routes, *files.routes()], exception_handlers=_refusals(hall))), over_tls=over_tls
    )


def _refusals(hall: Hall) -> dict[type[Exception], Handler]:
    async def lead_to_sign_in(request: Request, _: Exception) -> Response:
        """A page that fetches itself anew is led there as a whole."""
        there = quote(addresses.here(request.scope), safe="")
        sign_in = "/sign-in" if request.method != "GET" else f"/sign-in?next={there}"
        if "hx-request" in request.headers:
            return Response(status_code=204, headers={"hx-redirect": sign_in})
        return RedirectResponse(sign_in, 303)

    async def refuse(request: Request, trouble: Exception) -> Response:
        words = refused_in_words(trouble)
        if words.code is Code.INTERNAL_ERROR:
            log.error("page_failed", path=request.url.path, request_id=words.request_id, exc_info=trouble)
        visitor = None
        with suppress(SignInNeeded, Forbidden, StoreTrouble):
            visitor = await hall.visitor(request)
        if words.code is Code.INSUFFICIENT_SCOPE:
            hall.record_refusal(RefusalKind.SCOPE_MISSING, request, visitor and visitor.token)
        in_place = "hx-request" in request.headers
        template = "said.html" if in_place else "refused.html"
        answer = hall.answer(request, template, words.status, visitor=visitor, refused=words, words="")
        answer.headers.update(SAID_IN_PLACE if in_place else {})
        return answer

    return {
        SignInNeeded: lead_to_sign_in,
        **dict.fromkeys((Forbidden, Refused, HTTPException, StoreTrouble, HostTrouble, GitTrouble), refuse),
        Exception: refuse,
    }
