"""Reading TOML that strangers wrote, and finding the lines of its keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeyard.service.toml_document import Document, Unreadable, lines_of_keys, read

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


def unreadable(content: bytes) -> Unreadable:
    answer = read(content)
    assert isinstance(answer, Unreadable)
    return answer


def document(content: bytes) -> Document:
    answer = read(content)
    assert isinstance(answer, Document)
    return answer


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_every_key_has_the_line_on_which_it_is_first_spoken_of(ending: str):
    content = EVERY_FORM.replace("\n", ending).encode()
    assert lines_of_keys(document(content)) == LINES


@pytest.mark.parametrize(
    ("content", "line", "words"),
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
def test_what_cannot_be_read_is_told_with_its_line(content: bytes, line: int, words: str):
    assert unreadable(content) == Unreadable(line, words)


def test_brackets_and_dots_in_strings_comments_and_numbers_are_no_nesting():
    text = b"a = '" + b"[." * 50 + b"'\nb = [" + b"1.5, " * 50 + b"]\n# " + b"[." * 50
    assert len(document(text).values) == 2


def test_32_levels_are_enough_for_everybody():
    assert document(b"a = " + b"[" * 32 + b"]" * 32)
    assert document(b"a." * 32 + b"a = 1")


def test_long_words_of_trouble_are_cut():
    key = b"k" * 10_000
    assert len(unreadable(b"[" + key + b"]\n[" + key + b"]").words) < 300


@given(st.binary() | st.text(alphabet="ab.=[]{},'\"\\#\n 1").map(str.encode))
def test_no_content_is_trouble(content: bytes):
    match read(content):
        case Document() as readable:
            top = {path[0] for path in lines_of_keys(readable)}
            assert top == set(readable.values)
        case Unreadable(line=line):
            assert 1 <= line <= content.count(b"\n") + 1
