"""Keeps the door with what the service knows: whose token it is, and what was answered before."""

from contextlib import AbstractAsyncContextManager

from mergeyard.domain.tokens import Token
from mergeyard.service.repeating import Repeat
from mergeyard.service.service import Service


class ServiceDoor:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def token(self, secret: bytes) -> Token | None:
        return await self._service.tokens.holder(secret)

    async def kept(self, repeat: Repeat) -> bytes | None:
        return await self._service.repeating.answered(repeat)

    def once(self, repeat: Repeat) -> AbstractAsyncContextManager[bytes | None]:
        return self._service.repeating.once(repeat)
