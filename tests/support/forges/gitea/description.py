"""Holds the fake to what Gitea itself publishes about its API, as far as the fake goes."""

from typing import Any, cast

from tests.support.forges.gitea.calls import Answer, Route
from tests.support.forges.gitea.facts import OPERATIONS, SHAPES, Operation

KINDS: dict[str, type | tuple[type, ...]] = {
    "integer": int,
    "string": str,
    "boolean": bool,
    "array": list,
    "object": dict,
}
OF_ALL = (401, 403)
"""Whoever does not come in is told so everywhere."""
INTERNAL = 500
"""Described almost nowhere, and to be met wherever it has no better answer."""


class Undescribed(AssertionError):
    """The fake asks or answers what Gitea does not."""


def operation_of(route: Route) -> Operation:
    found = OPERATIONS.get(f"{route.method} {route.template}")
    if found is None:
        raise Undescribed(f"there is no {route.method} {route.template}")
    return found


def check_request(route: Route, told: dict[str, Any]) -> None:
    operation = operation_of(route)
    if told:
        _check(told, operation.takes, f"what is sent to {route.method} {route.template}")


def check_answer(route: Route, given: Answer) -> None:
    operation, words = operation_of(route), f"{route.method} {route.template}"
    if given.status >= 400:
        if given.status not in (*operation.refuses, *OF_ALL, INTERNAL):
            raise Undescribed(f"{words} is never refused with {given.status}")
        return
    if given.status not in operation.answers:
        raise Undescribed(f"{words} never answers {given.status}")
    _check(given.body, operation.answers[given.status], words)


def _check(value: Any, shape: str, where: str) -> None:
    """A shape is the name of one of ours, of one of JSON's, a list `[of such]`, or empty."""
    if not shape or value is None:
        if value is not None:
            raise Undescribed(f"{where} says nothing, and not {value!r}")
        return
    if shape.startswith("["):
        for each in value:
            _check(each, shape[1:-1], where)
    elif shape in KINDS:
        if not isinstance(value, KINDS[shape]):
            raise Undescribed(f"{where} is of kind {shape}, and not {value!r}")
    else:
        for name, of in cast(dict[str, Any], value).items():
            if name not in SHAPES[shape]:
                raise Undescribed(f"{shape} has no {name} in {where}")
            _check(of, SHAPES[shape][name], f"{name} of {where}")
