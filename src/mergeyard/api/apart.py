"""Has a large body understood by a scribe, to the letter as it would be here.

What is said of it goes from process to process as MessagePack; a list of targets goes beside that, as it is stored.
"""

from typing import Any

import structlog
from msgspec import Struct, msgpack
from msgspec.structs import replace

from mergeyard.api.errors import ApiError, Flaw
from mergeyard.api.requests import SetImpactedTargets
from mergeyard.api.routes import PREFIX, TABLE
from mergeyard.api.understanding import Meaning, understand
from mergeyard.ports.scribe import Scribe, ScribeTrouble
from mergeyard.service.errors import Code
from mergeyard.service.written_targets import WrittenTargets

log = structlog.get_logger()


class Question(Struct, frozen=True):
    endpoint: str
    repeatable: bool


class Understood(Struct, frozen=True, tag=True):
    request: bytes
    digest: bytes | None


class Misfit(Struct, frozen=True, tag=True):
    code: Code
    detail: str
    errors: tuple[Flaw, ...]


read_question = msgpack.Decoder(Question).decode
read_said = msgpack.Decoder[Understood | Misfit](Understood | Misfit).decode


def understood_by(scribe: Scribe | None, question: Question, body: bytearray) -> Meaning:
    """Without a scribe, or when it is in trouble, it is done here."""
    if scribe is not None:
        try:
            return _meaning(question, *scribe.read(msgpack.encode(question), body))
        except ScribeTrouble as trouble:
            log.warning("a large body is read beside everything else", trouble=str(trouble))
    return _understand(question, bytes(body))


def answer(question: bytes, body: bytes) -> tuple[bytes, bytes]:
    """What a scribe says of a body, and the long part of it."""
    try:
        meaning = _understand(read_question(question), body)
    except ApiError as error:
        return msgpack.encode(Misfit(error.code, error.detail, error.errors)), b""
    request, long = _without_targets(meaning.request)
    return msgpack.encode(Understood(msgpack.encode(request), meaning.digest)), long


def _meaning(question: Question, said: bytes, long: bytes) -> Meaning:
    heard = read_said(said)
    if isinstance(heard, Misfit):
        raise ApiError(heard.code, heard.detail, errors=heard.errors)
    return Meaning(_with_targets(msgpack.decode(heard.request, type=_kind(question)), long), heard.digest)


def _understand(question: Question, body: bytes) -> Meaning:
    return understand(_kind(question), PREFIX + question.endpoint if question.repeatable else None, body)


def _kind(question: Question) -> type[Struct]:
    return TABLE[question.endpoint]["request"]


def _without_targets(request: Any) -> tuple[Any, bytes]:
    if not isinstance(request, SetImpactedTargets):
        return request, b""
    written = request.impacted_targets
    return replace(request, impacted_targets=WrittenTargets(b"", written.count)), written.body


def _with_targets(request: Any, body: bytes) -> Any:
    if not isinstance(request, SetImpactedTargets):
        return request
    return replace(request, impacted_targets=WrittenTargets(body, request.impacted_targets.count))
