"""Keeps the door with what the service knows: whose token it is, and what was answered before."""

from contextlib import AbstractAsyncContextManager

from mergeyard.api.head import Head
from mergeyard.domain.tokens import Token
from mergeyard.service.refusal_log import RefusalKind
from mergeyard.service.repeating import Repeat
from mergeyard.service.service import Service


class ServiceDoor:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def token(self, secret: bytes, head: Head) -> Token | None:
        token = await self._service.tokens.find(secret)
        if token is None or not token.valid(self._service.wall.now()):
            self._record(RefusalKind.TOKEN_REJECTED, head, token)
            return None
        self._service.token_uses.record(token, head.client)
        return token

    def scope_is_missing(self, token: Token, head: Head) -> None:
        self._record(RefusalKind.SCOPE_MISSING, head, token)

    def _record(self, kind: RefusalKind, head: Head, token: Token | None) -> None:
        self._service.refusals.record(kind, head.client, token, path=head.path, request_id=head.request_id)

    async def kept(self, repeat: Repeat) -> bytes | None:
        return await self._service.repeating.answered(repeat)

    def once(self, repeat: Repeat) -> AbstractAsyncContextManager[bytes | None]:
        return self._service.repeating.once(repeat)
