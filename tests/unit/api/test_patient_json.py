"""A large object is decoded piece by piece, and means what it means to whoever decodes it at once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeyard.api.patient_json import Irregular, members

DECODER = json.JSONDecoder()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
BLANKS = st.text(" \t\n\r", max_size=3)


@given(st.dictionaries(st.text(), VALUES, min_size=1), BLANKS, BLANKS)
def test_patience_finds_the_same_members(value: dict[str, Any], before: str, between: str):
    text = before + json.dumps(value, separators=(f"{between},{before}", f"{before}:{between}")) + between
    assert dict(members(DECODER, text)) == value


@given(st.text('{}[]:,"ab1 \n'))
def test_what_is_no_object_is_never_taken_for_one(text: str):
    try:
        found = members(DECODER, text)
    except Irregular:
        return
    assert dict(found) == json.loads(text)


def test_a_member_that_stands_twice_is_found_twice():
    assert members(DECODER, '{"a": 1, "a": [2, 3]}') == [("a", 1), ("a", [2, 3])]


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a":1}x', '{"a":[1,]}', '{"a":1,}', "{1:2}", '{"a" 1}', '{"a":[1'])
def test_what_is_wrong_is_left_to_whoever_can_say_so(text: str):
    with pytest.raises(Irregular):
        members(DECODER, text)
