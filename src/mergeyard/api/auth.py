"""Authentication and authorization: the token of a request, and whether its scopes suffice."""

from collections.abc import Generator
from contextlib import AbstractAsyncContextManager, contextmanager

from mergeyard.api.endpoint import AccessControl
from mergeyard.api.request_body import RequestHead
from mergeyard.api.responses import ApiError
from mergeyard.domain.access import Scope, Token
from mergeyard.service.audit_log import RefusalKind
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.idempotency import IdempotentRequest
from mergeyard.service.service import Service

TOKEN_HEADER = b"x-api-token"
CHALLENGE = ((b"www-authenticate", b'ApiToken realm="mergeyard", header="x-api-token"'),)
UNKNOWN_TOKEN = "The API token is unknown, revoked or expired: ask your administrator for another."
REPEATED_HEADER = "The request has more than one x-api-token header: send one."


async def authenticate(access: AccessControl, head: RequestHead) -> Token:
    secret = head.get(TOKEN_HEADER).strip()
    if not secret:
        detail = "The request has no API token: send one in the header x-api-token; `mergeyard token create` makes one."
        raise ApiError(Code.MISSING_TOKEN, detail, headers=CHALLENGE)
    is_repeated = TOKEN_HEADER in head.repeated
    token = await access.find_token(b"" if is_repeated else secret, head)  # An empty secret is looked up to be logged.
    if token is None:
        raise ApiError(Code.INVALID_TOKEN, REPEATED_HEADER if is_repeated else UNKNOWN_TOKEN, headers=CHALLENGE)
    return token


@contextmanager
def log_missing_scope(access: AccessControl, token: Token, head: RequestHead) -> Generator[None]:
    """Logs every refusal for a missing scope that is raised in this block."""
    try:
        yield
    except RequestRefused as refused:
        if refused.code is Code.INSUFFICIENT_SCOPE:
            access.record_missing_scope(token, head)
        raise


def require_scope(token: Token, scope: Scope) -> None:
    if not token.has_scope(scope):
        detail = f"The token lacks the scope `{scope}`: ask your administrator for one that has it."
        raise ApiError(Code.INSUFFICIENT_SCOPE, detail)


class ServiceAccessControl:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def find_token(self, secret: bytes, head: RequestHead) -> Token | None:
        token = await self._service.tokens.find(secret)
        if token is None or not token.is_valid(self._service.wall_clock.now()):
            self._record(RefusalKind.TOKEN_REJECTED, head, token)
            return None
        self._service.token_uses.record(token, head.client)
        return token

    def record_missing_scope(self, token: Token, head: RequestHead) -> None:
        self._record(RefusalKind.SCOPE_MISSING, head, token)

    def _record(self, kind: RefusalKind, head: RequestHead, token: Token | None) -> None:
        self._service.refusal_log.record(kind, head.client, token, path=head.path, request_id=head.request_id)

    async def find_stored_response(self, request: IdempotentRequest) -> bytes | None:
        return await self._service.idempotency.find_response(request)

    def execute_once(self, request: IdempotentRequest) -> AbstractAsyncContextManager[bytes | None]:
        return self._service.idempotency.execute_once(request)
