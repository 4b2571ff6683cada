"""Tokens: who may come in, made here and taken back here."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mergeyard.domain.instants import DAY, Instant
from mergeyard.domain.tokens import DEFAULT_SCOPES, Scope, Token, VouchedFor
from mergeyard.service.errors import Code, Refused
from mergeyard.web.administration.naming import repos_typed
from mergeyard.web.forms import Form, filled_in_by
from mergeyard.web.hall import Hall
from mergeyard.web.visiting import Visitor

PAGE = "/administration/tokens"
LIFETIMES: Mapping[str, int | None] = {
    "7 days": 7 * DAY,
    "30 days": 30 * DAY,
    "90 days": 90 * DAY,
    "1 year": 365 * DAY,
    "never": None,
}
USUAL_LIFETIME = "90 days"
POWERS = {
    Scope.READ: "see queues, pull requests and runs",
    Scope.SUBMIT: "submit, cancel and restart",
    Scope.TARGETS: "upload impacted targets",
    Scope.STATUS: "report what CI says",
    Scope.PRIORITY: "let pull requests pass the line",
    Scope.ADMIN: "everything, also settings and these pages",
}
TOO_FAR = "Your token is limited to some repositories, and tokens reach further: sign in with one that is not limited."
NO_SCOPE = "A token without a scope may do nothing: choose at least one."


class TokenWishes(Struct, frozen=True):
    """What somebody filled in, so that they need not do it again."""

    name: str = ""
    scopes: frozenset[str] = frozenset(DEFAULT_SCOPES)
    repos: str = ""
    lifetime: str = USUAL_LIFETIME

    @classmethod
    def in_form(cls, form: Form) -> "TokenWishes":
        return cls(form.get("name"), frozenset(form.all("scope")), form.get("repos"), form.get("lifetime"))


class TokensPage:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self._tokens = hall.service.tokens

    def routes(self) -> Sequence[Route]:
        return (
            Route(PAGE, self.show, methods=["GET"]),
            Route(PAGE, self.create, methods=["POST"]),
            Route(f"{PAGE}/sign-out", self.sign_out, methods=["POST"]),
            Route(f"{PAGE}/{{token}}/revoke", self.ask, methods=["GET"]),
            Route(f"{PAGE}/{{token}}/revoke", self.revoke, methods=["POST"]),
        )

    async def show(self, request: Request) -> Response:
        visitor = await self._administrator(request)
        return await self._list(request, visitor, TokenWishes())

    async def create(self, request: Request) -> Response:
        """Answered at once, not by a redirect: nobody could show the secret later."""
        visitor = await self._administrator(request)
        wishes = TokenWishes.in_form(await filled_in_by(visitor, request))
        try:
            made, secret = await self._made(visitor, wishes)
        except Refused as refused:
            return await self._list(request, visitor, wishes, refused.detail)
        return self._hall.page(request, "administration/token_made.html", visitor, token=made, secret=secret)

    async def ask(self, request: Request) -> Response:
        visitor = await self._administrator(request)
        token = await self._named(request)
        own = token.id == visitor.token.id
        return self._hall.page(request, "administration/token_revoke.html", visitor, token=token, own=own)

    async def revoke(self, request: Request) -> Response:
        visitor = await self._administrator(request)
        await filled_in_by(visitor, request)
        await self._tokens.revoke((await self._named(request)).id, visitor.token)
        return RedirectResponse(PAGE, 303)

    async def sign_out(self, request: Request) -> Response:
        """Everybody who came without a token, and so perhaps the visitor, too."""
        visitor = await self._administrator(request)
        await filled_in_by(visitor, request)
        if self._hall.elsewhere is not None:
            await self._hall.service.sessions.sign_out_vouched_for(self._hall.elsewhere, visitor.token)
        return RedirectResponse(PAGE, 303)

    async def _administrator(self, request: Request) -> Visitor:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        if visitor.token.repos:
            raise Refused(Code.INSUFFICIENT_SCOPE, TOO_FAR)
        return visitor

    async def _made(self, visitor: Visitor, wishes: TokenWishes) -> tuple[Token, str]:
        repos = repos_typed(wishes.repos, visitor, self._hall.service.sites)
        if wishes.lifetime not in LIFETIMES:
            raise Refused(Code.INVALID_REQUEST, "Choose from the list when the token expires.")
        return await self._tokens.create(
            wishes.name, _scopes(wishes.scopes), repos, LIFETIMES[wishes.lifetime], visitor.token
        )

    async def _named(self, request: Request) -> Token:
        for token in await self._tokens.all():
            if token.id == request.path_params["token"]:
                return token
        raise Refused(Code.NOT_FOUND, "There is no such token. The list shows those there are.")

    async def _list(self, request: Request, visitor: Visitor, wishes: TokenWishes, trouble: str = "") -> Response:
        now = self._hall.service.clock.now()
        tokens = sorted(await self._tokens.all(), key=lambda token: (not token.valid(now), -token.created_at))
        return self._hall.form(
            request,
            "administration/tokens.html",
            visitor,
            trouble,
            tokens=[(token, state_of(token, now)) for token in tokens],
            wishes=wishes,
            trouble=trouble,
            powers=POWERS,
            lifetimes=lifetimes_for(visitor.token, now),
            elsewhere=self._hall.elsewhere,
            without_token=isinstance(visitor.token, VouchedFor),
        )


def lifetimes_for(giver: Token, now: Instant) -> list[str]:
    """Nobody is offered what they may not give."""
    latest = giver.gives_until(now)
    return [words for words, lasting in LIFETIMES.items() if latest is None or (lasting and now + lasting <= latest)]


def state_of(token: Token, now: Instant) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "valid" if token.valid(now) else "expired"


def _scopes(chosen: Iterable[str]) -> frozenset[Scope]:
    scopes = frozenset(scope for scope in Scope if scope in chosen)
    if not scopes:
        raise Refused(Code.INVALID_REQUEST, NO_SCOPE)
    return scopes
