"""JSON is read as the contract wants it, cheaply and within bounds."""

import json
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mergeyard.api.errors import ApiError
from mergeyard.api.strict_json import LARGE, PIECE, parse

MIB = 1024 * 1024


def code(body: bytes) -> str:
    with pytest.raises(ApiError) as refused:
        parse(body)
    return refused.value.code


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{} {}",
        b"{}x",
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":"\xff"}',
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        "{}".encode("utf-16-le"),
        b'{"a":' + b"1" * 5000 + b"}",
        b'{"a":-' + b"1" * 1001 + b"}",
        b"{'a':1}",
        b'{"a":1,}',
        b'{"a":"\n"}',
        b'{"a":01}',
        b"]" * 100,
    ],
)
def test_what_is_not_json_is_refused(body: bytes):
    assert code(body) == "invalid_json"


@pytest.mark.parametrize("body", [b"[]", b"1", b"null", b'"a"', b"true"])
def test_json_that_is_no_object_does_not_fit(body: bytes):
    assert code(body) == "invalid_request"


@pytest.mark.parametrize("body", [b'{"a":1,"a":1}', b'{"a":{"b":1,"c":2,"b":3}}', b'{"a":1,"\\u0061":1}'])
def test_a_key_that_stands_twice_is_refused(body: bytes):
    assert code(body) == "duplicate_key"


def test_the_key_that_stands_twice_is_named():
    with pytest.raises(ApiError, match="'pr'"):
        parse(b'{"a":1,"pr":1,"pr":2}')


def test_depth_of_32_is_taken_and_33_is_refused():
    def nested(depth: int) -> bytes:
        return b'{"a":' * (depth - 1) + b"{}" + b"}" * (depth - 1)

    assert parse(nested(32))
    assert code(nested(33)) == "json_too_deep"


def test_brackets_in_strings_nest_nothing():
    assert parse(json.dumps({"a": "[" * 100, "b": '\\"{' * 100}).encode())


def test_10000_containers_are_taken_and_one_more_is_refused():
    def containers(count: int) -> bytes:
        return b'{"a":[' + b",".join([b"[]"] * (count - 2)) + b"]}"

    assert parse(containers(10_000))
    assert code(containers(10_001)) == "json_too_complex"


def test_100000_members_are_taken_and_one_more_is_refused():
    def members(count: int) -> bytes:
        return b"{" + b",".join(b'"%d":1' % at for at in range(count)) + b"}"

    assert len(parse(members(100_000))) == 100_000
    assert code(members(100_001)) == "json_too_complex"


@pytest.mark.parametrize(
    "body", [b'{"a":"\\ud800"}', b'{"a":["\\udfff x"]}', b'{"\\uD834":1}', b'{"a":"\\u0000"}', b'{"\\u0000":1}']
)
def test_a_lone_surrogate_or_a_nul_is_no_text(body: bytes):
    assert code(body) == "invalid_string"


def test_a_pair_of_surrogates_and_an_escaped_backslash_are_text():
    assert parse(b'{"a":"\\ud83d\\ude00","b":"\\\\u0000"}') == {"a": "😀", "b": "\\u0000"}


def test_many_digits_in_a_string_are_no_number():
    assert parse(b'{"a":"' + b"1" * 5000 + b'"}')


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"[" * 20 * MIB, "json_too_deep"),
        (b'{"a":' * 4 * MIB, "json_too_deep"),
        (b"[" + b"{}," * 7 * MIB, "json_too_complex"),
        (b'"' + b"\\" * 20 * MIB, "invalid_json"),
        (b"[" * 33 + b'"' + b"a" * 20 * MIB, "json_too_deep"),
        (b"1" * 20 * MIB, "invalid_json"),
        (b"[" + b"[]," * 40 + b'"' + b'\\"' * 8 * MIB, "invalid_json"),
        (b"[" + b'"%b",' % (b"1" * 1000) * 20_000, "invalid_json"),
    ],
    ids=["lists", "objects", "many", "string without end", "deep string", "digits", "quotes", "digits in strings"],
)
def test_a_bomb_of_20_mib_is_refused_in_a_moment(body: bytes, expected: str):
    began = perf_counter()
    assert code(body) == expected
    assert perf_counter() - began < 5


def test_a_flat_list_has_no_cap():
    body = b'{"impactedTargets":[' + b'"//some[x]:target",' * MIB + b'"//last"]}'
    assert len(parse(body)["impactedTargets"]) == MIB + 1


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(texts, values, max_size=4))
def test_whatever_json_writes_is_read_as_it_was(value: dict[str, Any]):
    assert parse(json.dumps(value).encode()) == value
    assert parse(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize("before", range(-6, 2))
def test_what_stands_where_a_large_body_is_cut_is_found_all_the_same(before: int):
    start = PIECE + before - len('{"a":"')
    assert code(b'{"a":"' + b"a" * start + b'\\u0000"}') == "invalid_string"
    assert code(b'{"a":"' + b"a" * (start - 600) + b'","b":' + b"1" * 1001 + b"}") == "invalid_json"


def test_a_large_body_is_read_like_a_small_one():
    value = {"names": [f"name {number}" for number in range(50_000)], "none": [], "deep": {"a": [1, {"b": None}]}}
    body = json.dumps(value, indent=1).encode()
    assert len(body) > LARGE
    assert parse(body) == value
    assert code(body[:-1]) == "invalid_json"
    assert code(body[:-1] + b',"none":1}') == "duplicate_key"
    assert code(body[:-1] + b',"more":{"a":1,"a":2}}') == "duplicate_key"
    assert code(body[:-1] + b',"more":NaN}') == "invalid_json"
