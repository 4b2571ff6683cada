"""The page that lists, creates and revokes API tokens."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mergeyard.domain.access import DEFAULT_SCOPES, Scope, SsoPrincipal, Token
from mergeyard.domain.timestamps import DAY, Instant
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.web.admin.fields import parse_repos
from mergeyard.web.rendering import PageContext
from mergeyard.web.user_sessions import CurrentUser, Form, read_user_form

PAGE = "/administration/tokens"
LIFETIMES: Mapping[str, int | None] = {
    "7 days": 7 * DAY,
    "30 days": 30 * DAY,
    "90 days": 90 * DAY,
    "1 year": 365 * DAY,
    "never": None,
}
DEFAULT_LIFETIME = "90 days"
SCOPE_MEANINGS = {
    Scope.READ: "see queues, pull requests and runs",
    Scope.SUBMIT: "submit, remove and restart pull requests",
    Scope.TARGETS: "upload impacted targets",
    Scope.STATUS: "report check results from CI",
    Scope.PRIORITY: "submit as urgent or with force",
    Scope.ADMIN: "everything, including settings and these pages",
}
LIMITED_TOKEN = "Your token is limited to some repositories. To manage tokens, sign in with one that is not limited."
NO_SCOPE = "A token without a scope cannot do anything: choose at least one."


class TokenForm(Struct, frozen=True):
    """The form as the user filled it in, so that it can be shown again with an error."""

    name: str = ""
    scopes: frozenset[str] = frozenset(DEFAULT_SCOPES)
    repos: str = ""
    lifetime: str = DEFAULT_LIFETIME

    @classmethod
    def from_form(cls, form: Form) -> "TokenForm":
        return cls(form.get("name"), frozenset(form.get_all("scope")), form.get("repos"), form.get("lifetime"))


class TokensPage:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._tokens = context.service.tokens

    def routes(self) -> Sequence[Route]:
        return (
            Route(PAGE, self.show, methods=["GET"]),
            Route(PAGE, self.create, methods=["POST"]),
            Route(f"{PAGE}/sign-out", self.sign_out, methods=["POST"]),
            Route(f"{PAGE}/{{token}}/revoke", self.confirm_revoke, methods=["GET"]),
            Route(f"{PAGE}/{{token}}/revoke", self.revoke, methods=["POST"]),
        )

    async def show(self, request: Request) -> Response:
        user = await self._authenticate(request)
        return await self._render_list(request, user, TokenForm())

    async def create(self, request: Request) -> Response:
        """Responds with a page instead of a redirect, because the secret is not stored and cannot be shown later."""
        user = await self._authenticate(request)
        token_form = TokenForm.from_form(await read_user_form(user, request))
        try:
            token, secret = await self._create_token(user, token_form)
        except RequestRefused as refused:
            return await self._render_list(request, user, token_form, refused.detail)
        return self._context.render_page(request, "admin/token_created.html", user, token=token, secret=secret)

    async def confirm_revoke(self, request: Request) -> Response:
        user = await self._authenticate(request)
        token = await self._find_token(request)
        own = token.id == user.token.id
        return self._context.render_page(request, "admin/token_revoke.html", user, token=token, own=own)

    async def revoke(self, request: Request) -> Response:
        user = await self._authenticate(request)
        await read_user_form(user, request)
        await self._tokens.revoke((await self._find_token(request)).id, user.token)
        return RedirectResponse(PAGE, 303)

    async def sign_out(self, request: Request) -> Response:
        """Ends all single sign-on sessions, possibly including the user's own."""
        user = await self._authenticate(request)
        await read_user_form(user, request)
        if self._context.sso_label is not None:
            await self._context.service.sessions.end_sso_sessions(self._context.sso_label, user.token)
        return RedirectResponse(PAGE, 303)

    async def _authenticate(self, request: Request) -> CurrentUser:
        """Only administrators whose token is not limited to repositories manage tokens."""
        user = await self._context.authenticate(request, Scope.ADMIN)
        if user.token.repos:
            raise RequestRefused(Code.INSUFFICIENT_SCOPE, LIMITED_TOKEN)
        return user

    async def _create_token(self, user: CurrentUser, form: TokenForm) -> tuple[Token, str]:
        repos = parse_repos(form.repos, user, self._context.service.repositories)
        if form.lifetime not in LIFETIMES:
            raise RequestRefused(Code.INVALID_REQUEST, "Choose from the list when the token expires.")
        return await self._tokens.create(
            form.name, _parse_scopes(form.scopes), repos, LIFETIMES[form.lifetime], user.token
        )

    async def _find_token(self, request: Request) -> Token:
        for token in await self._tokens.list_all():
            if token.id == request.path_params["token"]:
                return token
        raise RequestRefused(Code.NOT_FOUND, "There is no such token. The tokens page lists all tokens.")

    async def _render_list(
        self, request: Request, user: CurrentUser, token_form: TokenForm, error: str = ""
    ) -> Response:
        now = self._context.service.clock.now()
        tokens = sorted(await self._tokens.list_all(), key=lambda token: (not token.is_valid(now), -token.created_at))
        return self._context.render_form(
            request,
            "admin/tokens.html",
            user,
            error,
            tokens=[(token, _describe_state(token, now)) for token in tokens],
            form=token_form,
            error=error,
            scope_meanings=SCOPE_MEANINGS,
            lifetimes=_list_lifetimes(user.token, now),
            sso_label=self._context.sso_label,
            is_sso_user=isinstance(user.token, SsoPrincipal),
        )


def _list_lifetimes(creator: Token, now: Instant) -> list[str]:
    """Only lifetimes that the creator can grant: a new token must not outlive the creator's limit."""
    latest = creator.latest_expiry_of_new_token(now)
    return [label for label, ms in LIFETIMES.items() if latest is None or (ms and now + ms <= latest)]


def _describe_state(token: Token, now: Instant) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "valid" if token.is_valid(now) else "expired"


def _parse_scopes(chosen: Iterable[str]) -> frozenset[Scope]:
    scopes = frozenset(scope for scope in Scope if scope in chosen)
    if not scopes:
        raise RequestRefused(Code.INVALID_REQUEST, NO_SCOPE)
    return scopes
