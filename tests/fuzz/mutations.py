"""Mutates valid examples: members are dropped, retyped, nested or made huge, and the bytes are cut or replaced."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

PLACEHOLDERS: dict[str, bytes] = {
    "<deep>": b"[" * 50_000 + b"]" * 50_000,
    "<long>": b'"' + b"x" * 70_000 + b'"',
    "<digits>": b"9" * 6_000,
    "<many>": b"[" + b"0," * 20_000 + b"0]",
    "<members>": b"{" + b",".join(b'"%d":[]' % at for at in range(5_000)) + b"}",
    "<no text>": b'"\xff\xfe"',
    "<half>": b'"\\ud800"',
    "<nan>": b"NaN",
}
"""What no JSON encoder produces, and what is too long to be shown: the names are placeholders until the value is
encoded."""

odd_words = st.sampled_from(
    [
        "", " ", ".", "..", "/", "//", "-", "--help", "@", "HEAD", "\0", "a\0b", "\n", "\r\n", "\x85", "a\u2028b",
        "\ufeff", "\u202e", "İ", "ß", "é", "e\u0301", "\uff11\uff12", "²", "1e3", "0x10", "-1", "0", "9" * 30, "null",
        "true", "refs/heads/x", "javascript:alert(1)", "a" * 300, "\U0001f600", "{}", "[]", "%00", "'; --", "<b>",
        *PLACEHOLDERS,
    ]
)  # fmt: skip
words = st.text(max_size=20) | odd_words
numbers = st.integers() | st.sampled_from([0, -1, 1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**40])
leaves = st.none() | st.booleans() | numbers | st.floats(allow_nan=False, allow_infinity=False) | words
anything: SearchStrategy[Any] = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4), max_leaves=8
)

Place = tuple[Any, Any]
"""A list or an object, and a key or index in it."""
Mutation = Callable[[DrawFn, Any, Any], None]


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


def enlarge(draw: DrawFn, container: Any, key: Any) -> None:
    container[key] = draw(st.sampled_from(["<deep>", "<long>", "<digits>", "<many>", "<members>"]))


MUTATIONS: list[Mutation] = [drop, retype, retype, retype, nest, enlarge]


@st.composite
def mutated(draw: DrawFn, examples: SearchStrategy[Any]) -> Any:
    """One of the examples, with at most three mutations."""
    value = deepcopy(draw(examples))
    for _ in range(draw(st.integers(0, 3))):
        found = list(places(value))
        if found:
            draw(st.sampled_from(MUTATIONS))(draw, *found[draw(st.integers(0, len(found) - 1))])
    return value


def encoded(value: Any) -> bytes:
    raw = json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")
    for name, instead in PLACEHOLDERS.items():
        raw = raw.replace(json.dumps(name).encode(), instead)
    return raw


@st.composite
def corrupted(draw: DrawFn, whole: SearchStrategy[bytes]) -> bytes:
    """Mostly unchanged; sometimes cut off, or with other bytes in the middle."""
    raw = draw(whole)
    if draw(st.integers(0, 3)):
        return raw
    at = draw(st.integers(0, len(raw)))
    return raw[:at] + draw(st.binary(max_size=8)) + raw[at + draw(st.integers(0, len(raw))) :]


def mutated_json(*examples: Any) -> SearchStrategy[bytes]:
    return corrupted(mutated(st.sampled_from(examples)).map(encoded))
