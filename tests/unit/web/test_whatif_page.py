"""The form of the what-if page: the offered settings, the changes, and the sliders."""

import pytest

from mergeyard.domain.config import Config, Mode, Speculation
from mergeyard.simulation.history import REPLAYABLE_SETTINGS
from mergeyard.web.settings import FieldKind
from mergeyard.web.whatif_page import OFFERED_SETTINGS, SLIDER_MAXIMA, parse_form, slider_maximum

CURRENT = Config(concurrency=8, batch=True)
UNCHANGED = {
    "concurrency": "8", "batch": "on", "batching_min_size": "4", "batching_max_wait_time_minutes": "5",
    "speculation": "chain", "mode": "single",
}  # fmt: skip


def test_only_what_can_be_replayed_is_offered_and_every_number_has_a_slider():
    assert set(OFFERED_SETTINGS) <= set(REPLAYABLE_SETTINGS)
    fields = parse_form({}, CURRENT).fields
    assert {field.setting.name for field in fields if field.setting.kind is FieldKind.NUMBER} == SLIDER_MAXIMA.keys()


def test_there_are_no_changes_before_the_form_is_submitted():
    assert parse_form({"period": "7d"}, CURRENT).changes is None


def test_an_unchanged_form_has_no_changes():
    assert parse_form(UNCHANGED, CURRENT).changes == {}


@pytest.mark.parametrize(
    ("sent", "changes"),
    [
        ({"concurrency": "20"}, {"concurrency": 20}),
        ({"batch": ""}, {"batch": False}),
        ({"mode": "parallel"}, {"mode": Mode.PARALLEL}),
        ({"speculation": "best_first"}, {"speculation": Speculation.BEST_FIRST}),
        ({"can_optimistically_merge": "on"}, {"can_optimistically_merge": True}),
        ({"enqueueing_label": "x"}, {}),
    ],
)
def test_changed_fields_are_changes(sent: dict[str, str], changes: dict[str, object]):
    assert parse_form(UNCHANGED | sent, CURRENT).changes == changes


def test_an_invalid_field_gives_no_changes():
    form = parse_form(UNCHANGED | {"concurrency": "0"}, CURRENT)
    assert form.changes is None
    assert [field.setting.name for field in form.invalid_fields] == ["concurrency"]


@pytest.mark.parametrize(("typed", "maximum"), [("20", 50), ("200", 200), ("1000", 1000), ("many", 50), ("9999", 50)])
def test_a_slider_includes_the_chosen_value(typed: str, maximum: int):
    (field,) = [
        each
        for each in parse_form(UNCHANGED | {"concurrency": typed}, CURRENT).fields
        if each.setting.name == "concurrency"
    ]
    assert slider_maximum(field) == maximum
