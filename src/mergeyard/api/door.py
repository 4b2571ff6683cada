"""Who may come in: the token of a request, and whether its scopes suffice."""

from collections.abc import Generator
from contextlib import contextmanager

from mergeyard.api.endpoint import Doorkeeper
from mergeyard.api.errors import ApiError
from mergeyard.api.head import Head
from mergeyard.domain.tokens import Scope, Token
from mergeyard.service.errors import Code, Refused

HEADER = b"x-api-token"
CHALLENGE = ((b"www-authenticate", b'ApiToken realm="mergeyard", header="x-api-token"'),)
UNKNOWN = "The API token is unknown, revoked or expired: ask your administrator for another."
REPEATED = "The header x-api-token stands more than once: send one."


async def admitted(doorkeeper: Doorkeeper, head: Head) -> Token:
    secret = head.get(HEADER).strip()
    if not secret:
        words = "Send an API token in the header x-api-token; `mergeyard token create` makes one."
        raise ApiError(Code.MISSING_TOKEN, words, headers=CHALLENGE)
    is_repeated = HEADER in head.doubled
    token = await doorkeeper.token(b"" if is_repeated else secret, head)
    if token is None:
        raise ApiError(Code.INVALID_TOKEN, REPEATED if is_repeated else UNKNOWN, headers=CHALLENGE)
    return token


@contextmanager
def scope_checked(doorkeeper: Doorkeeper, token: Token, head: Head) -> Generator[None]:
    """Reports every refusal for a missing scope in this block."""
    try:
        yield
    except Refused as refused:
        if refused.code is Code.INSUFFICIENT_SCOPE:
            doorkeeper.scope_is_missing(token, head)
        raise


def refuse_without(token: Token, scope: Scope) -> None:
    if not token.may(scope):
        words = f"This needs a token with the scope `{scope}`; yours does not have it. Ask for one that has."
        raise ApiError(Code.INSUFFICIENT_SCOPE, words)
