"""Parsing of untrusted TOML, and the line numbers of its keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeyard.service.repo_config import InvalidToml, TomlDocument, find_key_lines, parse_toml

EVERY_FORM = '''\
# version = 0
version = 1   # version = 2

text = """
version = 3
[checks]
\\""" still text """"
raw = \'\'\'
version = 4
\'\'\'\'
"quoted key" = "a \\"quoted\\" # value ["
a . b = 1
a.c = [
  "checks = 1",
  ["checks"], # ]
  { d = 1 }
]
inline = { one = 1, two = { three = 3 } }

  [ checks ]
unit = "make"
'long.name' = 'x'

[hosts."git.local"]
root = "repos"
deep.er.still = 1

[[list]]
item = 1
[[list]]
other = 1'''

LINES = {
    ("version",): 2,
    ("text",): 4,
    ("raw",): 8,
    ("quoted key",): 11,
    ("a",): 12,
    ("a", "b"): 12,
    ("a", "c"): 13,
    ("inline",): 18,
    ("inline", "one"): 18,
    ("inline", "two"): 18,
    ("inline", "two", "three"): 18,
    ("checks",): 20,
    ("checks", "unit"): 21,
    ("checks", "long.name"): 22,
    ("hosts",): 24,
    ("hosts", "git.local"): 24,
    ("hosts", "git.local", "root"): 25,
    ("hosts", "git.local", "deep"): 26,
    ("list",): 28,
    ("list", "item"): 29,
    ("list", "other"): 31,
}


def parse_invalid(content: bytes) -> InvalidToml:
    result = parse_toml(content)
    assert isinstance(result, InvalidToml)
    return result


def parse_valid(content: bytes) -> TomlDocument:
    result = parse_toml(content)
    assert isinstance(result, TomlDocument)
    return result


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_every_key_has_the_line_on_which_it_occurs_first(ending: str):
    content = EVERY_FORM.replace("\n", ending).encode()
    assert find_key_lines(parse_valid(content)) == LINES


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"a = 1\nb =\n", 2, "not valid TOML: Invalid value"),
        (b"a = 1\na = 2\n", 2, "not valid TOML: Cannot overwrite a value"),
        (b"a = 1\n[b\n\n\n", 2, "not valid TOML: Expected ']' at the end of a table declaration"),
        (b"a = 1\nb = '''x\n\n", 2, "not valid TOML: Expected \"'''\""),
        (b"\xef\xbb\xbfa = 1", 1, "starts with a byte order mark; save it as UTF-8 without one"),
        (b"a = 1\nb = '\xff'", 2, "not UTF-8; save it as UTF-8"),
        ("a = 1".encode("utf-16"), 1, "not UTF-8; save it as UTF-8"),
        (b"a = 1\nb = " + b"9" * 5000, 2, "a number with thousands of digits"),
        (b"a = 1\nb = " + b"[" * 5000, 2, "nested deeper than 32"),
        (b"a = 1\nb = " + b"{b=" * 33, 2, "nested deeper than 32"),
        (b"a = 1\n" + b"b." * 5000 + b"b = 1", 2, "nested deeper than 32"),
        (b"a = 1\n[" + b"b." * 5000 + b"b]", 2, "nested deeper than 32"),
    ],
)
def test_an_error_has_its_line(content: bytes, line: int, message: str):
    assert parse_invalid(content) == InvalidToml(line, message)


def test_brackets_and_dots_in_strings_comments_and_numbers_do_not_count_as_nesting():
    text = b"a = '" + b"[." * 50 + b"'\nb = [" + b"1.5, " * 50 + b"]\n# " + b"[." * 50
    assert len(parse_valid(text).values) == 2


def test_32_levels_of_nesting_are_allowed():
    assert parse_valid(b"a = " + b"[" * 32 + b"]" * 32)
    assert parse_valid(b"a." * 32 + b"a = 1")


def test_a_long_error_message_is_truncated():
    key = b"k" * 10_000
    assert len(parse_invalid(b"[" + key + b"]\n[" + key + b"]").message) < 300


@given(st.binary() | st.text(alphabet="ab.=[]{},'\"\\#\n 1").map(str.encode))
def test_no_content_raises_an_exception(content: bytes):
    match parse_toml(content):
        case TomlDocument() as document:
            top = {path[0] for path in find_key_lines(document)}
            assert top == set(document.values)
        case InvalidToml(line=line):
            assert 1 <= line <= content.count(b"\n") + 1
