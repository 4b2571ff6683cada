"""Request bodies: each is a valid request, or is refused with a code and a pointer."""

import json
from typing import Any, cast

import msgspec
from hypothesis import strategies as st
from msgspec import Struct

from mergeyard.api import fields, routes, validation
from mergeyard.api.openapi import EXAMPLES
from mergeyard.api.queues import parse_metrics_query
from mergeyard.api.request_schemas import GetMergeQueueMetrics
from mergeyard.api.responses import ERROR_KINDS, ApiError
from mergeyard.domain.timestamps import Instant
from mergeyard.service.errors import Code
from tests.fuzz.mutations import anything, corrupted, encoded, mutated, mutated_json, words
from tests.fuzz.properties import holds_for, outcome

POSTED = {name: example.request for name, example in EXAMPLES.items() if example.request is not None}


@st.composite
def posted(draw: st.DrawFn) -> tuple[str, bytes]:
    """Some with the members of another endpoint."""
    name = draw(st.sampled_from(sorted(POSTED)))
    other = draw(st.sampled_from(sorted(POSTED)))
    members = dict[str, Any](POSTED[name])
    if draw(st.booleans()):
        members |= POSTED[other]
    return name, draw(corrupted(mutated(st.just(members)).map(encoded)))


@holds_for(posted())
def body_is_a_request_or_refused_with_a_pointer(sent: tuple[str, bytes]) -> None:
    name, body = sent
    kind = request_type(name)
    request = outcome(lambda: validation.decode_request(kind, body), ApiError)
    with_digest = outcome(lambda: validation.decode_request_with_digest(kind, name, body), ApiError)
    if isinstance(request, ApiError) or isinstance(with_digest, ApiError):
        check(request)
        check(with_digest)
        return
    assert isinstance(request, kind)
    assert with_digest[0] == request
    assert len(with_digest[1]) == 32


@holds_for(mutated_json(*POSTED.values()))
def members_are_the_same_for_another_parser(body: bytes) -> None:
    members = outcome(lambda: validation.split_members(body), ApiError)
    if isinstance(members, ApiError):
        check(members)
        return
    decoded = {name: json.loads(bytes(raw), parse_int=str) for name, raw in members.items()}
    assert decoded == json.loads(body, parse_int=str)


@holds_for(mutated_json(*POSTED.values()), st.sampled_from(sorted(POSTED)))
def digest_does_not_depend_on_white_space_or_the_order_of_members(body: bytes, name: str) -> None:
    kind = request_type(name)
    read = outcome(lambda: validation.decode_request_with_digest(kind, name, body), ApiError)
    if isinstance(read, ApiError):
        return
    members = reversed(validation.split_members(body).items())
    lines = [json.dumps(key).encode() + b" :\t" + msgspec.json.format(raw, indent=3) for key, raw in members]
    assert validation.decode_request_with_digest(kind, name, b"{" + b"\r\n,".join(lines) + b"}")[1] == read[1]


@holds_for(st.dictionaries(words, anything, max_size=3), st.sampled_from(sorted(POSTED)))
def unknown_members_are_ignored_or_named(extra: dict[str, Any], name: str) -> None:
    kind = request_type(name)
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    strange = {key: value for key, value in extra.items() if key not in known}
    plain = validation.decode_request(kind, encoded(POSTED[name]))
    read = outcome(lambda: validation.decode_request(kind, encoded(strange | POSTED[name])), ApiError)
    if isinstance(read, ApiError) and read.code is Code.INVALID_JSON:
        return
    if strange.keys() - {"pr"} and name in ("createQueue", "updateQueue", "replayQueue"):
        check(read)
        assert isinstance(read, ApiError)
        assert read.code is Code.UNKNOWN_FIELD
    else:
        assert read == plain


def request_type(name: str) -> type[Struct]:
    return cast("type[Struct]", routes.TABLE[name]["request"])


@holds_for(
    st.binary(max_size=60) | words.map(lambda word: f"repo=acme/{word}&repoHost={word}".encode(errors="replace"))
)
def query_is_a_request_or_refused(raw: bytes) -> None:
    request = outcome(lambda: parse_metrics_query(raw), ApiError)
    assert isinstance(request, GetMergeQueueMetrics) or request.code is Code.INVALID_REQUEST


digits = st.text("0123456789", min_size=1, max_size=3)
nearly_times = st.lists(digits | st.sampled_from(list("-:T.,Z+ tz")) | words, max_size=16).map("".join)


@holds_for(nearly_times | words)
def time_is_parsed_or_none(text: str) -> None:
    instant = fields.parse_time(text)
    assert instant is None or fields.parse_time(fields.format_time(instant)) == instant


@holds_for(st.integers(min_value=-62_135_596_800_000, max_value=253_402_300_799_999))
def formatted_time_is_parsed_unchanged(milliseconds: int) -> None:
    assert fields.parse_time(fields.format_time(Instant(milliseconds))) == milliseconds


def check(refused: object) -> None:
    assert isinstance(refused, ApiError)
    assert ERROR_KINDS[refused.code].status == 400
    assert refused.detail
    assert len(refused.detail) < 5_000, "the detail is too long"
    for error in refused.errors:
        assert not error.pointer or error.pointer.startswith("/")
        assert error.message
        assert len(error.pointer) + len(error.message) < 5_000
