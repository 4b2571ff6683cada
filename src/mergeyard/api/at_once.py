"""Takes a body in one piece, and answers in one write, where nothing is in the way.

Piece by piece, as ASGI has them, a body is waited for that has come already; and head and body of an answer are two
calls of the system, and wake the client twice.
"""

from collections.abc import Callable, Mapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from mergeyard.api.reply import Reply, written

EXTENSION = "mergeyard.at_once"
AtOnce = Callable[[Reply, str], bool]


def offer(cycle: RequestResponseCycle) -> None:
    """To the application, as an extension of ASGI."""

    def answer(reply: Reply, request_id: str) -> bool:
        if not _is_free(cycle):
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        cycle.transport.write(written(reply, request_id, *cycle.default_headers))
        cycle.on_response()
        return True

    def body() -> bytes | None:
        return None if cycle.more_body or cycle.disconnected else bytes(cycle.body)

    cycle.scope["extensions"] = {EXTENSION: {"answer": answer, "body": body}}


def offered(scope: Mapping[str, Any]) -> AtOnce:
    """By the server below, or nothing that ever answers."""
    return _extension(scope).get("answer", _never)


def body_of(scope: Mapping[str, Any]) -> bytes | None:
    """None: it has to be waited for."""
    return _extension(scope).get("body", _nothing)()


def _extension(scope: Mapping[str, Any]) -> Mapping[str, Any]:
    return scope.get("extensions", {}).get(EXTENSION, {})


def _is_free(cycle: RequestResponseCycle) -> bool:
    """The client is there and takes what it is sent, and the connection lives on after a whole answer."""
    return (
        cycle.keep_alive
        and not cycle.disconnected
        and not cycle.response_started
        and not cycle.flow.write_paused
        and cycle.scope["method"] != "HEAD"
    )


def _nothing() -> None:
    """Nobody knows what has come."""


def _never(_: Reply, __: str) -> bool:
    return False
