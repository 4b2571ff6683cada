"""Understands what was heard: an answer, or trouble that may pass, or trouble that will not."""

from typing import TypeVar, assert_never

import msgspec
from msgspec import Struct

from mergeyard.client.errors import MergeyardError, Problem, Unreachable
from mergeyard.client.steps import Reply, Silence

Answer = TypeVar("Answer")

TOO_MANY = 429


class Trouble(Struct, frozen=True):
    error: MergeyardError | Unreachable
    may_pass: bool
    retry_after: str | None = None


def understood(answer: type[Answer], heard: Reply | Silence) -> Answer | Trouble:
    match heard:
        case Silence():
            return Trouble(Unreachable(heard.words), may_pass=True)
        case Reply(status=200):
            return _answer(answer, heard)
        case Reply():
            return _refusal(heard)
        case _:
            assert_never(heard)


def _answer(answer: type[Answer], reply: Reply) -> Answer | Trouble:
    try:
        if issubclass(answer, str):
            return answer(reply.body.decode())
        return msgspec.json.decode(reply.body, type=answer)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _not_ours(reply)


def _refusal(reply: Reply) -> Trouble:
    try:
        problem = msgspec.json.decode(reply.body, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _not_ours(reply)
    return Trouble(MergeyardError(problem), problem.retryable, reply.retry_after)


def _not_ours(reply: Reply) -> Trouble:
    """Somebody between us and the server, or no Mergeyard at all."""
    words = f"It answered {reply.status}, but not as Mergeyard does: check the address."
    return Trouble(Unreachable(words), reply.status >= 500 or reply.status == TOO_MANY, reply.retry_after)
