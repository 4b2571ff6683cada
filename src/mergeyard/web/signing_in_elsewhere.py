"""Signing in where the visitor is known already: there, and back again."""

from collections.abc import Sequence

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mergeyard.ports.identity import IdentityTrouble, NotVouchedFor
from mergeyard.service.refusal_log import RefusalKind
from mergeyard.service.vouching import Vouching
from mergeyard.web import visiting
from mergeyard.web.hall import Hall
from mergeyard.web.signing_in import local, not_in

AWAY = "/sign-in/elsewhere"
BACK = "/sign-in/back"
LUGGAGE = "mergeyard_signing_in"
SECONDS_AWAY = 600
LONGEST_ADDRESS = 1000
"""Of the page that was asked for: a browser carries little."""

log = structlog.get_logger()


class SigningInElsewhere:
    def __init__(self, hall: Hall, vouching: Vouching) -> None:
        self._hall = hall
        self._vouching = vouching

    def routes(self) -> Sequence[Route]:
        return (Route(AWAY, self.leave, methods=["GET"]), Route(BACK, self.come_back, methods=["GET"]))

    async def leave(self, request: Request) -> Response:
        asked = request.query_params.get("next", "/")
        there = local(asked) if len(asked) <= LONGEST_ADDRESS else "/"
        try:
            departure = await self._vouching.send_away(there)
        except IdentityTrouble as trouble:
            return self._not_in(request, trouble)
        response = RedirectResponse(departure.address, 303)
        response.set_cookie(
            LUGGAGE,
            departure.luggage,
            max_age=SECONDS_AWAY,
            path=BACK,
            httponly=True,
            samesite="lax",
            secure=self._hall.over_tls,
        )
        return response

    async def come_back(self, request: Request) -> Response:
        try:
            welcome = await self._vouching.take_in(request.query_params, request.cookies.get(LUGGAGE, ""))
        except (IdentityTrouble, NotVouchedFor) as trouble:
            response = self._not_in(request, trouble)
        else:
            log.info("signed_in", name=welcome.name, by=self._vouching.label)
            response = RedirectResponse(welcome.there, 303)
            visiting.welcome(response, welcome.secret, over_tls=self._hall.over_tls)
        response.delete_cookie(LUGGAGE, path=BACK)
        return response

    def _not_in(self, request: Request, trouble: IdentityTrouble | NotVouchedFor) -> Response:
        refused = isinstance(trouble, NotVouchedFor)
        cause = str(trouble) if refused else trouble.detail
        self._hall.record_refusal(RefusalKind.SIGN_IN_FAILED, request, by=self._vouching.label, cause=cause)
        if refused:
            return not_in(self._hall, request, 403, str(trouble))
        return not_in(self._hall, request, 503, str(trouble))
