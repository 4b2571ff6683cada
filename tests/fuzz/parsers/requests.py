"""Whatever is posted to an endpoint is a request that it knows, or a refusal with a code and a place."""

from typing import Any, cast

import msgspec
from hypothesis import strategies as st
from msgspec import Struct

from mergeyard.api import query, routes, strict_json, times, tolerance
from mergeyard.api.errors import KINDS, ApiError
from mergeyard.api.examples import EXAMPLES
from mergeyard.api.requests import GetMergeQueueMetrics
from mergeyard.api.understanding import digest
from mergeyard.domain.instants import Instant
from mergeyard.service.errors import Code
from tests.fuzz.bending import anything, bent, bent_json, torn, words, written
from tests.fuzz.effort import outcome
from tests.fuzz.laws import holds_for

POSTED = {name: example.request for name, example in EXAMPLES.items() if example.request is not None}


@st.composite
def posted(draw: st.DrawFn) -> tuple[str, bytes]:
    """Also with members of others, and with settings."""
    name = draw(st.sampled_from(sorted(POSTED)))
    lent = draw(st.sampled_from(sorted(POSTED)))
    members = dict[str, Any](POSTED[name])
    if draw(st.booleans()):
        members |= POSTED[lent]
    return name, draw(torn(bent(st.just(members)).map(written)))


@holds_for(posted())
def a_body_is_a_request_or_a_refusal_with_a_place(sent: tuple[str, bytes]) -> None:
    name, body = sent
    kind = cast("type[Struct]", routes.TABLE[name]["request"])
    members = outcome(lambda: strict_json.parse(body), ApiError)
    request = members if isinstance(members, ApiError) else outcome(lambda: tolerance.request(kind, members), ApiError)
    if isinstance(request, ApiError) or isinstance(members, ApiError):
        check(request)
        return
    assert isinstance(request, kind)
    assert len(digest(name, members)) == 32


@holds_for(bent_json(*POSTED.values()))
def what_is_read_means_the_same_to_everybody_who_reads_it(body: bytes) -> None:
    """Whoever reads the same bytes less strictly, reads the same."""
    members = outcome(lambda: strict_json.parse(body), ApiError)
    if isinstance(members, ApiError):
        check(members)
        return
    assert msgspec.json.decode(body, strict=False) == members


@holds_for(st.dictionaries(words, anything, max_size=3), st.sampled_from(sorted(POSTED)))
def unknown_members_are_ignored_or_named(extra: dict[str, Any], name: str) -> None:
    kind = cast("type[Struct]", routes.TABLE[name]["request"])
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    strange = {key: value for key, value in extra.items() if key not in known}
    plain = tolerance.request(kind, POSTED[name])
    read = outcome(lambda: tolerance.request(kind, strange | POSTED[name]), ApiError)
    if strange and name in ("createQueue", "updateQueue", "replayQueue"):
        check(read)
        assert isinstance(read, ApiError)
        assert read.code is Code.UNKNOWN_FIELD
    else:
        assert read == plain


@holds_for(
    st.binary(max_size=60) | words.map(lambda word: f"repo=acme/{word}&repoHost={word}".encode(errors="replace"))
)
def a_query_is_a_request_or_does_not_fit(raw: bytes) -> None:
    request = outcome(lambda: query.metrics_request(raw), ApiError)
    assert isinstance(request, GetMergeQueueMetrics) or request.code is Code.INVALID_REQUEST


digits = st.text("0123456789", min_size=1, max_size=3)
nearly_times = st.lists(digits | st.sampled_from(list("-:T.,Z+ tz")) | words, max_size=16).map("".join)


@holds_for(nearly_times | words)
def a_time_is_read_or_it_is_none(text: str) -> None:
    instant = times.read(text)
    assert instant is None or times.read(times.written(instant)) == instant


@holds_for(st.integers(min_value=-62_135_596_800_000, max_value=253_402_300_799_999))
def a_time_that_is_written_is_read_again(milliseconds: int) -> None:
    assert times.read(times.written(Instant(milliseconds))) == milliseconds


def check(refused: object) -> None:
    assert isinstance(refused, ApiError)
    assert KINDS[refused.code].status == 400
    assert refused.detail
    assert len(refused.detail) < 5_000, "nobody reads so long a detail"
    for flaw in refused.errors:
        assert not flaw.pointer or flaw.pointer.startswith("/")
        assert flaw.message
        assert len(flaw.pointer) + len(flaw.message) < 5_000
