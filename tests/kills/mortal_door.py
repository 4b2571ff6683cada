"""The real door, which may fall shut when an answer is ready, when half of it is out, and when all of it is."""

from collections.abc import MutableMapping
from typing import Any

from mergeyard import wiring
from mergeyard.api.app import Asgi, Scope
from mergeyard.api.receiving import Receive
from mergeyard.api.reply import Send
from mergeyard.api.routes import PREFIX, TABLE
from mergeyard.service.service import Service
from mergeyard.settings import Settings
from tests.kills.orders import Moment
from tests.kills.reaper import REAPER


class MortalDoor:
    def __init__(self, application: Asgi) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = ""

        async def send_mortally(message: MutableMapping[str, Any]) -> None:
            nonlocal name
            if message["type"] == "http.response.start":
                name = answer_name(scope["path"], message["status"])
                REAPER.reach(Moment.BEFORE, name)
            else:
                REAPER.reach(Moment.DURING, name)
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                REAPER.reach(Moment.AFTER, name)

        await self._application(scope, receive, send_mortally)


def answer_name(path: str, status: int) -> str:
    if not path.startswith(PREFIX):
        return "answer:page"
    if status != 200:
        return "answer:refusal"
    name = path.removeprefix(PREFIX)
    return f"answer:{name}" if TABLE[name].get("writes") else "answer:read"


def make_application(settings: Settings, service: Service, public_url: str) -> Asgi:
    return MortalDoor(make_immortal_application(settings, service, public_url))


make_immortal_application = wiring.make_application
