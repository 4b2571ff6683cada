"""Bends good examples until they are odd: members dropped, retyped, nested or made huge, and the bytes torn."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

UNWRITABLE: dict[str, bytes] = {
    "<deep>": b"[" * 50_000 + b"]" * 50_000,
    "<long>": b'"' + b"x" * 70_000 + b'"',
    "<digits>": b"9" * 6_000,
    "<many>": b"[" + b"0," * 20_000 + b"0]",
    "<members>": b"{" + b",".join(b'"%d":[]' % at for at in range(5_000)) + b"}",
    "<no text>": b'"\xff\xfe"',
    "<half>": b'"\\ud800"',
    "<nan>": b"NaN",
}
"""What no good writer of JSON would write, and what would fill pages if it were shown: the names stand for it until the
whole is written."""

odd_words = st.sampled_from(
    [
        "", " ", ".", "..", "/", "//", "-", "--help", "@", "HEAD", "\0", "a\0b", "\n", "\r\n", "\x85", "a\u2028b",
        "\ufeff", "\u202e", "İ", "ß", "é", "e\u0301", "\uff11\uff12", "²", "1e3", "0x10", "-1", "0", "9" * 30, "null",
        "true", "refs/heads/x", "javascript:alert(1)", "a" * 300, "\U0001f600", "{}", "[]", "%00", "'; --", "<b>",
        *UNWRITABLE,
    ]
)  # fmt: skip
words = st.text(max_size=20) | odd_words
numbers = st.integers() | st.sampled_from([0, -1, 1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**40])
leaves = st.none() | st.booleans() | numbers | st.floats(allow_nan=False, allow_infinity=False) | words
anything: SearchStrategy[Any] = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4), max_leaves=8
)

Place = tuple[Any, Any]
"""A list or an object, and where in it."""
Way = Callable[[DrawFn, Any, Any], None]


def places(value: Any) -> Iterator[Place]:
    if not isinstance(value, dict | list):
        return
    inside = cast(Any, value.items() if isinstance(value, dict) else enumerate(cast(list[Any], value)))
    for key, item in list(inside):
        yield value, key
        yield from places(item)


def drop(_: DrawFn, container: Any, key: Any) -> None:
    del container[key]


def retype(draw: DrawFn, container: Any, key: Any) -> None:
    container[key] = draw(anything)


def nest(draw: DrawFn, container: Any, key: Any) -> None:
    for _ in range(draw(st.sampled_from([1, 2, 40]))):
        container[key] = [container[key]] if draw(st.booleans()) else {key: container[key]}


def swell(draw: DrawFn, container: Any, key: Any) -> None:
    container[key] = draw(st.sampled_from(["<deep>", "<long>", "<digits>", "<many>", "<members>"]))


WAYS: list[Way] = [drop, retype, retype, retype, nest, swell]


@st.composite
def bent(draw: DrawFn, examples: SearchStrategy[Any]) -> Any:
    """One of the examples, with at most three places bent."""
    value = deepcopy(draw(examples))
    for _ in range(draw(st.integers(0, 3))):
        there = list(places(value))
        if there:
            draw(st.sampled_from(WAYS))(draw, *there[draw(st.integers(0, len(there) - 1))])
    return value


def written(value: Any) -> bytes:
    raw = json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")
    for name, instead in UNWRITABLE.items():
        raw = raw.replace(json.dumps(name).encode(), instead)
    return raw


@st.composite
def torn(draw: DrawFn, whole: SearchStrategy[bytes]) -> bytes:
    """Mostly as it was; sometimes cut short, or with other bytes in the middle of it."""
    raw = draw(whole)
    if draw(st.integers(0, 3)):
        return raw
    at = draw(st.integers(0, len(raw)))
    return raw[:at] + draw(st.binary(max_size=8)) + raw[at + draw(st.integers(0, len(raw))) :]


def bent_json(*examples: Any) -> SearchStrategy[bytes]:
    return torn(bent(st.sampled_from(examples)).map(written))
