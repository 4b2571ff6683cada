"""What a check wrote, made readable."""

from mergeyard.web.runs.output import readable, tail


def test_a_short_output_is_shown_as_it_is():
    assert tail(b"one\ntwo\n").text == "one\ntwo\n"
    assert tail(b"one\ntwo\n").left_out == 0


def test_of_a_long_one_the_last_whole_lines_are_shown():
    shown = tail(b"one\ntwo\nthree\n", most=8)
    assert shown.text == "three\n"
    assert shown.left_out == len(b"one\ntwo\n")


def test_a_line_that_is_longer_than_all_that_is_shown_is_cut():
    assert tail(b"x" * 100, most=8).text == "x" * 8


def test_colours_and_other_words_to_a_terminal_are_left_out():
    assert (
        readable(b"\x1b[31;1mred\x1b[0m \x1b]8;;https://x\x07link\x1b]8;;\x07\r\n50 %\r100 %\n")
        == "red link\n50 %\n100 %\n"
    )


def test_what_cannot_be_read_is_marked():
    assert readable(b"a\x00b\xffc\td\n") == "a\ufffdb\ufffdc\td\n"
