"""What can be changed on the page, how it is shown, and what somebody changed: all of it stands in the address."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mergeyard.domain.config import Config
from mergeyard.web import setting_fields
from mergeyard.web.forms import Form
from mergeyard.web.setting_fields import Field, Kind

REACH = {"concurrency": 50, "batching_min_size": 20, "batching_max_wait_time_minutes": 60}
"""How far a slider reaches; whoever wants more types it."""
OFFERED = (
    "concurrency",
    "batch",
    "batching_min_size",
    "batching_max_wait_time_minutes",
    "speculation",
    "can_optimistically_merge",
    "mode",
)


class Asked(Struct, frozen=True):
    fields: tuple[Field, ...]
    wishes: Mapping[str, Any] | None
    """None: nothing is asked yet, or not so that it can be understood."""

    @property
    def troubles(self) -> list[Field]:
        return [field for field in self.fields if field.trouble]


def asked(query: Mapping[str, str], now: Config) -> Asked:
    if not any(name in query for name in OFFERED):
        return Asked(_offered(setting_fields.shown(now)), None)
    was = [(f"was_{name}", setting_fields.written(getattr(now, name))) for name in OFFERED]
    fields = _offered(setting_fields.typed(Form([*query.items(), *was])))
    understood = not any(field.trouble for field in fields)
    return Asked(fields, setting_fields.changes(list(fields)) if understood else None)


def farthest(field: Field) -> int | None:
    """Where the slider of a number ends; it never ends before what is chosen."""
    if field.setting.kind is not Kind.NUMBER:
        return None
    chosen = [int(text) for text in (field.value, field.was) if text.isdecimal() and not field.trouble]
    return min(max(REACH[field.setting.name], *chosen, 0), field.setting.most or 0)


def _offered(fields: list[Field]) -> tuple[Field, ...]:
    named = {field.setting.name: field for field in fields}
    return tuple(named[name] for name in OFFERED)
