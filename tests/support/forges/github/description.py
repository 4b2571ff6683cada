"""Holds the fake to GitHub's own description of its API, as types that are generated from it.

`filled` makes a whole answer of the few facts that matter. `checked` raises when GitHub would not have said so:
when a field is missing, of another type, or not described at all.
"""

import json
from functools import cache
from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

models: Any = import_module("githubkit_schemas.latest.models")
"""By its name: to learn nothing of it, a type checker would read thousands of its files."""
SOME_DAY = "2026-01-01T00:00:00Z"
DROPPED_LATER = frozenset({"merge_commit_sha"})
"""Described in the version that we ask for, and dropped in the newest, which the types are made of."""
SAMPLES: dict[Any, Any] = {str: "-", int: 1, float: 1.0, bool: False, Any: None, NoneType: None}


class Undescribed(Exception):
    """GitHub would not say so."""


class Absent:
    """Nobody said what it should be."""


ABSENT = Absent()


def checked(kind: Any, answer: Any) -> Any:
    try:
        known = _adapter(kind).validate_json(json.dumps(answer), strict=True)
    except ValidationError as error:
        raise Undescribed(str(error)) from error
    described = _adapter(kind).dump_python(known, mode="json", by_alias=True, exclude_unset=True)
    strays = [path for path in _strays(answer, described, "") if path.rpartition(".")[2] not in DROPPED_LATER]
    if strays:
        raise Undescribed(f"nothing is described as {', '.join(strays)}")
    return answer


def filled(kind: Any, given: Any = ABSENT) -> Any:
    """What was given, and something that fits for all else that GitHub always says."""
    origin = get_origin(kind)
    if origin is Annotated:
        return filled(get_args(kind)[0], given)
    if origin in (Union, UnionType):
        return _one_of(get_args(kind), given)
    if origin is Literal:
        return get_args(kind)[0] if isinstance(given, Absent) else given
    if origin is list:
        items = cast(list[Any], [] if isinstance(given, Absent) else given)
        return [filled(get_args(kind)[0], item) for item in items]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _object(kind, {} if isinstance(given, Absent) else given)
    return SAMPLES.get(kind, {} if origin is dict else SOME_DAY) if isinstance(given, Absent) else given


def _object(kind: type[BaseModel], given: dict[str, Any]) -> dict[str, Any]:
    whole = dict(given)
    for name, field in kind.model_fields.items():
        alias = field.alias or name
        if field.is_required() or alias in given:
            whole[alias] = filled(field.annotation, given.get(alias, ABSENT))
    return whole


def _one_of(kinds: tuple[Any, ...], given: Any) -> Any:
    if given is None or (isinstance(given, Absent) and NoneType in kinds):
        return None
    return filled(next(kind for kind in kinds if _fits(kind, given)), given)


def _fits(kind: Any, given: Any) -> bool:
    """Whether this is what was meant, of several kinds of the same thing."""
    if get_origin(kind) is Annotated:
        return _fits(get_args(kind)[0], given)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        words = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
        facts = cast(dict[str, Any], given) if isinstance(given, dict) else {}
        return (isinstance(given, Absent | dict)) and all(
            name in words and (get_origin(words[name]) is not Literal or value in get_args(words[name]))
            for name, value in facts.items()
        )
    if get_origin(kind) is list:
        return isinstance(given, list)
    return kind is not NoneType and not isinstance(given, dict | list)


def _strays(answer: Any, described: Any, path: str) -> list[str]:
    match answer, described:
        case dict(), dict():
            facts, known = cast(dict[str, Any], answer), cast(dict[str, Any], described)
            below = [_strays(facts[name], known[name], f"{path}.{name}") for name in facts if name in known]
            return [f"{path}.{name}" for name in facts if name not in known] + [
                stray for each in below for stray in each
            ]
        case list(), list():
            pairs = zip(cast(list[Any], answer), cast(list[Any], described), strict=True)
            return [stray for one, other in pairs for stray in _strays(one, other, f"{path}[]")]
        case _:
            return []


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
