"""Decodes and validates request bodies: tolerant where the contract is, with a JSON pointer in each error."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from msgspec import DecodeError, Raw, Struct, UnsetType, ValidationError, convert, json
from msgspec.structs import fields

from mergeyard.api.fields import CoerceWith, InvalidValueError, choice_coercer, coerce_integer, decode_impacted_targets
from mergeyard.api.responses import ApiError, FieldError, invalid_request
from mergeyard.service.errors import Code

MAX_MEMBER_BYTES = 64 * 1024
"""Of one member's JSON. A member of many small lists would take a hundred times as much memory."""
LONG_MEMBERS: Mapping[str, Callable[[Raw], Any]] = {"impactedTargets": decode_impacted_targets}
"""Decoders of members without that limit: they build nothing but text, and refuse NUL characters."""
IGNORED_MEMBERS = frozenset({"pr"})
"""Requests with settings refuse unknown members, but not this one: clients send it with every request."""
ESCAPED_NUL = b"\\u0000"

R = TypeVar("R", bound=Struct)
Coercer = Callable[[Any], Any]

_decode_raw_members = json.Decoder(dict[str, Raw]).decode
_decode_any = json.Decoder().decode


def decode_request(struct: type[R], body: bytes) -> R:
    raw_members = split_members(body)
    return to_request(struct, decode_members(struct, raw_members), raw_members)


def decode_request_with_digest(struct: type[R], path: str, body: bytes) -> tuple[R, bytes]:
    """The digest is equal for equal path and JSON, independent of white space and of the order of members."""
    raw_members = split_members(body)
    members = decode_members(struct, raw_members)
    digest = sha256(path.encode())
    for name, raw in sorted(raw_members.items()):
        digest.update(json.encode(name) + b":")
        is_decoded = name in members and name not in LONG_MEMBERS
        digest.update(json.encode(members[name], order="sorted") if is_decoded else json.format(raw, indent=-1))
    return to_request(struct, members, raw_members), digest.digest()


def split_members(body: bytes) -> dict[str, Raw]:
    """The JSON text of each member of the body's object. Checks the syntax of all of the body, but builds no values: an
    unknown member costs no memory."""
    try:
        if not body.isascii():
            body.decode()  # msgspec checks the encoding of values only when it builds them.
        return _decode_raw_members(body)
    except ValidationError:
        raise invalid_request("", "expected a JSON object") from None
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_json(error) from None


def invalid_json(error: Exception) -> ApiError:
    return ApiError(Code.INVALID_JSON, f"The body is not JSON in UTF-8 ({error}): send one JSON object.")


def decode_members(struct: type[Struct], raw_members: Mapping[str, Raw]) -> dict[str, Any]:
    """The values of the members that this request has."""
    known = _member_names(struct)
    return {name: _decode_member(name, raw) for name, raw in raw_members.items() if name in known}


def _decode_member(name: str, raw: Raw) -> Any:
    pointer = f"/{escape_pointer(name)}"
    decode = LONG_MEMBERS.get(name, _decode_any)
    if decode is _decode_any and len(raw) > MAX_MEMBER_BYTES:
        raise invalid_request(pointer, f"expected at most {MAX_MEMBER_BYTES:,} bytes of JSON")
    try:
        value = decode(raw)
    except InvalidValueError as error:
        raise invalid_request(pointer + error.pointer, error.message) from None
    except ValidationError as error:
        place, message = translate_error(str(error))
        raise invalid_request(pointer + place, message) from None
    except RecursionError as error:  # `split_members` is called with fewer frames, so it accepts a little more.
        raise invalid_json(error) from None
    if decode is _decode_any and ESCAPED_NUL in bytes(raw) and any("\0" in text for text in _texts(value)):
        raise invalid_request(pointer, "expected text without NUL characters")
    return value


def _texts(value: Any) -> Iterator[str]:
    """Every text in the value, also names of members."""
    remaining: list[Any] = [value]
    while remaining:
        part = remaining.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, list):
            remaining += cast(list[Any], part)
        elif isinstance(part, dict):
            members = cast(dict[str, Any], part)
            remaining += [*members, *members.values()]


def to_request(struct: type[R], members: Mapping[str, Any], names: Iterable[str]) -> R:
    """`members` has only the known ones, `names` are those of all members that were sent."""
    _refuse_unknown_members(struct, names)
    try:
        return convert(_struct_coercer(struct)(members), struct)
    except InvalidValueError as error:
        raise invalid_request(error.pointer, error.message, error.code) from None
    except ValidationError as error:
        raise invalid_request(*translate_error(str(error))) from None


