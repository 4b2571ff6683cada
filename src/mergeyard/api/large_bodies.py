"""Parses large request bodies in another process, with the same result as in this one.

Both processes exchange MessagePack; impacted targets follow in their stored encoding.
"""

from typing import Any

import structlog
from msgspec import Struct, msgpack
from msgspec.structs import replace

from mergeyard.api.endpoint import PREFIX
from mergeyard.api.json_parser import ParsedRequest, parse_request
from mergeyard.api.request_schemas import SetImpactedTargets
from mergeyard.api.responses import ApiError, ValidationIssue
from mergeyard.ports.external import BodyParser, BodyParserUnavailable
from mergeyard.service.errors import Code
from mergeyard.service.impacted_targets import EncodedTargets

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
    errors: tuple[ValidationIssue, ...]


read_question = msgpack.Decoder(Question).decode
read_said = msgpack.Decoder[Understood | Misfit](Understood | Misfit).decode


def understood_by(
    body_parser: BodyParser | None, request_type: type[Struct], question: Question, body: bytearray
) -> ParsedRequest:
    """Parses the body here if there is no other process, or if it fails."""
    if body_parser is not None:
        try:
            return _meaning(request_type, *body_parser.parse(msgpack.encode(question), body))
        except BodyParserUnavailable as trouble:
            log.warning("body_parser_unavailable", error=str(trouble))
    return understand(request_type, question, bytes(body))


def _meaning(request_type: type[Struct], said: bytes, long: bytes) -> ParsedRequest:
    heard = read_said(said)
    if isinstance(heard, Misfit):
        raise ApiError(heard.code, heard.detail, errors=heard.errors)
    return ParsedRequest(_with_targets(msgpack.decode(heard.request, type=request_type), long), heard.digest)


def understand(request_type: type[Struct], question: Question, body: bytes) -> ParsedRequest:
    return parse_request(request_type, PREFIX + question.endpoint if question.repeatable else None, body)


def without_targets(request: Any) -> tuple[Any, bytes]:
    if not isinstance(request, SetImpactedTargets):
        return request, b""
    written = request.impacted_targets
    return replace(request, impacted_targets=EncodedTargets(b"", written.count)), written.body


def _with_targets(request: Any, body: bytes) -> Any:
    if not isinstance(request, SetImpactedTargets):
        return request
    return replace(request, impacted_targets=EncodedTargets(body, request.impacted_targets.count))
