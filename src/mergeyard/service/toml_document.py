"""Reads TOML that people wrote, and tells on which line each of its keys stands."""

import re
import tomllib
from collections.abc import Iterator
from typing import cast

from msgspec import Struct

KeyPath = tuple[str, ...]

DEEPEST_NESTING = 32
DEEPEST_KEY = 3
"""Nobody asks for the line of a key deeper than `hosts."git.local".root`."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONG_NUMBER = re.compile(r"[0-9][0-9_]{4000}")
DECODE_ERROR = re.compile(r"(?P<words>.*) \(at (?:line (?P<line>\d+), column \d+|end of document)\)", re.DOTALL)
# A string that is never closed is taken to its end all the same: no text makes the search start over.
TOKENS = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"""(?!")|\Z)'
    r"|'''.*?(?:'''(?!')|\Z)"
    r'|"(?:\\[^\n]|[^"\\\n])*"?'
    r"|'[^'\n]*'?"
    r"|(?P<comment>#[^\n]*)"
    r"|(?P<opening>[\[{])"
    r"|(?P<closing>[\]}])"
    r"|(?P<newline>\n)"
    r"|(?P<separator>[=,])"
    r"|(?P<dot>\.)",
    re.DOTALL,
)


class Document(Struct, frozen=True):
    values: dict[str, object]
    text: str


class Unreadable(Struct, frozen=True):
    """This is no TOML, or more of it than anyone needs."""

    line: int
    words: str


def read(content: bytes) -> Document | Unreadable:
    if content.startswith(BYTE_ORDER_MARK):
        return Unreadable(1, "starts with a byte order mark; save it as UTF-8 without one")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        return Unreadable(content.count(b"\n", 0, error.start) + 1, "not UTF-8; save it as UTF-8")
    return parse(text.replace("\r\n", "\n"))


def parse(text: str) -> Document | Unreadable:
    deep = first_too_deep(text)
    if deep is not None:
        return Unreadable(line_at(text, deep), f"nested deeper than {DEEPEST_NESTING}")
    try:
        return Document(tomllib.loads(text), text)
    except tomllib.TOMLDecodeError as error:
        return invalid(text, str(error))
    except ValueError:
        number = LONG_NUMBER.search(text)
        return Unreadable(line_at(text, number.start() if number else 0), "a number with thousands of digits")


def invalid(text: str, message: str) -> Unreadable:
    found = DECODE_ERROR.fullmatch(message)
    words = found["words"] if found else message
    line = int(found["line"]) if found and found["line"] else line_at(text, len(text.rstrip()))
    return Unreadable(line, f"not valid TOML: {words[:200]}")


def line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def first_too_deep(text: str) -> int | None:
    """Looked at before tomllib follows: it recurses into brackets, and a key of n parts costs it n² steps."""
    brackets = dots = 0
    for token in TOKENS.finditer(text):
        match token.lastgroup:
            case "opening":
                brackets, dots = brackets + 1, 0
            case "closing":
                brackets, dots = brackets - 1, 0
            case "newline" | "separator":
                dots = 0
            case "dot":
                dots += 1
            case _:
                pass
        if max(brackets, dots) > DEEPEST_NESTING:
            return token.start()
    return None


def lines_of_keys(document: Document) -> dict[KeyPath, int]:
    """Where each key is first spoken of: in a statement of its own, in a header, or inside an inline table."""
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for line, statement in statements(document.text):
        paths = list(key_paths(tomllib.loads(statement), ()))
        header = statement.lstrip().startswith("[")
        if header and paths:
            table = paths[-1]
        for path in paths:
            lines.setdefault(path if header else (table + path)[:DEEPEST_KEY], line)
    return lines


def statements(text: str) -> Iterator[tuple[int, str]]:
    """Every statement of valid TOML with the line on which it begins; a value may go on over many lines."""
    start, line, depth = 0, 1, 0
    for token in TOKENS.finditer(text + "\n"):
        depth += {"opening": 1, "closing": -1}.get(token.lastgroup or "", 0)
        if token.lastgroup == "newline" and depth == 0:
            statement = text[start : token.end()]
            if statement.strip():
                yield line, statement
            line += statement.count("\n")
            start = token.end()


def key_paths(table: dict[str, object], above: KeyPath) -> Iterator[KeyPath]:
    for key, value in table.items():
        path = (*above, key)
        yield path
        if isinstance(value, dict) and len(path) < DEEPEST_KEY:
            yield from key_paths(cast(dict[str, object], value), path)
