"""What an endpoint is: its path, its request and response structs, the scope it needs, and its handler."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from mergeyard.api.responses import JSON
from mergeyard.domain.access import Scope, Token
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.service.errors import Code, RequestRefused, queue_not_found
from mergeyard.service.idempotency import IdempotentRequest
from mergeyard.service.service import Service


class Call(Struct, frozen=True):
    """A validated request, together with the token that sent it."""

    token: Token
    request: Any
    request_id: str
    idempotent_request: IdempotentRequest | None = None


Handler = Callable[[Call], Awaitable[bytes]]
"""Returns the encoded body of the 200."""
WaitForEffect = Callable[[Call], Awaitable[None]]
"""Waits until a stored response can be sent again, where the first one also had to wait for its effect."""


class Endpoint(Struct, frozen=True, kw_only=True):
    path: str
    request: type[Struct]
    response: type[Struct] | None
    """None: the response is text of `media_type`."""
    handler: Handler
    summary: str
    scope: Scope | None = Scope.READ
    """None: every valid token can call it."""
    method: str = "POST"
    writes: bool = False
    media_type: str = JSON
    wait_for_effect: WaitForEffect | None = None
    refusals: tuple[Code, ...] = ()
    """In addition to the codes that every endpoint can return (`openapi.COMMON_ERRORS` and others)."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Endpoints:
    """Base of the classes of handlers: the service, and the names in a request."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def _resolve_queue(self, call: Call) -> QueueKey:
        """Refuses a queue outside the token's repositories with the same error as a queue that does not exist."""
        requested: QueueKey = call.request.key
        key = QueueKey(self._service.repositories.canonical_repo(requested.repo, call.token), requested.branch)
        if not call.token.can_access(key.repo):
            raise queue_not_found(key)
        return key

    def _resolve_repo(self, call: Call, requested: Repo) -> Repo:
        repo = self._service.repositories.canonical_repo(requested, call.token)
        if not call.token.can_access(repo):
            raise repository_not_found(repo)
        return repo


def repository_not_found(repo: Repo) -> RequestRefused:
    return RequestRefused(Code.REPOSITORY_NOT_FOUND, f"{repo} does not exist: check its owner and name.")


PREFIX = "/v1/"
