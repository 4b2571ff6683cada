"""Every setting of a queue as a field of a form: how it is asked for, shown, and read again.

What is asked follows from the type of each setting, so that a new one is asked for as soon as it has a place here.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, cast

from msgspec import NODEFAULT, Struct, inspect
from msgspec.structs import replace

from mergeyard.domain.config import LONGEST_LABEL, Config
from mergeyard.service.meanings import MEANINGS
from mergeyard.web.forms import Form

GROUPS = {
    "The line": ("mode", "concurrency", "bisection_concurrency"),
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
    "At the Git provider": (
        "comments_enabled",
        "commands_enabled",
        "label_commands_enabled",
        "enqueueing_label",
        "status_check_enabled",
        "create_prs_for_testing_branches",
    ),
}
LABELS = {
    "concurrency": "Runs at once",
    "bisection_concurrency": "Bisection runs at once",
    "batch": "Batching",
    "batching_min_size": "Batch size",
    "batching_max_wait_time_minutes": "Longest wait for a batch, in minutes",
    "can_optimistically_merge": "Optimistic merging",
    "optimization_mode": "Skip the suspect's last test",
    "speculation": "Speculation",
    "testing_timeout_minutes": "Time for a run, in minutes",
    "test_retries": "Retries",
    "landing": "Landing",
    "direct_merge_mode": "Direct merge",
    "create_prs_for_testing_branches": "Draft pull requests for test branches",
    "comments_enabled": "Comments",
    "commands_enabled": "Commands in comments",
    "status_check_enabled": "Status at the provider",
    "not_ready_timeout_hours": "Longest stay of what is not ready, in hours",
    "label_commands_enabled": "Label as a command",
    "enqueueing_label": "Name of the label",
}
"""Where the setting's own name does not say it well."""
EXPLAINED = {
    **MEANINGS,
    "bisection_concurrency": "How many runs may search for the guilty one of a red batch, beside those of the line.",
    "required_statuses": "The statuses that must pass, one per line. None here leaves the choice to the repository.",
}
"""Where what is said elsewhere does not fit a form."""
CHOICES = {
    "single": "one line",
    "parallel": "lanes by impacted targets",
    "merge_commit": "merge commit",
    "bisection_skip_redundant_tests": "skip it",
    "tested_commit": "push the tested commit",
    "provider_merge": "let the provider merge",
    "off": "no",
    "always": "always when it can",
}
ON = "on"


class Kind(StrEnum):
    SWITCH = "switch"
    NUMBER = "number"
    CHOICE = "choice"
    WORD = "word"
    LINES = "lines"


class Misread(Exception):
    """What was typed is no value of this setting, and what would be."""


class Setting(Struct, frozen=True, kw_only=True):
    name: str
    label: str
    meaning: str
    kind: Kind
    default: str
    choices: Mapping[str, str]
    least: int | None
    most: int | None

    def read(self, typed: str) -> Any:
        match self.kind:
            case Kind.SWITCH:
                return typed == ON
            case Kind.NUMBER:
                return self._number(typed)
            case Kind.LINES:
                return tuple(dict.fromkeys(_lines(typed))) or None
            case Kind.CHOICE:
                if typed not in self.choices:
                    raise Misread(f"Choose one of: {', '.join(self.choices.values())}.")
                return typed
            case Kind.WORD:
                if not 1 <= len(typed) <= LONGEST_LABEL:
                    raise Misread(f"Give it a name of 1 to {LONGEST_LABEL} characters.")
                return typed

    def _number(self, typed: str) -> int:
        if typed.isascii() and typed.isdecimal() and len(typed) <= 9 and self._fits(int(typed)):
            return int(typed)
        raise Misread(f"Give a whole number from {self.least} to {self.most:,}.")

    def _fits(self, number: int) -> bool:
        return self.least is not None and self.most is not None and self.least <= number <= self.most


class Field(Struct, frozen=True, kw_only=True):
    """A setting, what stands in it, what stood in it when the form was shown, and what is wrong with it."""

    setting: Setting
    value: str
    was: str
    trouble: str = ""

    @property
    def changed(self) -> bool:
        return self.value != self.was


def shown(config: Config) -> list[Field]:
    values = {setting.name: written(getattr(config, setting.name)) for setting in SETTINGS.values()}
    return [Field(setting=each, value=values[each.name], was=values[each.name]) for each in SETTINGS.values()]


def typed(form: Form) -> list[Field]:
    return [
        _checked(each, _normal(form.get(each.name)), _normal(form.get(f"was_{each.name}")))
        for each in SETTINGS.values()
    ]


def changes(fields: list[Field]) -> dict[str, Any]:
    """Only what somebody changed, so that nobody takes back what another saved meanwhile."""
    return {field.setting.name: _typed_value(field) for field in fields if field.changed}


def written(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return ON if value else ""
        case tuple():
            return "\n".join(cast(tuple[str, ...], value))
        case _:
            return str(value)


def _checked(setting: Setting, value: str, was: str) -> Field:
    """What nobody changed is not saved, and may be older than its limits."""
    field = Field(setting=setting, value=value, was=was)
    try:
        if field.changed:
            setting.read(value)
    except Misread as misread:
        return replace(field, trouble=str(misread))
    return field


def _typed_value(field: Field) -> Any:
    value, kind = field.setting.read(field.value), TYPES[field.setting.name]
    return kind.cls(value) if isinstance(kind, inspect.EnumType) else value


def _normal(text: str) -> str:
    return "\n".join(_lines(text))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _setting(field: inspect.Field) -> Setting:
    kind = field.type
    whole = kind if isinstance(kind, inspect.IntType) else None
    values = [str(each.value) for each in kind.cls] if isinstance(kind, inspect.EnumType) else []
    assert field.default is not NODEFAULT
    return Setting(
        name=field.name,
        label=LABELS.get(field.name) or field.name.replace("_", " ").capitalize(),
        meaning=EXPLAINED[field.name],
        kind=_kind(kind),
        default=written(field.default),
        choices={value: CHOICES.get(value, value) for value in values},
        least=None if whole is None else whole.ge,
        most=None if whole is None else whole.le,
    )


def _kind(kind: inspect.Type) -> Kind:
    match kind:
        case inspect.BoolType():
            return Kind.SWITCH
        case inspect.IntType():
            return Kind.NUMBER
        case inspect.EnumType():
            return Kind.CHOICE
        case inspect.StrType():
            return Kind.WORD
        case _:
            return Kind.LINES


def _fields_of_config() -> tuple[inspect.Field, ...]:
    info = inspect.type_info(Config)
    assert isinstance(info, inspect.StructType)
    return info.fields


SETTINGS = {field.name: _setting(field) for field in _fields_of_config()}
TYPES = {field.name: field.type for field in _fields_of_config()}
