"""Makes a setting's value out of what was given for it, or says why it does not fit."""

from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path
from typing import Any, cast, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import inspect

from mergeyard.settings.schema import POSTGRESQL, SQLITE, Settings
from mergeyard.settings.sources import Given

TYPES = get_type_hints(Settings, include_extras=True)


def fit(given: Given) -> object:
    """The value, or a `Complaint`."""
    try:
        value = msgspec.convert(given.value, TYPES[given.key], strict=given.has_types, dec_hook=path_of)
    except msgspec.ValidationError:
        return given.complaint(f"expected {expected(given.key)}{instead(given)}")
    return FURTHER.get(given.key, unchanged)(given, value)


def path_of(_kind: type, value: object) -> Path:
    if isinstance(value, Path):
        return value
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError
    return Path(value)


def expected(key: str) -> str:
    settings = cast(inspect.StructType, inspect.type_info(Settings))
    return next(words_for(field.type) for field in settings.fields if field.name == key)


def words_for(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata(extra_json_schema={"description": str(words)}):
            return words
        case inspect.UnionType(types=(first, *_)):
            return words_for(first)
        case inspect.IntType(ge=least, le=most):
            return f"a whole number from {least} to {most}"
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType(values=words):
            return f"one of {', '.join(map(str, words))}"
        case _:
            raise AssertionError(f"there are no words for {kind}")


def instead(given: Given) -> str:
    """What stands there now; of a database's address never anything, since a password may be anywhere in it."""
    if given.key == "database_url":
        return ""
    shown = without_credentials(ascii(given.value))
    return f", not {shown if len(shown) <= 60 else shown[:57] + '...'}"


def without_credentials(text: str) -> str:
    before, slashes, rest = text.partition("//")
    return f"{before}//***@{rest.rpartition('@')[2]}" if slashes and "@" in rest else text


# What more there is to say about some


def unchanged(_given: Given, value: Any) -> object:
    return value


def folder(given: Given, value: Path) -> object:
    return given.beside / value


def key_file(given: Given, value: Path | None) -> object:
    return None if value is None else given.beside / value


def database(given: Given, value: str) -> object:
    if value.startswith(POSTGRESQL):
        return value if is_server_address(value) else given.complaint("expected postgresql://USER:PASSWORD@HOST/NAME")
    path = value.removeprefix(SQLITE)
    if path == value or not path or "\0" in path:
        return given.complaint(
            "expected postgresql://USER:PASSWORD@HOST/NAME, or sqlite:///PATH with the path of a file"
        )
    if path == ":memory:":
        return given.complaint("a database in memory would forget the queue; name a file")
    return SQLITE + str(given.beside / path)


def is_server_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.port != 0 and len(parts.path) > 1 and "\0" not in text
    except ValueError:
        return False


def web_address(given: Given, value: str) -> object:
    if not is_web_address(value):
        return given.complaint(f"expected {expected(given.key)}{instead(given)}")
    if "@" in urlsplit(value).netloc:
        return given.complaint("everybody sees this address; remove the name and password before the @")
    return value.rstrip("/")


def proxies(given: Given, value: str) -> object:
    try:
        networks = [ip_network(each.strip()) for each in value.split(",") if each.strip()]
    except ValueError:
        return given.complaint(f"expected {expected(given.key)}{instead(given)}")
    return ", ".join(map(str, networks))


def is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        reachable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    plain = text.isprintable() and " " not in text and not parts.query and not parts.fragment
    return parts.scheme in ("http", "https") and reachable and plain


FURTHER: dict[str, Callable[[Given, Any], object]] = {
    "data_dir": folder,
    "sealing_key_file": key_file,
    "database_url_file": key_file,
    "database_url": database,
    "public_url": web_address,
    "trusted_proxies": proxies,
}
