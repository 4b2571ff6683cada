"""The people's way to the API: any replica that is up, again until one has answered, and a memory of what was said."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import json

from mergeyard.api.app import Application
from tests.simulation.origin import Origin
from tests.support.api import QUEUE, Answer, Refused

SECONDS_TO_WAIT = 30
SECONDS_BETWEEN = 1
Doors = Callable[[], Sequence[Application]]


class SimApi:
    def __init__(self, origin: Origin, doors: Doors, token: str, loop: asyncio.AbstractEventLoop) -> None:
        self.queue = QUEUE
        self.answers: list[Answer] = []
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self._first_asked_at: dict[str, tuple[int, int]] = {}
        self._origin = origin
        self._doors = doors
        self._token = token.encode()
        self._loop = loop
        self._turn = 0
        self._under_way = set[asyncio.Task[tuple[int, Any]]]()
        """Also those that nobody waits for any more: a server goes on with what it was asked."""

    def post(self, path: str, **members: Any) -> dict[str, Any]:
        """For whoever stands outside of the world, when all is over."""
        return self._loop.run_until_complete(self.insist(path, **members))

    async def insist(self, path: str, **members: Any) -> dict[str, Any]:
        """With one key, until somebody answers."""
        body, key = self.queue | members, f"key-{len(self._first_asked_at)}"
        self._first_asked_at[key] = len(self._origin), len(self.answers)
        while True:
            told = await self._ask(path, key, body)
            if told is not None:
                return told
            await asyncio.sleep(SECONDS_BETWEEN)

    async def _ask(self, path: str, key: str, body: dict[str, Any]) -> dict[str, Any] | None:
        doors = self._doors()
        if not doors:
            return None
        self._turn += 1
        self.asked.append((path, key, body))
        request = self._loop.create_task(self._request(doors[self._turn % len(doors)], path, key, body))
        self._under_way.add(request)
        request.add_done_callback(self._under_way.discard)
        if not (await asyncio.wait({request}, timeout=SECONDS_TO_WAIT))[0]:
            return None
        status, told = request.result()
        if status == 200:
            asked_at, asked_after = self._first_asked_at[key]
            self.answers.append(Answer(path, body, told, asked_at, len(self._origin), asked_after))
            return told
        if told["retryable"] and status != 409:
            return None
        raise Refused(status, told)

    async def _request(self, door: Application, path: str, key: str, body: dict[str, Any]) -> tuple[int, Any]:
        content, said = json.encode(body), list[Any]()
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
            said.append(message)

        await door(scope, receive, send)
        return said[0]["status"], json.decode(b"".join(message.get("body", b"") for message in said[1:]))
