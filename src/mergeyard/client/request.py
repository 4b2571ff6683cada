"""A request as a value: which endpoint, with which members, and what its answer is."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from msgspec import Struct

Answer = TypeVar("Answer")


class Request(Struct, Generic[Answer], frozen=True, kw_only=True):
    endpoint: str
    members: Mapping[str, Any]
    answer: type[Answer]
    """`str`: the answer is text, and the members stand in the address."""
    writes: bool = False
    waits: float = 0
    """So many seconds more the server may take its time, because of what it was asked."""


def reading(endpoint: str, answer: type[Answer], /, **members: Any) -> Request[Answer]:
    return Request(endpoint=endpoint, members=given(members), answer=answer)


def writing(endpoint: str, answer: type[Answer], /, **members: Any) -> Request[Answer]:
    return Request(endpoint=endpoint, members=given(members), answer=answer, writes=True)


def given(members: Mapping[str, Any]) -> dict[str, Any]:
    """Without those that nobody named."""
    return {name: value for name, value in members.items() if value is not None}


def camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
