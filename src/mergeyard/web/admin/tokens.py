"""The page that lists, creates and revokes API tokens."""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from starlette.responses import RedirectResponse, Response

from mergeyard.domain.access import DEFAULT_SCOPES, Scope, SsoPrincipal, Token
from mergeyard.domain.timestamps import DAY, Instant
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.web.admin.fields import parse_repos
from mergeyard.web.rendering import PageRequest
from mergeyard.web.user_sessions import Form

TOKENS_URL = "/administration/tokens"
LIFETIMES: Mapping[str, int | None] = {
    "7 days": 7 * DAY,
    "30 days": 30 * DAY,
    "90 days": 90 * DAY,
    "1 year": 365 * DAY,
    "never": None,
}
DEFAULT_LIFETIME = "90 days"
SCOPE_MEANINGS = {
    Scope.READ: "View queues, pull requests and runs",
    Scope.SUBMIT: "Submit, restart and remove pull requests",
    Scope.TARGETS: "Upload impacted targets",
    Scope.STATUS: "Report check results",
    Scope.PRIORITY: "Use urgent and force",
    Scope.ADMIN: "Full access, including settings and these pages",
}
LIMITED_TOKEN = "Your token is limited to some repositories. To sign out users, sign in with one that is not limited."
NO_SCOPE = "Choose at least one scope: a token without a scope cannot do anything."


class TokenForm(Struct, frozen=True):
    """The form as the user filled it in, so that it can be shown again with an error."""

    name: str = ""
    scopes: frozenset[str] = frozenset(DEFAULT_SCOPES)
    repos: str = ""
    lifetime: str = DEFAULT_LIFETIME

    @classmethod
    def from_form(cls, form: Form) -> "TokenForm":
        return cls(form.get("name"), frozenset(form.get_all("scope")), form.get("repos"), form.get("lifetime"))


async def show(page: PageRequest) -> Response:
    return await _render_list(page, TokenForm())


async def create(page: PageRequest) -> Response:
    """Responds with a page instead of a redirect, because the secret is not stored and cannot be shown later."""
    form = TokenForm.from_form(page.form)
    try:
        repos = parse_repos(form.repos, page)
        if form.lifetime not in LIFETIMES:
            raise RequestRefused(
                Code.INVALID_REQUEST, "Choose from the list when the token expires, for example in 90 days."
            )
        scopes, lifetime = _parse_scopes(form.scopes), LIFETIMES[form.lifetime]
        token, secret = await page.service.tokens.create(form.name, scopes, repos, lifetime, page.user.token)
    except RequestRefused as refused:
        return await _render_list(page, form, refused.detail)
    return page.render("admin/token_created.html", token=token, secret=secret)


async def confirm_revoke(page: PageRequest) -> Response:
    token = await _find_token(page)
    return page.render("admin/token_revoke.html", token=token, own=token.id == page.user.token.id)


async def revoke(page: PageRequest) -> Response:
    await page.service.tokens.revoke((await _find_token(page)).id, page.user.token)
    return RedirectResponse(TOKENS_URL, 303)


async def end_sso_sessions(page: PageRequest) -> Response:
    """Ends all single sign-on sessions, possibly including the user's own. They are not limited to repositories, so a
    user whose token is limited cannot end them."""
    if page.user.token.repos:
        raise RequestRefused(Code.INSUFFICIENT_SCOPE, LIMITED_TOKEN)
    if page.context.sso_label is not None:
        await page.service.sessions.end_sso_sessions(page.context.sso_label, page.user.token)
    return RedirectResponse(TOKENS_URL, 303)


async def _find_token(page: PageRequest) -> Token:
    for token in await page.service.tokens.list_manageable(page.user.token):
        if token.id == page.path_parameter("token"):
            return token
    raise RequestRefused(Code.TOKEN_NOT_FOUND, "There is no such token. The page “Tokens” lists those you can manage.")


async def _render_list(page: PageRequest, form: TokenForm, error: str = "") -> Response:
    now = page.service.clock.now()
    tokens = await page.service.tokens.list_manageable(page.user.token)
    return page.render_form(
        "admin/tokens.html",
        error,
        tokens=[token for token in tokens if token.is_valid(now)],
        past_tokens=[token for token in tokens if not token.is_valid(now)],
        form=form,
        error=error,
        scope_meanings=SCOPE_MEANINGS,
        lifetimes=_list_lifetimes(page.user.token, now),
        sso_label=page.context.sso_label,
        is_sso_user=isinstance(page.user.token, SsoPrincipal),
    )


def _list_lifetimes(creator: Token, now: Instant) -> list[str]:
    """Only lifetimes that the creator can grant: a new token must not outlive the creator's limit."""
    latest = creator.latest_expiry_of_new_token(now)
    return [label for label, ms in LIFETIMES.items() if latest is None or (ms and now + ms <= latest)]


def _parse_scopes(chosen: Iterable[str]) -> frozenset[Scope]:
    scopes = frozenset(scope for scope in Scope if scope in chosen)
    if not scopes:
        raise RequestRefused(Code.INVALID_REQUEST, NO_SCOPE)
    return scopes
