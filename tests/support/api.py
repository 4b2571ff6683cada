"""A client of the HTTP API that remembers every question and its answer."""

from typing import Any, Protocol
from uuid import uuid4

import httpx
from msgspec import Struct

from tests.support.host_log import HostLog

QUEUE: dict[str, Any] = {"repo": {"host": "git.local", "owner": "acme", "name": "app"}, "targetBranch": "main"}


class Refused(Exception):
    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(f"{problem['code']}: {problem['detail']}")
        self.status = status
        self.code = problem["code"]
        self.retryable = problem["retryable"]


class Service(Protocol):
    @property
    def url(self) -> str: ...


class Answer(Struct, frozen=True):
    """Places are positions in the host's log: what it held when the question was asked, and when it was answered."""

    path: str
    body: dict[str, Any]
    told: dict[str, Any]
    asked_at: int
    answered_at: int
    asked_after: int
    """How many answers there were when it was first asked: one that is repeated tells what was true then."""


class Api:
    def __init__(
        self, server: Service, token: str, host_log: HostLog, queue: dict[str, Any] = QUEUE, seconds: float = 20
    ) -> None:
        self.queue = queue
        self.answers: list[Answer] = []
        """Those with 200: what the service gave its word for."""
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        """Everything, answered or not: the path, the key of the request, and its body."""
        self._first_asked_at: dict[str, tuple[int, int]] = {}
        self._server = server
        self._host_log = host_log
        self._client = httpx.Client(headers={"x-api-token": token}, timeout=seconds, verify=False)

    def post(self, path: str, *, key: str | None = None, **members: Any) -> dict[str, Any]:
        """About the one queue; a transport error when the server is gone before it answers."""
        body, key = self.queue | members, key or uuid4().hex
        self.asked.append((path, key, body))
        asked_at, asked_after = self._first_asked_at.setdefault(key, (len(self._host_log), len(self.answers)))
        headers = {"idempotency-key": key}
        response = self._client.post(f"{self._server.url}/v1/{path}", json=body, headers=headers)
        told = response.json()
        if response.status_code != 200:
            raise Refused(response.status_code, told)
        self.answers.append(Answer(path, body, told, asked_at, len(self._host_log), asked_after))
        return told

    def close(self) -> None:
        self._client.close()
