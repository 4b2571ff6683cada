"""The output of a check as its page shows it: numbered lines with colors, a search, and a guess at the line that tells
why the check failed.

The output comes from the code under test. Every text is escaped, a color becomes one of 16 CSS classes, and all other
terminal control sequences are removed.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from urllib.parse import urlencode

from markupsafe import Markup, escape
from msgspec import Struct

MAX_BYTES = 256 * 1024
MAX_GROWING_BYTES = 64 * 1024
"""While the check runs, its page is fetched again every two seconds."""
MAX_LINES = 10_000
MAX_MARKS = 2000
"""Matches that the search marks in the text; it counts all lines that match."""
MAX_QUERY_LENGTH = 200

CONTROL_SEQUENCES = re.compile(r"\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Colors, cursor movements, hyperlinks and others. The groups are the parameters and the kind of a sequence."""
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that reverse the order of the characters after them."""
FAILURE = re.compile(
    r"(?<!\b0 )(?<!\bno )(?:traceback|(?:error|failed|failure)(?!s?:? 0\b)|fatal|panic|exception|\bfail\b)",
    re.IGNORECASE,
)
"""Not in `0 errors`, `no failures` and `failed: 0`."""


class Tail(Struct, frozen=True):
    lines: Sequence[str]
    first_line: int
    """The number of its first line in the whole output."""
    is_complete: bool


def extract_tail(output: bytes, max_bytes: int = MAX_BYTES, max_lines: int = MAX_LINES) -> Tail:
    """The last whole lines, or the end of the last line if that line alone exceeds the limit."""
    end = output[-max_bytes:]
    if len(output) > max_bytes:
        end = end.partition(b"\n")[2] or end
    before = output[: len(output) - len(end)]
    text = end.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    lines = text.removesuffix("\n").split("\n") if text else []
    dropped = max(0, len(lines) - max_lines)
    return Tail(lines[dropped:], _count_line_ends(before) + dropped + 1, not before and not dropped)


def _count_line_ends(output: bytes) -> int:
    """Also counts a return to the start of the line, as progress bars use it."""
    return output.count(b"\n") + output.count(b"\r") - output.count(b"\r\n")


class Line(Struct, frozen=True):
    number: int
    text: str
    styles: tuple[tuple[int, str], ...] = ()
    """Where in the text a style begins, and its CSS classes; a style ends where the next one begins."""


def read_lines(tail: Tail) -> list[Line]:
    style, lines = Style(), list[Line]()
    for number, text in enumerate(tail.lines, start=tail.first_line):
        line, style = _read_line(number, text, style)
        lines.append(line)
    return lines


class Style(Struct, frozen=True):
    color: int | None = None
    bold: bool = False

    @property
    def classes(self) -> str:
        color = "" if self.color is None else f"c{self.color}"
        return f"{color} bold".lstrip() if self.bold else color


def _read_line(number: int, raw: str, style: Style) -> tuple[Line, Style]:
    """The line, and the style that continues in the next one."""
    parts, styles, length, end = list[str](), [(0, style.classes)], 0, 0
    for sequence in CONTROL_SEQUENCES.finditer(raw):
        parts.append(raw[end : sequence.start()])
        length, end = length + sequence.start() - end, sequence.end()
        if sequence[2] == "m":
            style = _apply_colors(style, sequence[1])
            styles.append((length, style.classes))
    parts.append(raw[end:])
    text = UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", "".join(parts))
    return Line(number, text, tuple(styles) if len(styles) > 1 or style.classes else ()), style


def _apply_colors(style: Style, parameters: str) -> Style:
    """Knows 16 foreground colors and bold. Of the other attributes it skips exactly the parameters that they take."""
    codes = iter([int(code) if code.isdecimal() and len(code) < 4 else -1 for code in (parameters or "0").split(";")])
    color, bold = style.color, style.bold
    for code in codes:
        match code:
            case 0:
                color, bold = None, False
            case 1 | 22:
                bold = code == 1
            case 39:
                color = None
            case 38 | 48:
                indexed = _read_extended_color(codes)
                color = indexed if code == 38 else color
            case _:
                color = code - 30 if 30 <= code <= 37 else code - 82 if 90 <= code <= 97 else color
    return Style(color, bold)


def _read_extended_color(codes: Iterator[int]) -> int | None:
    """None for a color that is not one of the 16: the text then has the normal color."""
    kind = next(codes, -1)
    values = [next(codes, -1) for _ in range(1 if kind == 5 else 3 if kind == 2 else 0)]
    return values[0] if kind == 5 and 0 <= values[0] < 16 else None


class Failure(Struct, frozen=True):
    line: int
    word: str


def find_failure(lines: Iterable[Line]) -> Failure | None:
    """A guess: the first line with a word that is usual in messages about failures."""
    for line in lines:
        if found := FAILURE.search(line.text):
            return Failure(line.number, found[0].lower())
    return None


class Search(Struct, frozen=True):
    query: str
    hits: Sequence[int]
    """The numbers of the lines with a match."""
    chosen: int
    """Which of the hits the reader is at, from 1; 0 without hits."""

    @property
    def line(self) -> int | None:
        return self.hits[self.chosen - 1] if self.hits else None


def search(lines: Iterable[Line], query: str, chosen: int) -> Search:
    """Ignores upper and lower case. A number of a hit that is too large means the last one."""
    hits = [line.number for line in lines if any(_find_matches(line.text, query))]
    return Search(query, hits, min(max(chosen, 1), len(hits)))


def _find_matches(text: str, query: str) -> Iterator[tuple[int, int]]:
    """The start and the end of each match."""
    lowered, wanted = text.lower(), query.lower()
    if len(lowered) != len(text):  # a few letters have a longer lower case, and positions would shift
        lowered, wanted = text, query
    start = lowered.find(wanted) if wanted else -1
    while start >= 0:
        yield start, start + len(wanted)
        start = lowered.find(wanted, start + len(wanted))


def render_lines(lines: Iterable[Line], found: Search) -> Markup:
    """Written without a template: a long output has thousands of lines. Each can be linked to by its number."""
    hits, current = set(found.hits), found.line
    parts, marks_left = list[str](), MAX_MARKS
    for line in lines:
        number = line.number
        kind = ' class="hit current"' if number == current else ' class="hit"' if number in hits else ""
        candidates = _find_matches(line.text, found.query) if number in hits else iter(())
        matches = list(islice(candidates, marks_left))
        marks_left -= len(matches)
        parts.append(f'<span id="L{number}"{kind}><a href="#L{number}" tabindex="-1">{number}</a>')
        parts.append(_render_text(line, matches) if matches or line.styles else str(escape(line.text)))
        parts.append("\n</span>")
    return Markup("".join(parts))


def _render_text(line: Line, matches: Sequence[tuple[int, int]]) -> str:
    """Splits the text wherever a style or a match begins or ends, because a match can extend over several styles."""
    starts, ends = {start for start, _ in matches}, {end for _, end in matches}
    styles = dict(line.styles)
    bounds = sorted({0, len(line.text), *styles, *starts, *ends})
    parts, classes, inside = list[str](), "", False
    for start, end in pairwise(bounds):
        classes = styles.get(start, classes)
        inside = start in starts or (inside and start not in ends)
        text = str(escape(line.text[start:end]))
        text = f'<span class="{classes}">{text}</span>' if classes else text
        parts.append(f"<mark>{text}</mark>" if inside else text)
    return "".join(parts)


def output_url(page_url: str, query: str, *, hit: int | None = None, wrap: bool = True, line: int | None = None) -> str:
    """The page with this search and this way to show long lines."""
    parameters = {"q": query} if query else {}
    parameters |= {} if hit is None else {"hit": str(hit)}
    parameters |= {} if wrap else {"wrap": "off"}
    fragment = "" if line is None else f"#L{line}"
    return f"{page_url}?{urlencode(parameters)}{fragment}" if parameters else f"{page_url}{fragment}"
