"""Checks the fake's requests and responses with GitHub's API description, as generated types.

`fill_defaults` completes a response from the few fields that matter. `check_described` raises if a field is missing,
has another type, or is not described.
"""

import json
from collections.abc import Collection
from functools import cache
from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

models: Any = import_module("githubkit_schemas.v2022_11_28.models")
"""Of the API version that the product asks for. Imported by name, so that the type checker does not read its thousands
of files."""
SOME_DAY = "2026-01-01T00:00:00Z"
SAMPLES: dict[Any, Any] = {str: "-", int: 1, float: 1.0, bool: False, Any: None, NoneType: None}


class DescriptionMismatch(Exception):
    """A request or response that GitHub does not describe."""


class Absent:
    """A value that was not given."""


ABSENT = Absent()


def check_described(kind: Any, answer: Any, future_words: Collection[str] = ()) -> Any:
    """`future_words` are fields, and types of items, that GitHub may have later; they are not checked."""
    checked = _without(answer, future_words) if future_words else answer
    try:
        known = _adapter(kind).validate_json(json.dumps(checked), strict=True)
    except ValidationError as error:
        raise DescriptionMismatch(str(error)) from error
    described = _adapter(kind).dump_python(known, mode="json", by_alias=True, exclude_unset=True)
    undescribed = list(_undescribed_paths(checked, described, ""))
    if undescribed:
        raise DescriptionMismatch(f"fields that are not described: {', '.join(undescribed)}")
    return answer


def _without(answer: Any, words: Collection[str]) -> Any:
    match answer:
        case dict():
            facts = cast(dict[str, Any], answer)
            return {name: _without(value, words) for name, value in facts.items() if name not in words}
        case list():
            items = cast(list[Any], answer)
            types = [cast(dict[str, Any], one).get("type") if isinstance(one, dict) else None for one in items]
            return [_without(one, words) for one, kind in zip(items, types, strict=True) if kind not in words]
        case _:
            return answer


def fill_defaults(kind: Any, given: Any = ABSENT) -> Any:
    """The given values, with matching samples for all other required fields."""
    origin = get_origin(kind)
    if origin is Annotated:
        return fill_defaults(get_args(kind)[0], given)
    if origin in (Union, UnionType):
        return _one_of(get_args(kind), given)
    if origin is Literal:
        return get_args(kind)[0] if isinstance(given, Absent) else given
    if origin is list:
        items = cast(list[Any], [] if isinstance(given, Absent) else given)
        return [fill_defaults(get_args(kind)[0], item) for item in items]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _object(kind, {} if isinstance(given, Absent) else given)
    return SAMPLES.get(kind, {} if origin is dict else SOME_DAY) if isinstance(given, Absent) else given


def _object(kind: type[BaseModel], given: dict[str, Any]) -> dict[str, Any]:
    complete = dict(given)
    for name, field in kind.model_fields.items():
        alias = field.alias or name
        if field.is_required() or alias in given:
            complete[alias] = fill_defaults(field.annotation, given.get(alias, ABSENT))
    return complete


def _one_of(kinds: tuple[Any, ...], given: Any) -> Any:
    """A value with a field that GitHub does not describe fits none, and takes the first object."""
    if given is None or (isinstance(given, Absent) and NoneType in kinds):
        return None
    fitting = [kind for kind in kinds if _fits(kind, given)]
    models_only = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return fill_defaults((fitting or models_only)[0], given)


def _fits(kind: Any, given: Any) -> bool:
    """Whether the given value matches this type of a union."""
    if get_origin(kind) is Annotated:
        return _fits(get_args(kind)[0], given)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        annotations = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
        facts = cast(dict[str, Any], given) if isinstance(given, dict) else {}
        return (isinstance(given, Absent | dict)) and all(
            name in annotations
            and (get_origin(annotations[name]) is not Literal or value in get_args(annotations[name]))
            for name, value in facts.items()
        )
    if get_origin(kind) is list:
        return isinstance(given, list)
    return kind is not NoneType and not isinstance(given, dict | list)


def _undescribed_paths(answer: Any, described: Any, path: str) -> list[str]:
    match answer, described:
        case dict(), dict():
            facts, known = cast(dict[str, Any], answer), cast(dict[str, Any], described)
            below = [_undescribed_paths(facts[name], known[name], f"{path}.{name}") for name in facts if name in known]
            return [f"{path}.{name}" for name in facts if name not in known] + [path for each in below for path in each]
        case list(), list():
            pairs = zip(cast(list[Any], answer), cast(list[Any], described), strict=True)
            return [found for one, other in pairs for found in _undescribed_paths(one, other, f"{path}[]")]
        case _:
            return []


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
