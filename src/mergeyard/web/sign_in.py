"""Sign-in with an API token or single sign-on, and sign-out."""

import asyncio
from collections.abc import Sequence

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mergeyard.ports.external import IdentityProviderUnavailable, SsoLoginRefused
from mergeyard.service.audit_log import RefusalKind
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.sessions import SingleSignOn
from mergeyard.web import user_sessions
from mergeyard.web.formats import to_local_url
from mergeyard.web.rendering import PageContext
from mergeyard.web.user_sessions import read_form, read_user_form

UNKNOWN_TOKEN = "Invalid, revoked or expired token. Check that you copied it completely, or ask for a new one."


MAX_SIGN_IN_FORMS = 100
"""Forms that arrive at the same time: any number of clients without a session can send them."""


class SignInPage:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._form_slots = asyncio.Semaphore(MAX_SIGN_IN_FORMS)

    def routes(self) -> Sequence[Route]:
        return (
            Route("/sign-in", self.show_form, methods=["GET"]),
            Route("/sign-in", self.sign_in, methods=["POST"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
        )

    async def show_form(self, request: Request) -> Response:
        next_url = to_local_url(request.query_params.get("next", "/"))
        return self._context.render(request, "sign_in.html", next_url=next_url, sso_label=self._context.sso_label)

    async def sign_in(self, request: Request) -> Response:
        if self._form_slots.locked():
            raise RequestRefused(Code.RATE_LIMITED, "Too many users are signing in at once. Try again in a moment.")
        async with self._form_slots:
            form = await read_form(request)
        next_url, token_secret = to_local_url(form.get("next")), form.get("token").encode()
        token = await self._context.service.tokens.find(token_secret)
        try:
            session_secret = await self._context.service.sessions.sign_in(token_secret)
        except RequestRefused as refused:
            self._context.record_refusal(RefusalKind.SIGN_IN_FAILED, request, token)
            return render_sign_in_error(self._context, request, 403, refused.detail, next_url)
        if session_secret is None or token is None:
            if token_secret:
                self._context.record_refusal(RefusalKind.SIGN_IN_FAILED, request, token)
            return render_sign_in_error(self._context, request, 401, UNKNOWN_TOKEN, next_url)
        self._context.service.token_uses.record(token, user_sessions.client_address(request))
        response = RedirectResponse(next_url, 303)
        user_sessions.set_session_cookie(response, session_secret, over_tls=self._context.over_tls)
        return response

    async def sign_out(self, request: Request) -> Response:
        """Needs a session but no scope."""
        sessions, over_tls = self._context.service.sessions, self._context.over_tls
        await read_user_form(await user_sessions.authenticate(request, sessions, over_tls=over_tls), request)
        await sessions.sign_out(request.cookies[user_sessions.session_cookie_name(over_tls=over_tls)].encode())
        response = RedirectResponse("/sign-in", 303)
        user_sessions.delete_session_cookie(response, over_tls=over_tls)
        return response


def render_sign_in_error(
    context: PageContext, request: Request, status: int, error: str, next_url: str = "/"
) -> Response:
    return context.render(request, "sign_in.html", status, next_url=next_url, sso_label=context.sso_label, error=error)


START_PATH = "/sign-in/sso"
SSO_CALLBACK_PATH = "/sign-in/back"
LOGIN_STATE_COOKIE = "mergeyard_signing_in"
LOGIN_STATE_MAX_AGE_S = 600
MAX_NEXT_URL_LENGTH = 1000
"""The URL is part of the login state, and browsers limit a cookie to 4 KiB."""

log = structlog.get_logger()


class SsoSignIn:
    def __init__(self, context: PageContext, sso: SingleSignOn) -> None:
        self._context = context
        self._sso = sso

    def routes(self) -> Sequence[Route]:
        return (Route(START_PATH, self.start, methods=["GET"]), Route(SSO_CALLBACK_PATH, self.finish, methods=["GET"]))

    async def start(self, request: Request) -> Response:
        requested_url = request.query_params.get("next", "/")
        next_url = to_local_url(requested_url) if len(requested_url) <= MAX_NEXT_URL_LENGTH else "/"
        try:
            redirect = await self._sso.begin_login(next_url)
        except IdentityProviderUnavailable as error:
            return self._refuse(request, error)
        response = RedirectResponse(redirect.url, 303)
        response.set_cookie(
            LOGIN_STATE_COOKIE,
            redirect.login_state,
            max_age=LOGIN_STATE_MAX_AGE_S,
            path=SSO_CALLBACK_PATH,
            httponly=True,
            samesite="lax",
            secure=self._context.over_tls,
        )
        return response

    async def finish(self, request: Request) -> Response:
        try:
            session = await self._sso.complete_login(request.query_params, request.cookies.get(LOGIN_STATE_COOKIE, ""))
        except (IdentityProviderUnavailable, SsoLoginRefused) as error:
            response = self._refuse(request, error)
        else:
            log.info("signed_in", name=session.name, by=self._sso.label)
            response = RedirectResponse(session.return_to, 303)
            user_sessions.set_session_cookie(response, session.session_secret, over_tls=self._context.over_tls)
        response.delete_cookie(LOGIN_STATE_COOKIE, path=SSO_CALLBACK_PATH)
        return response

    def _refuse(self, request: Request, error: IdentityProviderUnavailable | SsoLoginRefused) -> Response:
        is_refused = isinstance(error, SsoLoginRefused)
        cause = str(error) if is_refused else error.detail
        self._context.record_refusal(RefusalKind.SIGN_IN_FAILED, request, by=self._sso.label, cause=cause)
        return render_sign_in_error(self._context, request, 403 if is_refused else 503, str(error))
