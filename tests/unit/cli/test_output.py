"""Text from others is printed without control characters and markup."""

from datetime import UTC, datetime

import pytest
from rich.console import Console

from mergeyard.cli.output import encode_json, plain_text, print_message, sanitize


@pytest.mark.parametrize("control", ["\x1b[2J", "\r", "\n", "\x07", "\u202e", "\u2066", "\u200b", "\x9b31m", "\x7f"])
def test_control_characters_are_replaced(control: str):
    assert sanitize(f"a{control}b").startswith("a�")
    assert sanitize(sanitize(control)) == sanitize(control)


def test_messages_keep_line_breaks_but_no_control_characters(capsys: pytest.CaptureFixture[str]):
    print_message("Deleted the queue for a\u202eb:\n\x9b31mmain.")
    assert capsys.readouterr() == ("", "Deleted the queue for a�b:\n�31mmain.\n")


def test_json_escapes_control_characters():
    response = {"title": "a\u202eb\x9b\x1b", "at": datetime(2026, 11, 14, tzinfo=UTC)}
    assert encode_json(response) == r'{"title": "a\u202eb\u009b\u001b", "at": "2026-11-14T00:00:00.000Z"}'


def test_letters_of_all_scripts_are_kept():
    assert sanitize("größe 名前 🐑 [x]") == "größe 名前 🐑 [x]"


def test_rich_markup_is_printed_as_text():
    out = Console(force_terminal=True, color_system="standard", width=80)
    with out.capture() as captured:
        out.print(plain_text("[red]x[/]"), "[link=https://evil.example]", plain_text("[link=https://evil.example]y"))
    assert "[red]x[/]" in captured.get()
    assert "[link=https://evil.example]y" in captured.get()