def _refuse_unknown_members(struct: type[Struct], names: Iterable[str]) -> None:
    """For requests with settings only: a mistyped setting must not be ignored silently."""
    if not struct.__struct_config__.forbid_unknown_fields:
        return
    unknown = [name for name in names if name not in _member_names(struct) and name not in IGNORED_MEMBERS]
    if unknown:
        issues = [FieldError(f"/{escape_pointer(name[:100])}", "is not a known setting") for name in unknown[:20]]
        shown = ", ".join(f"`{name[:100]}`" for name in unknown[:20])
        raise ApiError(
            Code.UNKNOWN_FIELD, f"Unknown setting: {shown}. Check the spelling, or remove it.", errors=issues
        )


@cache
def _member_names(struct: type[Struct]) -> frozenset[str]:
    return frozenset(field.encode_name for field in fields(struct))


@cache
def _struct_coercer(struct: type[Struct]) -> Coercer:
    """Coerces the members that have a coercer. Nulls are left for the type check, which rejects them."""
    found = [(field.encode_name, _find_coercer(field.type)) for field in fields(struct)]
    coercers = [(name, coercer) for name, coercer in found if coercer is not None]

    def coerce(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        members, name = cast(dict[str, Any], value).copy(), ""
        try:
            for name, coercer in coercers:
                if members.get(name) is not None:
                    members[name] = coercer(members[name])
        except InvalidValueError as error:
            raise error.nest_under(name) from None
        return members

    return coerce if coercers else _identity


def _identity(value: Any) -> Any:
    return value


def _list_coercer(item_coercer: Coercer) -> Coercer:
    def coerce(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        items = list[Any]()
        try:
            for item in cast(list[Any], value):
                items.append(item_coercer(item))
        except InvalidValueError as error:
            raise error.nest_under(str(len(items))) from None
        return items

    return coerce


def _find_coercer(annotation: Any) -> Coercer | None:
    """Returns the coercer of a member's type, or None if its values are taken unchanged."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        own = [extra.coerce for extra in annotation.__metadata__ if isinstance(extra, CoerceWith)]
        return own[0] if own else _find_coercer(arguments[0])
    if origin in (Union, UnionType):
        coercers = [_find_coercer(part) for part in arguments if part not in (NoneType, UnsetType)]
        return coercers[0] if len(coercers) == 1 else None
    if origin is Literal:
        return choice_coercer(arguments)
    if origin is list:
        item_coercer = _find_coercer(arguments[0])
        return None if item_coercer is None else _list_coercer(item_coercer)
    return _class_coercer(annotation) if isinstance(annotation, type) else None


def _class_coercer(cls: type) -> Coercer | None:
    if issubclass(cls, Struct):
        return _struct_coercer(cls)
    if cls is int:
        return coerce_integer
    if issubclass(cls, str) and cls is not str:
        return choice_coercer([member.value for member in cast(Any, cls)])
    return None


PATH_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
MISSING = re.compile(r"Object missing required field `(?P<name>.+)`")
MISTYPED = re.compile(r"Expected `(?P<expected>[^`]+)`, got `(?P<got>[^`]+)`")
OUT_OF_RANGE = re.compile(r"Expected `(?P<what>\w+)` (?P<of_length>of length )?(?P<sign>[<>]=) (?P<bound>\d+)")
TYPE_NAMES = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
LENGTH_UNITS = {"str": "character", "array": "item"}


def translate_error(error: str) -> tuple[str, str]:
    """Returns the JSON pointer and the message."""
    message, path = _split(error)
    pointer = _to_pointer(path)
    if missing := MISSING.fullmatch(message):
        return f"{pointer}/{escape_pointer(missing['name'])}", "is required"
    return pointer, _reword(message)


def _split(error: str) -> tuple[str, str]:
    """Splits ``Expected `int`, got `str` - at `$.pr.number` `` into the message and the path `.pr.number`."""
    message, _, location = error.rpartition(" - at `")
    path = location.removeprefix("key in ")
    return (message, path[1:-1]) if path.startswith("$") and path.endswith("`") else (error, "")


def escape_pointer(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _to_pointer(path: str) -> str:
    return "".join(f"/{escape_pointer(name or index)}" for name, index in PATH_STEP.findall(path))


def _reword(message: str) -> str:
    if mistyped := MISTYPED.fullmatch(message):
        if mistyped["got"] == "null":
            return "must not be null"
        expected = " or ".join(TYPE_NAMES.get(part, part) for part in mistyped["expected"].split(" | "))
        return f"expected {expected}, got {TYPE_NAMES.get(mistyped['got'], mistyped['got'])}"
    if out := OUT_OF_RANGE.fullmatch(message):
        bound = "at least" if out["sign"] == ">=" else "at most"
        if out["of_length"]:
            return f"expected {bound} {out['bound']} {LENGTH_UNITS.get(out['what'], 'part')}(s)"
        return f"expected an integer of {bound} {out['bound']}"
    if message.startswith("Expected `str` matching regex"):  # `WEB_URL_PATTERN` is the only pattern of a request.
        return "expected an address that begins with http:// or https://"
    return message
