"""The settings of a queue on the wire, drawn from the domain's own: each with its meaning, all of them optional."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import fields

from mergeyard.api import reading
from mergeyard.api.reading import Read
from mergeyard.api.wire import says, shown
from mergeyard.domain.config import LONGEST_LABEL, Config
from mergeyard.service.meanings import MEANINGS

NAMES = tuple(field.name for field in fields(Config))
STATUSES: dict[str, Any] = {
    "anyOf": [{"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}, {"type": "null"}]
}


def _described(name: str, kind: Any) -> Any:
    if name == "required_statuses":
        return Annotated[kind, shown(MEANINGS[name], STATUSES), Read(reading.required_statuses)]
    if name == "enqueueing_label":
        kind = Annotated[kind, Meta(min_length=1, max_length=LONGEST_LABEL)]
    return Annotated[kind, says(MEANINGS[name])]


SHOWN: list[tuple[str, Any]] = [(field.name, _described(field.name, field.type)) for field in fields(Config)]
"""All of them, as a queue's answer has them."""

GIVEN: list[tuple[str, Any, Any]] = [(name, kind | UnsetType, UNSET) for name, kind in SHOWN]
"""Any of them, as a request may name them."""
