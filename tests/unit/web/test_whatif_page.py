"""The form of the what-if page: the offered settings, the changes, the sliders; and how differences are shown."""

import pytest

from mergeyard.domain.config import Config, Mode, Speculation
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.timestamps import MINUTE, SECOND
from mergeyard.simulation.history import REPLAYABLE_SETTINGS
from mergeyard.web.settings import FieldKind
from mergeyard.web.whatif_page import (
    FIGURES,
    OFFERED_SETTINGS,
    SLIDER_MAXIMA,
    build_settings_url,
    describe_difference,
    parse_form,
    slider_maximum,
)

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
        ({"batch": "off"}, {"batch": False}),
        ({"mode": "parallel"}, {"mode": Mode.PARALLEL}),
        ({"speculation": "best_first"}, {"speculation": Speculation.BEST_FIRST}),
        ({"can_optimistically_merge": "on"}, {"can_optimistically_merge": True}),
        ({"enqueueing_label": "x"}, {}),
    ],
)
def test_changed_fields_are_changes(sent: dict[str, str], changes: dict[str, object]):
    assert parse_form(UNCHANGED | sent, CURRENT).changes == changes


def test_a_link_can_name_a_single_setting():
    form = parse_form({"batching_min_size": "8"}, CURRENT)
    assert (form.changes, form.invalid_fields) == ({"batching_min_size": 8}, [])
    assert [field.value for field in form.fields if not field.is_changed] == ["8", "on", "5", "chain", "", "single"]


def test_the_settings_page_gets_only_the_changed_values():
    fields = parse_form({"concurrency": "20", "batch": "off", "mode": "single"}, CURRENT).fields
    key = QueueKey(Repo("git.local", "acme", "app"), "main")
    assert build_settings_url(key, fields) == "/settings/git.local/acme/app:main?concurrency=20&batch=off"


@pytest.mark.parametrize(
    ("name", "before", "after", "expected"),
    [
        ("Median time to merge", 54 * SECOND, 116 * SECOND, ("+1 min 2 s", "worse")),
        ("Median time to merge", 20 * MINUTE, 10 * MINUTE, ("−10 min (−50 %)", "better")),  # noqa: RUF001
        ("Median time to merge", 54_100, 54_400, ("no change", "")),
        ("CI minutes", 3 * MINUTE, 4 * MINUTE, ("+1", "worse")),
        ("CI minutes", 100 * MINUTE, 172 * MINUTE, ("+72 (+72 %)", "worse")),
        ("CI minutes", 2.9 * MINUTE, 3.1 * MINUTE, ("no change", "")),
        ("Merged", 0, 2, ("+2", "better")),
        ("Failed", 3, 1, ("−2", "")),  # noqa: RUF001
        ("Runs per merge", 1.0, 1.25, ("+0.25 (+25 %)", "worse")),
    ],
)
def test_a_difference_is_in_the_unit_of_its_figure(name: str, before: float, after: float, expected: tuple[str, str]):
    assert describe_difference(before, after, FIGURES[name]) == expected


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
