"""A client of the HTTP API that records every request and response."""

from typing import Any, Protocol
from uuid import uuid4

import httpx2
from msgspec import Struct

from tests.support.host_log import HostLog

QUEUE: dict[str, Any] = {"repo": {"host": "git.local", "owner": "acme", "name": "app"}, "targetBranch": "main"}


class ApiRefused(Exception):
    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(f"{problem['code']}: {problem['detail']}")
        self.status = status
        self.code = problem["code"]
        self.retryable = problem["retryable"]


class HasUrl(Protocol):
    @property
    def url(self) -> str: ...


class ApiResponse(Struct, frozen=True):
    """Log indexes are lengths of the host's log, at the time of the request and of the response."""

    path: str
    body: dict[str, Any]
    content: dict[str, Any]
    log_index_at_request: int
    log_index_at_response: int
    responses_before_request: int
    """Number of responses when the request was first sent: a repeated request returns what was true then."""


class ApiClient:
    def __init__(
        self, server: HasUrl, token: str, host_log: HostLog, queue: dict[str, Any] = QUEUE, timeout_s: float = 20
    ) -> None:
        self.queue = queue
        self.responses: list[ApiResponse] = []
        """Responses with status 200: what the service has acknowledged."""
        self.requests: list[tuple[str, str, dict[str, Any]]] = []
        """All requests, with or without response: path, idempotency key and body."""
        self._first_request: dict[str, tuple[int, int]] = {}
        self._server = server
        self._host_log = host_log
        self._client = httpx2.Client(headers={"x-api-token": token}, timeout=timeout_s, verify=False)

    def post(self, path: str, *, key: str | None = None, **members: Any) -> dict[str, Any]:
        """Sends a request about the queue. Raises a transport error if the server ends before it responds."""
        body, key = self.queue | members, key or uuid4().hex
        self.requests.append((path, key, body))
        requested_at, requested_after = self._first_request.setdefault(key, (len(self._host_log), len(self.responses)))
        headers = {"idempotency-key": key}
        response = self._client.post(f"{self._server.url}/v1/{path}", json=body, headers=headers)
        content = response.json()
        if response.status_code != 200:
            raise ApiRefused(response.status_code, content)
        self.responses.append(ApiResponse(path, body, content, requested_at, len(self._host_log), requested_after))
        return content

    def close(self) -> None:
        self._client.close()
