"""Reads JSON as the contract wants it: no doubled key, no depth or breadth that only an attack has, no broken text."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from json import JSONDecoder, dumps
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, TypeVar, Union, cast, get_args, get_origin

from msgspec import Struct, UnsetType, ValidationError, convert
from msgspec.structs import fields

from mergeyard.api.fields import CoerceWith, InvalidValueError, choice_coercer, coerce_integer
from mergeyard.api.responses import ApiError, ValidationIssue, invalid_request
from mergeyard.service.errors import Code

BLANK = " \t\n\r"


class Irregular(Exception):
    """Not the shape of an object: decoding the whole text at once reports what is wrong."""


def decode_members(decoder: JSONDecoder, text: str) -> list[tuple[str, Any]]:
    """In their order, also those that stand twice."""
    try:
        return _members(decoder, text)
    except (ValueError, IndexError):
        raise Irregular from None


def _members(decoder: JSONDecoder, text: str) -> list[tuple[str, Any]]:
    found, at = list[tuple[str, Any]](), _past(text, "{", _next(text, 0))
    while True:
        name, at = decoder.raw_decode(text, at)
        if not isinstance(name, str):
            raise Irregular
        value, at = _value(decoder, text, _past(text, ":", _next(text, at)))
        found.append((name, value))
        at = _next(text, at)
        if text[at] != ",":
            break
        at = _next(text, at + 1)
    if _past(text, "}", at) != len(text):
        raise Irregular
    return found


def _value(decoder: JSONDecoder, text: str, at: int) -> tuple[Any, int]:
    if text[at] != "[":
        return decoder.raw_decode(text, at)
    items, at = list[Any](), _next(text, at + 1)
    if text[at] == "]":
        return items, at + 1
    while True:
        item, at = decoder.raw_decode(text, at)
        items.append(item)
        if text[at] != ",":
            at = _next(text, at)
        if text[at] != ",":
            return items, _past(text, "]", at)
        at = _next(text, at + 1)


def _past(text: str, mark: str, at: int) -> int:
    if text[at] != mark:
        raise Irregular
    return _next(text, at + 1)


def _next(text: str, at: int) -> int:
    """Where something stands again; the end when nothing does."""
    while at < len(text) and text[at] in BLANK:
        at += 1
    return at


DEPTH = 32
CONTAINERS = 10_000
MEMBERS = 100_000
DIGITS = 1_000
LARGE = 256 * 1024
PIECE = 64 * 1024

# Possessive, and a string without end reaches to the end: one pass, and not one for each of its characters.
STRING_OR_BRACKET = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
DIGITS_ALIKE = bytes.maketrans(b"123456789", b"0" * 9)
MANY_DIGITS = b"0" * (DIGITS + 1)
SUSPICIOUS_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
BYTES_OF_ESCAPE = 6


def parse_object(body: bytes) -> dict[str, Any]:
    value = _decoded(body)
    if not isinstance(value, dict):
        raise invalid_request("", "expected a JSON object")
    return cast(dict[str, Any], value)


def _decoded(body: bytes) -> Any:
    _refuse_bombs(body)
    decoder = CAREFUL_WITH_NUMBERS if _has_many_digits(body) else DECODER
    try:
        value = _patiently(decoder, body.decode()) if len(body) > LARGE else decoder.decode(body.decode())
    except ValueError as broken:
        raise ApiError(Code.INVALID_JSON, f"The body is not JSON in UTF-8 ({broken}): send one JSON object.") from None
    if any(map(SUSPICIOUS_ESCAPE.search, _pieces(body, BYTES_OF_ESCAPE))):
        _refuse_broken_text(value)
    return value


def _patiently(decoder: JSONDecoder, text: str) -> Any:
    try:
        return _object(decode_members(decoder, text))
    except Irregular:
        return decoder.decode(text)


def _pieces(body: bytes, longest: int) -> Iterable[bytes]:
    """So that others are served in between; what is searched for and has at most so many bytes is whole in one."""
    if len(body) <= PIECE:
        return (body,)
    return (body[first : first + PIECE + longest - 1] for first in range(0, len(body), PIECE))


def _refuse_bombs(body: bytes) -> None:
    """Before anything is built. Few brackets cannot nest deep; of many, those inside strings do not count."""
    if sum(piece.count(b"[") + piece.count(b"{") for piece in _pieces(body, 1)) <= DEPTH:
        return
    depth = containers = 0
    for token in STRING_OR_BRACKET.finditer(body):
        match body[token.start()]:
            case 0x5B | 0x7B:
                depth += 1
                containers += 1
                if depth > DEPTH:
                    raise ApiError(Code.JSON_TOO_DEEP, f"The body is nested deeper than {DEPTH}: send a flatter one.")
                if containers > CONTAINERS:
                    raise _too_complex(f"more than {CONTAINERS:,} lists and objects")
            case 0x5D | 0x7D:
                depth -= 1
                if depth <= 0:
                    return  # What follows the outermost value is refused unread.
            case _:
                pass


def _has_many_digits(body: bytes) -> bool:
    """Searched as text: an expression takes half a second for 20 MiB."""
    if len(body) <= DIGITS:
        return False
    return any(MANY_DIGITS in piece.translate(DIGITS_ALIKE) for piece in _pieces(body, len(MANY_DIGITS)))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MEMBERS:
        raise _too_complex(f"an object of more than {MEMBERS:,} members")
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    doubled, _ = Counter(name for name, _ in pairs).most_common(1)[0]
    raise ApiError(Code.DUPLICATE_KEY, f"The key {doubled[:100]!a} stands twice in one object: keep one of them.")


def _too_complex(what: str) -> ApiError:
    return ApiError(Code.JSON_TOO_COMPLEX, f"The body holds {what}: send less at once.")


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _integer(digits: str) -> int:
    if len(digits) > DIGITS:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


def _refuse_broken_text(value: Any) -> None:
    for text in _texts(value):
        if "\0" in text or not _has_utf8(text):
            words = "A string holds a NUL or half of a surrogate pair"
            raise ApiError(Code.INVALID_STRING, f"{words} ({text[:100]!a}): send plain Unicode text.")


def _has_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast(list[Any], value):
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in cast(dict[str, Any], value).items():
            yield key
            yield from _texts(item)


DECODER = JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant)
CAREFUL_WITH_NUMBERS = JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant, parse_int=_integer)


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


R = TypeVar("R", bound=Struct)
Coercer = Callable[[Any], Any]


def to_request(struct: type[R], members: Mapping[str, Any]) -> R:
    _refuse_unknown_members(struct, members)
    try:
        return convert(_struct_coercer(struct)(members), struct)
    except InvalidValueError as error:
        raise invalid_request(error.pointer, error.message, error.code) from None
    except ValidationError as error:
        raise invalid_request(*translate_error(str(error))) from None


def _refuse_unknown_members(struct: type[Struct], members: Mapping[str, Any]) -> None:
    """For requests with settings only: a mistyped setting must not be ignored silently."""
    if not struct.__struct_config__.forbid_unknown_fields or members.keys() <= _member_names(struct):
        return
    unknown = [name for name in members if name not in _member_names(struct)]
    issues = [ValidationIssue(f"/{escape_pointer(name[:100])}", "is not a known setting") for name in unknown[:20]]
    names = ", ".join(f"`{name[:100]}`" for name in unknown[:20])
    raise ApiError(Code.UNKNOWN_FIELD, f"Unknown setting: {names}. Check the spelling, or remove it.", errors=issues)


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


class ParsedRequest(NamedTuple):
    request: Any
    digest: bytes | None
    """None if the request has no idempotency key."""


def parse_request(struct: type[Struct], digest_path: str | None, body: bytes) -> ParsedRequest:
    """`digest_path` is the endpoint's path if the request has an idempotency key, else None."""
    members = parse_object(body)
    return ParsedRequest(
        to_request(struct, members), None if digest_path is None else compute_digest(digest_path, members)
    )


def compute_digest(path: str, members: dict[str, Any]) -> bytes:
    """Equal for equal path and JSON, independent of white space and the order of members."""
    canonical = dumps(members, sort_keys=True, separators=(",", ":"))
    return sha256(f"{path}\n{canonical}".encode()).digest()
