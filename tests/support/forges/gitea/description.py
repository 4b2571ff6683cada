"""Checks the fake's requests and responses with Gitea's published API description."""

from typing import Any, cast

from tests.support.forges.gitea.api_routes import Response, Route
from tests.support.forges.gitea.schema import OPERATIONS, SHAPES, Operation

JSON_TYPES: dict[str, type | tuple[type, ...]] = {
    "integer": int,
    "string": str,
    "boolean": bool,
    "array": list,
    "object": dict,
}
AUTH_STATUSES = (401, 403)
"""Every operation can refuse the credentials."""
INTERNAL = 500
"""Described for few operations, but possible for all."""


class DescriptionMismatch(AssertionError):
    """A request or response that Gitea does not describe."""


def find_operation(route: Route) -> Operation:
    found = OPERATIONS.get(f"{route.method} {route.template}")
    if found is None:
        raise DescriptionMismatch(f"no operation {route.method} {route.template}")
    return found


def check_request(route: Route, body: dict[str, Any]) -> None:
    operation = find_operation(route)
    if body:
        _check(body, operation.request_shape, f"the body of {route.method} {route.template}")


def check_response(route: Route, response: Response) -> None:
    operation, name = find_operation(route), f"{route.method} {route.template}"
    if response.status >= 400:
        if response.status not in (*operation.error_statuses, *AUTH_STATUSES, INTERNAL):
            raise DescriptionMismatch(f"{name} never fails with {response.status}")
        return
    if response.status not in operation.responses:
        raise DescriptionMismatch(f"{name} never responds with {response.status}")
    _check(response.body, operation.responses[response.status], name)


def _check(value: Any, shape: str, where: str) -> None:
    """A shape is a name in SHAPES, a JSON type, a list `[shape]`, or empty."""
    if not shape or value is None:
        if value is not None:
            raise DescriptionMismatch(f"{where} is empty, not {value!r}")
        return
    if shape.startswith("["):
        for each in value:
            _check(each, shape[1:-1], where)
    elif shape in JSON_TYPES:
        if not isinstance(value, JSON_TYPES[shape]):
            raise DescriptionMismatch(f"{where} has type {shape}, not {value!r}")
    else:
        for name, member in cast(dict[str, Any], value).items():
            if name not in SHAPES[shape]:
                raise DescriptionMismatch(f"{shape} has no {name} in {where}")
            _check(member, SHAPES[shape][name], f"{name} of {where}")
