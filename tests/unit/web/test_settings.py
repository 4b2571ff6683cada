"""Settings as form fields."""

import pytest
from msgspec.structs import fields

from mergeyard.domain.config import SETTINGS_WITHOUT_EFFECT, Config, Mode
from mergeyard.web.settings import GROUPS, SETTINGS, FieldKind, collect_changes, fields_from_config, fields_from_form
from mergeyard.web.user_sessions import Form


def submitted(config: Config, **changed: str) -> Form:
    """The form as it was shown, with these fields changed."""
    rows = [(f"was_{field.setting.name}", field.previous) for field in fields_from_config(config)]
    rows += [(field.setting.name, changed.get(field.setting.name, field.value)) for field in fields_from_config(config)]
    return Form([(name, value) for name, value in rows if value or name in changed])


def test_every_setting_is_in_one_group():
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted({field.name for field in fields(Config)} - {*SETTINGS_WITHOUT_EFFECT})


def test_an_unchanged_form_changes_nothing():
    config = Config(batch=True, required_statuses=("unit", "lint"))
    assert collect_changes(fields_from_form(submitted(config))) == {}


def test_only_what_was_changed_is_saved():
    config = Config(concurrency=7, comments_enabled=True)
    form = submitted(config, mode="parallel", comments_enabled="", required_statuses="unit\r\n lint \r\n\r\nunit")
    assert collect_changes(fields_from_form(form)) == {
        "mode": Mode.PARALLEL,
        "comments_enabled": False,
        "required_statuses": ("unit", "lint"),
    }


def test_an_empty_list_of_statuses_means_the_choice_of_the_repository():
    config = Config(required_statuses=("unit",))
    assert collect_changes(fields_from_form(submitted(config, required_statuses=" \r\n"))) == {
        "required_statuses": None
    }


@pytest.mark.parametrize("typed", ["0", "1001", "many", "-1", "1.5", "", "٣", "9" * 30])
def test_an_invalid_number_shows_the_range_and_keeps_what_was_typed(typed: str):
    (field,) = [
        field
        for field in fields_from_form(submitted(Config(), concurrency=typed))
        if field.setting.name == "concurrency"
    ]
    assert (field.error, field.value) == ("Enter a number from 1 to 1000.", typed)


def test_an_invalid_choice_lists_the_valid_ones():
    (field,) = [field for field in fields_from_form(submitted(Config(), mode="both")) if field.error]
    assert field.error == "Choose one of: One sequence, Lanes by impacted targets."


@pytest.mark.parametrize("name", ["", "x" * 101])
def test_a_label_needs_a_name_that_is_not_too_long(name: str):
    invalid = [
        field.setting.name for field in fields_from_form(submitted(Config(), enqueueing_label=name)) if field.error
    ]
    assert invalid == ["enqueueing_label"]
    assert not any(field.error for field in fields_from_form(submitted(Config(), enqueueing_label="x" * 100)))


def test_every_number_has_a_range():
    numbers = [setting for setting in SETTINGS.values() if setting.kind is FieldKind.NUMBER]
    assert numbers
    assert all(setting.minimum is not None and setting.maximum is not None for setting in numbers)
