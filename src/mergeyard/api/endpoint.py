"""What an endpoint is: its path, its request and response structs, the scope it needs, and its handler."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from mergeyard.api.request_schemas import QueueRequest
from mergeyard.domain.access import Scope, Token
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.idempotency import IdempotentRequest
from mergeyard.service.registry import queue_not_found
from mergeyard.service.repositories import Repositories

JSON = "application/json"


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


async def no_wait(_: Call) -> None:
    """The `Settle` of most endpoints: what their response states is true as soon as it is stored."""


class Endpoint(Struct, frozen=True, kw_only=True):
    path: str
    request: type[Struct]
    response: type[Struct] | None
    """None: the response is text of `media_type`."""
    handler: Handler
    summary: str
    scope: Scope = Scope.READ
    method: str = "POST"
    writes: bool = False
    media_type: str = JSON
    wait_for_effect: WaitForEffect = no_wait
    refusals: tuple[Code, ...] = ()
    """In addition to the codes that every endpoint can return (`openapi.COMMON_ERRORS` and others)."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class QueueResolver:
    def __init__(self, repositories: Repositories) -> None:
        self._repositories = repositories

    def resolve_queue(self, call: Call) -> QueueKey:
        """Refuses a queue outside the token's repositories with the same error as a queue that does not exist."""
        request: QueueRequest = call.request
        key = QueueKey(self.resolve_repo(call, request.key.repo), request.key.branch)
        if not call.token.can_access(key.repo):
            raise queue_not_found(key)
        return key

    def resolve_new_queue(self, call: Call) -> QueueKey:
        request: QueueRequest = call.request
        return QueueKey(self.resolve_visible_repo(call, request.key.repo), request.key.branch)

    def resolve_visible_repo(self, call: Call, requested: Repo) -> Repo:
        repo = self.resolve_repo(call, requested)
        if not call.token.can_access(repo):
            raise repository_not_found(repo)
        return repo

    def resolve_repo(self, call: Call, requested: Repo) -> Repo:
        return self._repositories.canonical_repo(requested, call.token)


def repository_not_found(repo: Repo) -> RequestRefused:
    return RequestRefused(Code.REPOSITORY_NOT_FOUND, f"{repo} does not exist: check its owner and name.")


PREFIX = "/v1/"
