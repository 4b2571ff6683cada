"""The least that uvicorn itself does: a function reads the body of a request, and sends an answer."""

from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

Message = MutableMapping[str, Any]
Application = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Any]


def application(file: str) -> Application:
    """Whatever it is asked, it answers with what the file holds."""
    answer = Path(file).read_bytes()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]

    async def bare(
        scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            return
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return bare
