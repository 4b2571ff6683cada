"""Receivers of webhooks that live in the test: they keep what they get, and answer as they are told to."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, json

from mergeyard.ports.sending import AddressRefused, NotSent, Response


class Received(Struct, frozen=True):
    url: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def payload(self) -> dict[str, Any]:
        return json.decode(self.body)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


class FakeSender:
    def __init__(self) -> None:
        self.received = list[Received]()
        """What was answered with success."""
        self.attempts = list[Received]()
        self.answers: dict[str, int] = {}
        """By host: what it answers; 0 for one that does not answer at all."""
        self.disliked = ""
        """A type of event that nobody takes."""
        self.secrets: dict[str, str] = {}
        """By the name of the webhook."""

    async def check(self, url: str) -> None:
        if "private" in url:
            raise AddressRefused(f"{url} is private: use another.")

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        await self.check(url)
        status = self.answers.get(urlsplit(url).hostname or "", 200)
        sent = Received(url, headers, body)
        if sent.payload.get("type") == self.disliked:
            status = 400
        self.attempts.append(sent)
        if not status:
            raise NotSent("Nobody answered.")
        if status == 200:
            self.received.append(sent)
        return Response(status, "thank you" if status == 200 else "no")

    def types(self) -> list[str]:
        return [each.payload["type"] for each in self.received]

    @staticmethod
    def time_of(heard: Received) -> datetime:
        return datetime.fromtimestamp(int(heard.headers["webhook-timestamp"]), UTC)
