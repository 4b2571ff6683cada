"""What others wrote is shown, and does nothing else."""

from datetime import UTC, datetime

import pytest
from rich.console import Console

from mergeyard.cli.plainly import clean, in_json, plain, say


@pytest.mark.parametrize("control", ["\x1b[2J", "\r", "\n", "\x07", "\u202e", "\u2066", "\u200b", "\x9b31m", "\x7f"])
def test_whatever_steers_a_terminal_is_not_passed_on(control: str):
    assert clean(f"a{control}b").startswith("a�")
    assert clean(clean(control)) == clean(control)


def test_what_is_said_has_lines_and_nothing_else_that_steers(capsys: pytest.CaptureFixture[str]):
    say("Deleted the queue for a\u202eb:\n\x9b31mmain.")
    assert capsys.readouterr() == ("", "Deleted the queue for a�b:\n�31mmain.\n")


def test_programs_read_what_no_terminal_obeys():
    said = {"title": "a\u202eb\x9b\x1b", "at": datetime(2026, 11, 14, tzinfo=UTC)}
    assert in_json(said) == r'{"title": "a\u202eb\u009b\u001b", "at": "2026-11-14T00:00:00.000Z"}'


def test_letters_of_all_people_are():
    assert clean("größe 名前 🐑 [x]") == "größe 名前 🐑 [x]"


def test_markup_is_text():
    out = Console(force_terminal=True, color_system="standard", width=80)
    with out.capture() as captured:
        out.print(plain("[red]x[/]"), "[link=https://evil.example]", plain("[link=https://evil.example]y"))
    assert "[red]x[/]" in captured.get()
    assert "[link=https://evil.example]y" in captured.get()
