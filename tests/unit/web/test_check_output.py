"""The output of a check: its lines, colors, search, and the guess at the line that failed."""

from time import process_time

import pytest
from markupsafe import Markup

from mergeyard.web.check_output import (
    MAX_BYTES,
    MAX_LINES,
    MAX_MARKS,
    Failure,
    Line,
    extract_tail,
    find_failure,
    output_url,
    read_lines,
    render_lines,
    search,
)


def lines_of(output: bytes) -> list[Line]:
    return read_lines(extract_tail(output))


def texts_of(output: bytes) -> list[str]:
    return [line.text for line in lines_of(output)]


def render(output: bytes, query: str = "", chosen: int = 1) -> str:
    """Without the numbers and the elements of lines."""
    lines = lines_of(output)
    html = str(render_lines(lines, search(lines, query, chosen)))
    for line in lines:
        for kind in ("", ' class="hit"', ' class="hit current"'):
            start = f'<span id="L{line.number}"{kind}><a href="#L{line.number}" tabindex="-1">{line.number}</a>'
            html = html.replace(start, "")
    return html.removesuffix("\n</span>").replace("\n</span>", "|")


def test_a_short_output_is_complete():
    tail = extract_tail(b"one\ntwo\n")
    assert (tail.lines, tail.first_line, tail.is_complete) == (["one", "two"], 1, True)
    assert extract_tail(b"").lines == []
    assert extract_tail(b"\n\n").lines == ["", ""]


def test_a_long_output_is_shortened_to_its_last_whole_lines_which_keep_their_numbers():
    tail = extract_tail(b"one\ntwo\nthree\n", max_bytes=8)
    assert (tail.lines, tail.first_line, tail.is_complete) == (["three"], 3, False)
    tail = extract_tail(b"1\r2\r\n3\n4\n5\n", max_lines=2)
    assert (tail.lines, tail.first_line, tail.is_complete) == (["4", "5"], 4, False)
    assert extract_tail(b"50 %\r100 %\r\nnext\nlast\n", max_bytes=6).first_line == 4


def test_a_line_longer_than_the_limit_is_truncated():
    tail = extract_tail(b"x" * 100, max_bytes=8)
    assert (tail.lines, tail.is_complete) == (["x" * 8], False)


def test_control_sequences_are_removed_and_progress_bars_become_lines():
    output = b"\x1b[2K\x1b[31;1mred\x1b[0m \x1b]8;;https://x\x07link\x1b]8;;\x07\r\n50 %\r100 %\n"
    assert texts_of(output) == ["red link", "50 %", "100 %"]


def test_unreadable_and_reversing_characters_are_replaced():
    assert texts_of(b"a\x00b\xffc\td\n") == ["a\ufffdb\ufffdc\td"]
    assert texts_of("safe\u202egnp.exe\x1b[".encode()) == ["safe\ufffdgnp.exe\ufffd["]


@pytest.mark.parametrize(
    ("output", "html"),
    [
        (b"\x1b[31mred\x1b[0m plain", '<span class="c1">red</span> plain'),
        (b"\x1b[1mbold\x1b[22m plain", '<span class="bold">bold</span> plain'),
        (b"\x1b[1;92mboth\x1b[m plain", '<span class="c10 bold">both</span> plain'),
        (b"\x1b[32mtwo\nlines\x1b[39m x", '<span class="c2">two</span>|<span class="c2">lines</span> x'),
        (b"\x1b[38;5;9mnine\x1b[38;5;200mother", '<span class="c9">nine</span>other'),
        (b"\x1b[38;2;1;31;4mrgb\x1b[48;5;31mback\x1b[4;7mline", "rgbbackline"),
        (b"\x1b[31;99999;1mred", '<span class="c1 bold">red</span>'),
        (b"\x1b[38:5:1mred", "red"),
    ],
)
def test_sixteen_colors_and_bold_are_shown(output: bytes, html: str):
    assert render(output) == html


def test_every_text_is_escaped():
    assert render(b"\x1b[31m<b>&\"'\x1b[0m<i>") == '<span class="c1">&lt;b&gt;&amp;&#34;&#39;</span>&lt;i&gt;'
    assert render(b"<script>", "<SCRIPT") == "<mark>&lt;script</mark>&gt;"
    assert isinstance(render_lines([], search([], "", 1)), Markup)


def test_every_line_can_be_linked_to():
    html = str(render_lines(lines_of(b"one\ntwo"), search([], "", 1)))
    assert '<span id="L2"><a href="#L2" tabindex="-1">2</a>two\n</span>' in html


def test_search_ignores_case_and_counts_lines():
    lines = lines_of(b"Error one\nfine\nan error and an ERROR\nerr\n")
    found = search(lines, "error", 1)
    assert (found.hits, found.chosen, found.line) == ([1, 3], 1, 1)
    assert search(lines, "error", 2).line == 3
    assert search(lines, "error", 99).chosen == 2
    assert (search(lines, "nothing", 1).hits, search(lines, "nothing", 1).line) == ([], None)
    assert search(lines, "", 1).hits == []
    assert search(lines, "e.r", 1).hits == []


def test_matches_are_marked_also_across_colors_and_the_chosen_line_differs():
    assert (
        render(b"a \x1b[31mfa\x1b[0miled b", "failed") == 'a <mark><span class="c1">fa</span></mark><mark>iled</mark> b'
    )
    lines = lines_of(b"x\ny\nx\n")
    html = str(render_lines(lines, search(lines, "x", 2)))
    assert '<span id="L1" class="hit">' in html
    assert '<span id="L3" class="hit current">' in html
    assert '<span id="L2"><a' in html


@pytest.mark.parametrize(
    ("output", "failure"),
    [
        (b"ok\nTraceback (most recent call last):\n  ValueError: x\n", Failure(2, "traceback")),
        (b"0 errors\nno failures\nfailed: 0\nValueError: x\n", Failure(4, "error")),
        (b"ok\n--- FAIL: TestSum\n", Failure(2, "fail")),
        (b"all good\nfailover done\n", None),
    ],
)
def test_the_first_line_about_a_failure_is_guessed(output: bytes, failure: Failure | None):
    assert find_failure(lines_of(output)) == failure


def test_links_keep_the_search_and_the_wrapping():
    assert output_url("/o", "") == "/o"
    assert output_url("/o", "a b&c", hit=2, wrap=False, line=7) == "/o?q=a+b%26c&hit=2&wrap=off#L7"
    assert output_url("/o", "", line=7) == "/o#L7"


@pytest.mark.parametrize(
    "part",
    [b"\n", b"a\r", b"x", b"\x1b[31mx", b"\x1b]", b"\x1b[", b"\x1b[1;", b"\x1b[1;31merror\x1b[0m in line of text\n"],
)
def test_any_output_of_a_mebibyte_is_rendered_quickly_and_stays_bounded(part: bytes):
    output = (part * 2**20)[: 2**20]
    start = process_time()
    lines = lines_of(output)
    html = render_lines(lines, search(lines, "x", 1))
    find_failure(lines)
    assert process_time() - start < 2
    assert len(lines) <= MAX_LINES
    assert html.count("<mark>") <= MAX_MARKS
    assert len(html) < 8 * MAX_BYTES
