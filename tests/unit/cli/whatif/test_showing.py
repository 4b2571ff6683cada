"""A replay in a terminal: a row for every figure, what would be different, and how sure that is."""

from typing import Any

import pytest
from msgspec import convert

from mergeyard.api.examples import REPLAY
from mergeyard.cli.whatif.showing import show
from mergeyard.client import QueueReplay


def printed(capsys: pytest.CaptureFixture[str], price: float | None = None, **more: Any) -> list[str]:
    show(convert(REPLAY | more, QueueReplay), price)
    return capsys.readouterr().out.splitlines()


def test_every_figure_stands_as_it_was_as_replayed_and_with_the_change(capsys: pytest.CaptureFixture[str]):
    told = printed(capsys)
    assert told[0].startswith("237 pull requests since ")
    assert told[1] == "concurrency 5 → 20"
    rows = {line[:18].strip(): line[18:].split("  ") for line in told[3:10]}
    cells = {name: [cell.strip() for cell in row if cell.strip()] for name, row in rows.items()}
    assert cells["merged"] == ["212", "212", "212", "none"]
    assert cells["half merged within"] == [
        "31 min 45 s", "31 min 00 s", "19 min 00 s (18 min 40 s–19 min 40 s)", "▼ 39 %",
    ]  # fmt: skip
    assert cells["runs"] == ["318", "318", "342", "▲ 8 %"]
    assert cells["CI minutes"] == ["4,770", "4,770", "5,040", "▲ 6 %"]


def test_whoever_says_what_a_minute_costs_is_told_the_cost(capsys: pytest.CaptureFixture[str]):
    assert printed(capsys, price=0.1)[10].split() == ["cost", "477.00", "477.00", "504.00", "▲", "6", "%"]
    assert "cost" not in "".join(printed(capsys))


def test_how_sure_it_is_and_what_was_guessed_is_told(capsys: pytest.CaptureFixture[str]):
    told = printed(capsys, sureness="roughly", reasons=["Only 50 pull requests merged in this time."])
    assert told[10:] == [
        "What this would do is roughly known.",
        "  Only 50 pull requests merged in this time.",
        "What is guessed:",
        "  6 of 237 pull requests left before any run judged them: they are taken to be good.",
    ]


def test_without_a_wish_there_is_nothing_to_compare(capsys: pytest.CaptureFixture[str]):
    told = printed(capsys, changes=[], guesses=[])
    assert "difference" not in "".join(told)
    assert told[-1] == "It is well replayed."


def test_what_came_to_no_end_and_what_nobody_knows_is_a_dash(capsys: pytest.CaptureFixture[str]):
    nothing = {"withTheChange": None, "withTheChangeAtLeast": None, "withTheChangeAtMost": None}
    told = printed(capsys, **nothing, most=500, guesses=[])
    assert told[0].endswith(", the latest 500 of them")
    assert told[3].split() == ["merged", "212", "212", "–", "–"]
