"""Who may come in: the token of a request, and whether its scopes suffice."""

from mergeyard.api.endpoint import Doorkeeper
from mergeyard.api.errors import ApiError
from mergeyard.api.head import Head
from mergeyard.domain.tokens import Scope, Token
from mergeyard.service.errors import Code

HEADER = b"x-api-token"
CHALLENGE = ((b"www-authenticate", b'ApiToken realm="mergeyard", header="x-api-token"'),)


async def admitted(doorkeeper: Doorkeeper, head: Head) -> Token:
    secret = head.get(HEADER).strip()
    if not secret:
        words = "Send an API token in the header x-api-token; `mergeyard token create` makes one."
        raise ApiError(Code.MISSING_TOKEN, words, headers=CHALLENGE)
    if HEADER in head.doubled:
        raise ApiError(Code.INVALID_TOKEN, "The header x-api-token stands more than once: send one.", headers=CHALLENGE)
    token = await doorkeeper.token(secret)
    if token is None:
        words = "The API token is unknown, revoked or expired: ask your administrator for another."
        raise ApiError(Code.INVALID_TOKEN, words, headers=CHALLENGE)
    return token


def refuse_without(token: Token, scope: Scope) -> None:
    if not token.may(scope):
        words = f"This needs a token with the scope `{scope}`; yours does not have it. Ask for one that has."
        raise ApiError(Code.INSUFFICIENT_SCOPE, words)
