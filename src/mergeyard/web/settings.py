"""The settings of a queue as form fields: validated one by one, and saved only if all are valid."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, cast

from msgspec import NODEFAULT, Struct, inspect
from msgspec.structs import replace

from mergeyard.domain.config import MAX_LABEL_LENGTH, SETTING_DESCRIPTIONS, SETTINGS_WITHOUT_EFFECT, Config
from mergeyard.web.formats import parse_integer
from mergeyard.web.user_sessions import Form

GROUPS = {
    "Queue": ("mode", "concurrency", "bisection_concurrency"),
    "Batches": ("batch", "batching_min_size", "batching_max_wait_time_minutes"),
    "Tests": (
        "required_statuses",
        "testing_timeout_minutes",
        "test_retries",
        "can_optimistically_merge",
        "pending_failure_depth",
        "optimization_mode",
        "speculation",
    ),
    "Merging": ("merge_method", "landing", "direct_merge_mode", "not_ready_timeout_hours"),
    "Git host": (
        "comments_enabled",
        "commands_enabled",
        "label_commands_enabled",
        "enqueueing_label",
        "status_check_enabled",
        "create_prs_for_testing_branches",
    ),
}
LABELS = {
    "concurrency": "Concurrent runs",
    "bisection_concurrency": "Concurrent bisection runs",
    "batch": "Batching",
    "batching_min_size": "Batch size",
    "batching_max_wait_time_minutes": "Maximum wait for a batch, in minutes",
    "can_optimistically_merge": "Optimistic merging",
    "optimization_mode": "Skip the suspect's final test",
    "speculation": "Speculation",
    "testing_timeout_minutes": "Run timeout, in minutes",
    "test_retries": "Retries",
    "landing": "Landing",
    "direct_merge_mode": "Direct merge",
    "create_prs_for_testing_branches": "Draft pull requests for test branches",
    "comments_enabled": "Comments",
    "commands_enabled": "Commands in comments",
    "status_check_enabled": "Status check on the Git host",
    "not_ready_timeout_hours": "Not ready timeout, in hours",
    "label_commands_enabled": "Submit by label",
    "enqueueing_label": "Name of the label",
}
"""Labels that differ from the setting's name."""
HELP_TEXTS = {
    **SETTING_DESCRIPTIONS,
    "bisection_concurrency": "How many runs can bisect failed batches, in addition to the runs of active batches.",
    "required_statuses": "The checks that must pass, one per line. Leave it empty to use the repository's own choice.",
}
"""The meanings, with other texts where the general one does not fit a form."""
CHOICE_LABELS = {
    "single": "one queue",
    "parallel": "lanes by impacted targets",
    "merge_commit": "merge commit",
    "bisection_skip_redundant_tests": "skip it",
    "tested_commit": "push the tested commit",
    "provider_merge": "let the Git host merge",
    "off": "no",
    "always": "whenever possible",
}
ON = "on"
"""The value that a browser sends for a ticked checkbox."""


class FieldKind(StrEnum):
    SWITCH = "switch"
    NUMBER = "number"
    CHOICE = "choice"
    TEXT = "text"
    LINES = "lines"


class InvalidSettingError(Exception):
    """The message tells the user which values are valid."""


class Setting(Struct, frozen=True, kw_only=True):
    name: str
    label: str
    meaning: str
    kind: FieldKind
    default: str
    choices: Mapping[str, str]
    minimum: int | None
    maximum: int | None

    def parse(self, text: str) -> Any:
        match self.kind:
            case FieldKind.SWITCH:
                return text == ON
            case FieldKind.NUMBER:
                number = parse_integer(text, self.minimum or 0, self.maximum or 0)
                if number is None:
                    raise InvalidSettingError(f"Give a whole number from {self.minimum} to {self.maximum:,}.")
                return number
            case FieldKind.LINES:
                return tuple(dict.fromkeys(_split_lines(text))) or None
            case FieldKind.CHOICE:
                if text not in self.choices:
                    raise InvalidSettingError(f"Choose one of: {', '.join(self.choices.values())}.")
                return text
            case FieldKind.TEXT:
                if not 1 <= len(text) <= MAX_LABEL_LENGTH:
                    raise InvalidSettingError(f"Give it a name of 1 to {MAX_LABEL_LENGTH} characters.")
                return text


class SettingField(Struct, frozen=True, kw_only=True):
    """A setting with its current text, its text when the form was rendered, and its error."""

    setting: Setting
    value: str
    previous: str
    error: str = ""

    @property
    def is_changed(self) -> bool:
        return self.value != self.previous


def fields_from_config(config: Config) -> list[SettingField]:
    values = [(setting, encode_value(getattr(config, setting.name))) for setting in SETTINGS.values()]
    return [SettingField(setting=setting, value=value, previous=value) for setting, value in values]


def fields_from_form(form: Form) -> list[SettingField]:
    return [
        _validate(each, _normalize(form.get(each.name)), _normalize(form.get(f"was_{each.name}")))
        for each in SETTINGS.values()
    ]


def collect_changes(fields: list[SettingField]) -> dict[str, Any]:
    """Only the settings that this user changed, so that a concurrent change of another setting is not reverted."""
    return {field.setting.name: _parse_field(field) for field in fields if field.is_changed}


def encode_value(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return ON if value else ""
        case tuple():
            return "\n".join(cast(tuple[str, ...], value))
        case _:
            return str(value)


def _validate(setting: Setting, value: str, was: str) -> SettingField:
    """An unchanged value is not validated: it is not saved, and a stored value may be older than the current limits."""
    field = SettingField(setting=setting, value=value, previous=was)
    try:
        if field.is_changed:
            setting.parse(value)
    except InvalidSettingError as error:
        return replace(field, error=str(error))
    return field


def _parse_field(field: SettingField) -> Any:
    value, value_type = field.setting.parse(field.value), TYPES[field.setting.name]
    return value_type.cls(value) if isinstance(value_type, inspect.EnumType) else value


def _normalize(text: str) -> str:
    return "\n".join(_split_lines(text))


def _split_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _build_setting(field: inspect.Field) -> Setting:
    value_type = field.type
    integer = value_type if isinstance(value_type, inspect.IntType) else None
    values = [str(each.value) for each in value_type.cls] if isinstance(value_type, inspect.EnumType) else []
    assert field.default is not NODEFAULT
    return Setting(
        name=field.name,
        label=LABELS.get(field.name) or field.name.replace("_", " ").capitalize(),
        meaning=HELP_TEXTS[field.name],
        kind=_choose_kind(value_type),
        default=encode_value(field.default),
        choices={value: CHOICE_LABELS.get(value, value) for value in values},
        minimum=None if integer is None else integer.ge,
        maximum=None if integer is None else integer.le,
    )


def _choose_kind(value_type: inspect.Type) -> FieldKind:
    match value_type:
        case inspect.BoolType():
            return FieldKind.SWITCH
        case inspect.IntType():
            return FieldKind.NUMBER
        case inspect.EnumType():
            return FieldKind.CHOICE
        case inspect.StrType():
            return FieldKind.TEXT
        case _:
            return FieldKind.LINES


def _inspect_config() -> tuple[inspect.Field, ...]:
    info = inspect.type_info(Config)
    assert isinstance(info, inspect.StructType)
    return tuple(field for field in info.fields if field.name not in SETTINGS_WITHOUT_EFFECT)


SETTINGS = {field.name: _build_setting(field) for field in _inspect_config()}
TYPES = {field.name: field.type for field in _inspect_config()}
