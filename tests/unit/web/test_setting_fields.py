"""Settings as fields of a form."""

import pytest
from msgspec.structs import fields

from mergeyard.domain.config import Config, Mode
from mergeyard.web.forms import Form
from mergeyard.web.setting_fields import GROUPS, SETTINGS, Kind, changes, shown, typed


def sent(config: Config, **changed: str) -> Form:
    """The form as it was shown, with these fields changed."""
    rows = [(f"was_{field.setting.name}", field.was) for field in shown(config)]
    rows += [(field.setting.name, changed.get(field.setting.name, field.value)) for field in shown(config)]
    return Form([(name, value) for name, value in rows if value or name in changed])


def test_every_setting_has_one_place_on_the_page():
    placed = [name for names in GROUPS.values() for name in names]
    assert sorted(placed) == sorted(field.name for field in fields(Config))


def test_a_form_that_is_sent_as_it_was_shown_changes_nothing():
    config = Config(batch=True, required_statuses=("unit", "lint"))
    assert changes(typed(sent(config))) == {}


def test_only_what_was_changed_is_saved():
    config = Config(concurrency=7, comments_enabled=True)
    form = sent(config, mode="parallel", comments_enabled="", required_statuses="unit\r\n lint \r\n\r\nunit")
    assert changes(typed(form)) == {
        "mode": Mode.PARALLEL,
        "comments_enabled": False,
        "required_statuses": ("unit", "lint"),
    }


def test_no_statuses_leave_the_choice_to_the_repository():
    config = Config(required_statuses=("unit",))
    assert changes(typed(sent(config, required_statuses=" \r\n"))) == {"required_statuses": None}


@pytest.mark.parametrize("text", ["0", "1001", "many", "-1", "1.5", "", "٣", "9" * 30])
def test_a_number_that_does_not_fit_says_which_do_and_keeps_what_was_typed(text: str):
    (field,) = [field for field in typed(sent(Config(), concurrency=text)) if field.setting.name == "concurrency"]
    assert (field.trouble, field.value) == ("Give a whole number from 1 to 1,000.", text)


def test_a_choice_that_is_none_of_them_names_them():
    (field,) = [field for field in typed(sent(Config(), mode="both")) if field.trouble]
    assert field.trouble == "Choose one of: one line, lanes by impacted targets."


@pytest.mark.parametrize("name", ["", "x" * 101])
def test_a_label_needs_a_name_that_is_not_too_long(name: str):
    troubled = [field.setting.name for field in typed(sent(Config(), enqueueing_label=name)) if field.trouble]
    assert troubled == ["enqueueing_label"]
    assert not any(field.trouble for field in typed(sent(Config(), enqueueing_label="x" * 100)))


def test_every_number_says_its_range():
    numbers = [setting for setting in SETTINGS.values() if setting.kind is Kind.NUMBER]
    assert numbers
    assert all(setting.least is not None and setting.most is not None for setting in numbers)
