"""The members of answers and their types: our fakes must not have members that a Git host does not send."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast
from urllib.parse import unquote

from tests.live.client import Reply

NULL, ABSENT = "null", "absent"
TYPE_NAMES = {bool: "boolean", int: "number", float: "number", str: "text", type(None): NULL}

Shape = Mapping[str, list[str]]
"""Types by member, such as `base.ref` or `labels[].name`."""


def read_shapes(replies: Iterable[Reply], neutral: Callable[[str], str]) -> dict[str, Shape]:
    """By kind of request: the members of all its answers."""
    found = dict[str, dict[str, set[str]]]()
    for reply in replies:
        _add_types(reply.body, "", found.setdefault(neutral(unquote(reply.asked.partition("?")[0])), {}))
    return {
        route: {member: sorted(kinds) for member, kinds in sorted(members.items())} for route, members in found.items()
    }


def _add_types(value: Any, place: str, found: dict[str, set[str]]) -> None:
    """An object and a list are only as good as their members: empty ones add nothing."""
    match value:
        case dict():
            for name, one in cast(dict[str, Any], value).items():
                _add_types(one, f"{place}.{name}".lstrip("."), found)
        case list():
            for one in cast(list[Any], value):
                _add_types(one, f"{place}[]", found)
        case _:
            found.setdefault(place, set()).add(TYPE_NAMES[type(value)])


def find_wrong_members(real: Shape, fake: Shape) -> dict[str, tuple[list[str], list[str]]]:
    """The members of the fake that the Git host does not have, or has with another type, each with both types. Nothing
    is known below a member that is null at the Git host, and about items of a list that is always empty there."""
    nulls = tuple(f"{name}." for name, kinds in real.items() if kinds == [NULL])
    wrong = dict[str, tuple[list[str], list[str]]]()
    for name, kinds in fake.items():
        known, missing = real.get(name), set(kinds) - {NULL}
        is_empty_list = "[]" in name and not any(one.startswith(name.rpartition("[]")[0] + "[]") for one in real)
        is_unknown = known == [NULL] or name.startswith(nulls) or is_empty_list
        if not is_unknown and (known is None or not missing <= {*known}):
            wrong[name] = (known or [ABSENT], kinds)
    return wrong
