"""Signing in with an API token, and out again."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mergeyard.service.errors import Refused
from mergeyard.service.refusal_log import RefusalKind
from mergeyard.web import visiting
from mergeyard.web.forms import filled_in, filled_in_by
from mergeyard.web.hall import Hall

UNKNOWN = "This token is unknown, revoked or expired. Check that you copied all of it, or ask for another."


class SigningIn:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    def routes(self) -> Sequence[Route]:
        return (
            Route("/sign-in", self.ask, methods=["GET"]),
            Route("/sign-in", self.sign_in, methods=["POST"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
        )

    async def ask(self, request: Request) -> Response:
        there = local(request.query_params.get("next", "/"))
        return self._hall.page(request, "sign_in.html", there=there, elsewhere=self._hall.elsewhere)

    async def sign_in(self, request: Request) -> Response:
        form = await filled_in(request)
        there, given = local(form.get("next")), form.get("token").encode()
        token = await self._hall.service.tokens.find(given)
        try:
            secret = await self._hall.service.sessions.sign_in(given)
        except Refused as refused:
            self._hall.record_refusal(RefusalKind.SIGN_IN_FAILED, request, token)
            return not_in(self._hall, request, 403, refused.detail, there)
        if secret is None or token is None:
            if given:
                self._hall.record_refusal(RefusalKind.SIGN_IN_FAILED, request, token)
            return not_in(self._hall, request, 401, UNKNOWN, there)
        self._hall.service.token_uses.record(token, visiting.client_address(request))
        response = RedirectResponse(there, 303)
        visiting.welcome(response, secret, over_tls=self._hall.over_tls)
        return response

    async def sign_out(self, request: Request) -> Response:
        """Whoever is signed in may leave, whatever else they may do."""
        sessions, over_tls = self._hall.service.sessions, self._hall.over_tls
        await filled_in_by(await visiting.visitor(request, sessions, over_tls=over_tls), request)
        await sessions.sign_out(request.cookies[visiting.session_cookie(over_tls=over_tls)].encode())
        response = RedirectResponse("/sign-in", 303)
        visiting.farewell(response, over_tls=over_tls)
        return response


def not_in(hall: Hall, request: Request, status: int, trouble: str, there: str = "/") -> Response:
    context = {"visitor": None, "there": there, "elsewhere": hall.elsewhere, "trouble": trouble}
    return hall.answer(request, "sign_in.html", status, **context)


def local(address: str) -> str:
    """A page of ours, or the first one: nobody is led elsewhere by a link to us."""
    inside = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if inside and address.isprintable() else "/"
