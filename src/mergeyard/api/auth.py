"""Authentication and authorization: the token of a request, and whether its scopes suffice."""

from collections.abc import Generator
from contextlib import contextmanager

from starlette.requests import Request

from mergeyard.api.responses import ApiError, request_id
from mergeyard.domain.access import Scope, Token
from mergeyard.ports.external import Clock
from mergeyard.service.audit_log import RefusalKind, RefusalLog
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.tokens import Tokens, TokenUses

TOKEN_HEADER = "x-api-token"
CHALLENGE = {"www-authenticate": 'ApiToken realm="mergeyard", header="x-api-token"'}
MISSING_TOKEN = (
    "The request has no API token: send one in the header x-api-token; `mergeyard token create` creates one."
)
UNKNOWN_TOKEN = "The API token is unknown, revoked or expired: ask your administrator for another."
REPEATED_HEADER = "The request has more than one x-api-token header: send one."


class Authenticator:
    def __init__(self, tokens: Tokens, uses: TokenUses, refusals: RefusalLog, clock: Clock) -> None:
        self._tokens = tokens
        self._uses = uses
        self._refusals = refusals
        self._clock = clock

    async def authenticate(self, request: Request) -> Token:
        """Returns the valid token of the request and records its use, or logs the attempt and refuses."""
        secrets = [secret.strip() for secret in request.headers.getlist(TOKEN_HEADER)]
        if not any(secrets):
            raise ApiError(Code.MISSING_TOKEN, MISSING_TOKEN, headers=CHALLENGE)
        is_repeated = len(secrets) > 1
        token = None if is_repeated else await self._tokens.find(secrets[0].encode("latin-1"))
        if token is None or not token.is_valid(self._clock.now()):
            record_refusal(self._refusals, RefusalKind.TOKEN_REJECTED, request, token)
            raise ApiError(Code.INVALID_TOKEN, REPEATED_HEADER if is_repeated else UNKNOWN_TOKEN, headers=CHALLENGE)
        self._uses.record(token, client_address(request))
        request.state.is_authenticated = True
        return token

    @contextmanager
    def log_missing_scope(self, token: Token, request: Request) -> Generator[None]:
        """Logs every refusal for a missing scope that is raised in this block."""
        try:
            yield
        except RequestRefused as refused:
            if refused.code is Code.INSUFFICIENT_SCOPE:
                record_refusal(self._refusals, RefusalKind.SCOPE_MISSING, request, token)
            raise


def record_refusal(
    refusals: RefusalLog, kind: RefusalKind, request: Request, token: Token | None = None, **fields: str
) -> None:
    refusals.record(
        kind, client_address(request), token, path=request.url.path, request_id=request_id(request), **fields
    )


def require_scope(token: Token, scope: Scope | None) -> None:
    if scope is not None and not token.has_scope(scope):
        detail = f"The token lacks the scope `{scope}`: ask your administrator for one that has it."
        raise ApiError(Code.INSUFFICIENT_SCOPE, detail)


def client_address(request: Request) -> str:
    """The client's IP address; the server has already resolved it through the trusted proxies."""
    return "" if request.client is None else request.client.host
