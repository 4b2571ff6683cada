"""Turns parsed JSON into an endpoint's request: read with tolerance, checked without."""

from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from msgspec import Struct, UnsetType, ValidationError, convert
from msgspec.structs import fields

from mergeyard.api import complaints
from mergeyard.api.errors import ApiError, Flaw, misfit
from mergeyard.api.reading import Read, Unreadable, any_case, whole
from mergeyard.service.errors import Code

R = TypeVar("R", bound=Struct)
Reader = Callable[[Any], Any]


def request(kind: type[R], members: Mapping[str, Any]) -> R:
    _refuse_unknown_members(kind, members)
    try:
        return convert(_softener(kind)(members), kind)
    except Unreadable as unreadable:
        raise misfit(unreadable.pointer, unreadable.message, unreadable.code) from None
    except ValidationError as invalid:
        raise misfit(*complaints.translated(str(invalid))) from None


def _refuse_unknown_members(kind: type[Struct], members: Mapping[str, Any]) -> None:
    """Where a mistyped setting must not be dropped in silence."""
    if not kind.__struct_config__.forbid_unknown_fields or members.keys() <= _member_names(kind):
        return
    unknown = [name for name in members if name not in _member_names(kind)]
    flaws = [Flaw(f"/{complaints.escaped(name[:100])}", "is not known here") for name in unknown[:20]]
    named = ", ".join(f"`{name[:100]}`" for name in unknown[:20])
    raise ApiError(Code.UNKNOWN_FIELD, f"{named}: no such setting. Check the spelling, or leave it out.", errors=flaws)


@cache
def _member_names(kind: type[Struct]) -> frozenset[str]:
    return frozenset(field.encode_name for field in fields(kind))


@cache
def _softener(kind: type[Struct]) -> Reader:
    """Reads the members that have a way of their own to be read. Nulls are left to the check, which takes none."""
    found = [(field.encode_name, _reader(field.type)) for field in fields(kind)]
    readers = [(name, reader) for name, reader in found if reader is not None]

    def soften(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        members, name = cast(dict[str, Any], value).copy(), ""
        try:
            for name, reader in readers:
                if members.get(name) is not None:
                    members[name] = reader(members[name])
        except Unreadable as unreadable:
            raise unreadable.below(name) from None
        return members

    return soften if readers else _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def _each(reader: Reader) -> Reader:
    def soften(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        items = list[Any]()
        try:
            for item in cast(list[Any], value):
                items.append(reader(item))
        except Unreadable as unreadable:
            raise unreadable.below(str(len(items))) from None
        return items

    return soften


def _reader(kind: Any) -> Reader | None:
    """How a member of this type is read, or None when it is taken as it is."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        own = [extra.read for extra in kind.__metadata__ if isinstance(extra, Read)]
        return own[0] if own else _reader(arguments[0])
    if origin in (Union, UnionType):
        readers = [_reader(part) for part in arguments if part not in (NoneType, UnsetType)]
        return readers[0] if len(readers) == 1 else None
    if origin is Literal:
        return any_case(arguments)
    if origin is list:
        inner = _reader(arguments[0])
        return None if inner is None else _each(inner)
    return _reader_of_class(kind) if isinstance(kind, type) else None


def _reader_of_class(kind: type) -> Reader | None:
    if issubclass(kind, Struct):
        return _softener(kind)
    if kind is int:
        return whole
    if issubclass(kind, str) and kind is not str:
        return any_case([word.value for word in cast(Any, kind)])
    return None
