"""The API client of the simulated people: asks any running replica until one responds, and records all responses."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import json
from starlette.applications import Starlette

from tests.simulation.git import Origin
from tests.support.api_client import QUEUE, ApiRefused, ApiResponse

REQUEST_TIMEOUT_S = 30
RETRY_AFTER_S = 1
RunningApplications = Callable[[], Sequence[Starlette]]


class SimApi:
    def __init__(
        self, origin: Origin, applications: RunningApplications, token: str, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.queue = QUEUE
        self.responses: list[ApiResponse] = []
        self.requests: list[tuple[str, str, dict[str, Any]]] = []
        self._first_asked_at: dict[str, tuple[int, int]] = {}
        self._origin = origin
        self._running_applications = applications
        self._token = token.encode()
        self._loop = loop
        self._request_count = 0
        self._in_flight = set[asyncio.Task[tuple[int, Any]]]()
        """Also requests that timed out at the client: a server finishes what it was asked."""

    def post(self, path: str, **members: Any) -> dict[str, Any]:
        """For callers outside of the event loop, after the world has ended."""
        return self._loop.run_until_complete(self.post_until_answered(path, **members))

    async def post_until_answered(self, path: str, **members: Any) -> dict[str, Any]:
        """Repeats the request with one idempotency key until a replica responds."""
        body, key = self.queue | members, f"key-{len(self._first_asked_at)}"
        self._first_asked_at[key] = len(self._origin), len(self.responses)
        while True:
            response = await self._ask(path, key, body)
            if response is not None:
                return response
            await asyncio.sleep(RETRY_AFTER_S)

    async def _ask(self, path: str, key: str, body: dict[str, Any]) -> dict[str, Any] | None:
        applications = self._running_applications()
        if not applications:
            return None
        self._request_count += 1
        self.requests.append((path, key, body))
        request = self._loop.create_task(
            self._request(applications[self._request_count % len(applications)], path, key, body)
        )
        self._in_flight.add(request)
        request.add_done_callback(self._in_flight.discard)
        if not (await asyncio.wait({request}, timeout=REQUEST_TIMEOUT_S))[0]:
            return None
        status, response = request.result()
        if status == 200:
            asked_at, asked_after = self._first_asked_at[key]
            self.responses.append(ApiResponse(path, body, response, asked_at, len(self._origin), asked_after))
            return response
        if response["retryable"] and status != 409:
            return None
        raise ApiRefused(status, response)

    async def _request(self, application: Starlette, path: str, key: str, body: dict[str, Any]) -> tuple[int, Any]:
        content, messages = json.encode(body), list[Any]()
        headers = [
            (b"x-api-token", self._token),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
            (b"idempotency-key", key.encode()),
        ]
        scope = {"type": "http", "method": "POST", "path": f"/v1/{path}", "query_string": b"", "headers": headers}

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Any) -> None:
            messages.append(message)

        await application(scope, receive, send)
        return messages[0]["status"], json.decode(b"".join(message.get("body", b"") for message in messages[1:]))
