"""`mergeyard whatif`: the table of metrics, the confidence, and the parsing of settings."""

from typing import Any

import pytest
import typer
from msgspec import convert

from mergeyard.cli.whatif import format_difference, parse_setting, show_replay
from mergeyard.client import QueueReplay
from mergeyard.simulation.history import REPLAYABLE_SETTINGS
from tests.support.api_examples import REPLAY


def printed(capsys: pytest.CaptureFixture[str], price: float | None = None, **more: Any) -> list[str]:
    show_replay(convert(REPLAY | more, QueueReplay), price)
    return capsys.readouterr().out.splitlines()


def test_every_metric_is_shown_as_recorded_as_replayed_and_with_the_change(capsys: pytest.CaptureFixture[str]):
    lines = printed(capsys)
    assert lines[0].startswith("237 pull requests since ")
    assert lines[1] == "concurrency 5 → 20"
    assert lines[2].split("  ")[-1] == "DIFFERENCE"
    rows = {line[:20].strip(): line[20:].split("  ") for line in lines[3:10]}
    cells = {name: [cell.strip() for cell in row if cell.strip()] for name, row in rows.items()}
    assert cells["merged"] == ["212", "212", "212", "none"]
    assert cells["median time to merge"] == [
        "31 min 45 s", "31 min", "19 min (18 min 40 s–19 min 40 s)", "▼ 39 %",
    ]  # fmt: skip
    assert cells["runs"] == ["318", "318", "342", "▲ 8 %"]
    assert cells["CI minutes"] == ["4,770", "4,770", "5,040", "▲ 6 %"]


def test_the_cost_is_shown_if_a_price_per_minute_is_given(capsys: pytest.CaptureFixture[str]):
    assert printed(capsys, price=0.1)[10].split() == ["cost", "477.00", "477.00", "504.00", "▲", "6", "%"]
    assert "cost" not in "".join(printed(capsys))


def test_nothing_is_called_better_or_worse_with_low_confidence():
    styles = {
        confidence: format_difference(
            convert(REPLAY | {"confidence": confidence}, QueueReplay),
            lambda metrics: metrics.p50_seconds,
            less_is_better=True,
        ).style
        for confidence in ("high", "medium", "low")
    }
    assert styles == {"high": "green", "medium": "green", "low": ""}


def test_confidence_and_assumptions_are_shown(capsys: pytest.CaptureFixture[str]):
    lines = printed(capsys, confidence="medium", reasons=["Only 50 pull requests merged in this time."])
    assert lines[10:] == [
        "Confidence: medium",
        "  Only 50 pull requests merged in this time.",
        "Assumptions:",
        "  6 of 237 pull requests left before a test run decided them: the replay assumes that they pass.",
    ]


def test_without_changes_there_is_no_difference_column(capsys: pytest.CaptureFixture[str]):
    lines = printed(capsys, changes=[], assumptions=[])
    assert "DIFFERENCE" not in "".join(lines)
    assert lines[-1] == "Confidence: high"


def test_unknown_values_are_shown_as_a_dash(capsys: pytest.CaptureFixture[str]):
    nothing = {"proposed": None, "proposedMin": None, "proposedMax": None}
    lines = printed(capsys, **nothing, limitedTo=500, assumptions=[])
    assert lines[0].endswith(", the latest 500 of them")
    assert lines[3].split() == ["merged", "212", "212", "–", "–"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("concurrency=20", ("concurrency", 20)),
        ("batch=true", ("batch", True)),
        ("batch=off", ("batch", False)),
        ("batchingMinSize=8", ("batching_min_size", 8)),
        ("batching_min_size=8", ("batching_min_size", 8)),
        ("batching-min-size=8", ("batching_min_size", 8)),
        ("canOptimisticallyMerge=yes", ("can_optimistically_merge", True)),
        ("mode=PARALLEL", ("mode", "parallel")),
        ("speculation=best_first", ("speculation", "best_first")),
    ],
)
def test_a_setting_is_parsed(typed: str, expected: tuple[str, Any]):
    assert parse_setting(typed) == expected


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("color=red", "color is not a setting that can be replayed: use one of mode, concurrency"),
        ("mergeMethod=squash", "mergeMethod is not a setting that can be replayed"),
        ("concurrency", " is not a whole number from 1 to 1000"),
        ("concurrency=0", "0 is not a whole number from 1 to 1000"),
        ("batch=maybe", "maybe is neither on nor off"),
        ("mode=sideways", "sideways is not a valid value: use one of single, parallel"),
    ],
)
def test_an_invalid_setting_is_an_error(typed: str, message: str):
    with pytest.raises(typer.BadParameter, match=message):
        parse_setting(typed)


def test_every_replayable_setting_can_be_given():
    values = {"mode": "single", "optimization_mode": "off", "speculation": "chain"}
    for name in REPLAYABLE_SETTINGS:
        is_switch = name in ("batch", "can_optimistically_merge")
        assert parse_setting(f"{name}={values.get(name, 'on' if is_switch else '3')}")[0] == name
