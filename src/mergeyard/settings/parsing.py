"""Collects setting values from the file, the environment and the command line, and converts them to their types."""

import difflib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any, cast, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, inspect

from mergeyard.service.repo_config import InvalidConfig, decode_toml
from mergeyard.settings.schema import POSTGRESQL_PREFIXES, SQLITE_PREFIX, Settings

DEFAULT_FILE = Path("mergeyard.toml")
ENVIRONMENT_PREFIX = "MERGEYARD_"
FILE_VARIABLE = "MERGEYARD_CONFIG"

SETTING_KEYS = tuple(Settings.__struct_fields__)
TABLES = ("hosts", "oidc")
"""Only in the file."""
SIMPLE_KEYS = tuple(key for key in SETTING_KEYS if key not in TABLES)
ENVIRONMENT_KEYS = (*SIMPLE_KEYS, "config", "oidc_client_secret", "url", "token")
"""`url` and `token` are variables of the client."""


class SettingsProblem(Exception):
    """Where a setting is wrong, what is wrong, and what to do."""


class SettingInput(Struct, frozen=True, kw_only=True):
    """One setting from one source."""

    key: str
    value: object
    location: str
    base_dir: Path
    """The base of a relative path."""
    is_typed: bool
    """False for text that must be converted: environment variables and options."""

    def to_problem(self, message: str) -> SettingsProblem:
        return SettingsProblem(f"{self.location}: {message}")


class SettingsFile(Struct, frozen=True):
    path: Path
    values: dict[str, object]

    def locate(self, *keys: str) -> str:
        return f"{self.path}: {'.'.join(map(_quote_key, keys))}"


def to_environment_variable(key: str) -> str:
    return ENVIRONMENT_PREFIX + key.upper()


def to_option(key: str) -> str:
    return "--" + key.replace("_", "-")


def _quote_key(key: str) -> str:
    """Quotes a key as in TOML if it has dots or spaces."""
    return key if key.replace("_", "").replace("-", "").isalnum() else json.dumps(key)


# The file.


def read_settings_file(path: Path | None, environment: Mapping[str, str]) -> SettingsFile:
    """Reads the requested file, else `mergeyard.toml` in the current folder if it exists."""
    requested = path or (Path(environment[FILE_VARIABLE]) if environment.get(FILE_VARIABLE) else None)
    if requested is None and not DEFAULT_FILE.exists():
        return SettingsFile(DEFAULT_FILE, {})
    found = requested or DEFAULT_FILE
    try:
        values = decode_toml(found.read_bytes())
    except OSError as error:
        advice = f"correct --config or {FILE_VARIABLE}, or make the file readable"
        raise SettingsProblem(f"{found}: {error.strerror}; {advice}") from None
    if isinstance(values, InvalidConfig):
        raise SettingsProblem(f"{found}: {values.message}")
    return SettingsFile(found, values)


def describe_read_error(error: OSError | ValueError) -> str:
    return str(error.strerror) if isinstance(error, OSError) else "not a text file"


def from_file(file: SettingsFile) -> Iterator[SettingInput | str]:
    """Yields the settings, and problems as text."""
    for key, value in file.values.items():
        if key in SIMPLE_KEYS:
            yield SettingInput(
                key=key, value=value, location=file.locate(key), base_dir=file.path.parent, is_typed=True
            )
        elif key not in SETTING_KEYS:
            yield f"{file.locate(key)}: {describe_unknown_key(key, SETTING_KEYS)}"


# The environment and the command line.


def from_environment(environment: Mapping[str, str]) -> Iterator[SettingInput | str]:
    """Ignores empty variables. Other programs can use our prefix, so an unknown variable is an error only if it is
    similar to a setting."""
    for name, value in environment.items():
        key = name.removeprefix(ENVIRONMENT_PREFIX).lower()
        if name != to_environment_variable(key):
            continue
        if key == "hosts":
            yield f"{name}: hosts can be set only in the file; did you mean {to_environment_variable('host')}?"
        elif key in SIMPLE_KEYS and value:
            yield SettingInput(key=key, value=value, location=name, base_dir=Path(), is_typed=False)
        elif key not in ENVIRONMENT_KEYS and (similar := _find_similar(key, ENVIRONMENT_KEYS)):
            yield f"{name}: unknown setting; did you mean {to_environment_variable(similar)}?"


def from_options(options: Mapping[str, object]) -> Iterator[SettingInput | str]:
    """A value of None means that the option was not used."""
    for key, value in options.items():
        if key not in SIMPLE_KEYS:
            yield f"{to_option(key)}: {describe_unknown_key(to_option(key), list(map(to_option, SIMPLE_KEYS)))}"
        elif value is not None:
            yield SettingInput(key=key, value=value, location=to_option(key), base_dir=Path(), is_typed=False)


def describe_unknown_key(name: str, known: Collection[str]) -> str:
    similar = _find_similar(name, known)
    return "unknown setting; " + (f"did you mean {similar}?" if similar else "remove it")


def _find_similar(name: str, known: Collection[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name[:100], sorted(known), n=1, cutoff=0.75)), None)


SETTING_TYPES = get_type_hints(Settings, include_extras=True)


def parse_value(given: SettingInput) -> object:
    """Raises a `SettingsProblem` if the value is invalid."""
    try:
        value = msgspec.convert(given.value, SETTING_TYPES[given.key], strict=given.is_typed, dec_hook=_decode_path)
    except msgspec.ValidationError:
        raise given.to_problem(f"expected {describe_expected(given.key)}{_describe_actual(given)}") from None
    parse = PARSERS.get(given.key)
    return value if parse is None else parse(given, value)


def _decode_path(_kind: type, value: object) -> Path:
    if isinstance(value, Path):
        return value
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError
    return Path(value)


def describe_expected(key: str) -> str:
    settings = cast(inspect.StructType, inspect.type_info(Settings))
    return next(_describe_type(field.type) for field in settings.fields if field.name == key)


def _describe_type(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata(extra_json_schema={"description": str(description)}):
            return description
        case inspect.UnionType(types=(first, *_)):
            return _describe_type(first)
        case inspect.IntType(ge=minimum, le=maximum):
            return f"a whole number from {minimum} to {maximum}"
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType(values=choices):
            return f"one of {', '.join(map(str, choices))}"
        case _:
            raise AssertionError(f"no description for {kind}")


def _describe_actual(given: SettingInput) -> str:
    """The invalid value for a message. Never the address of a database: it can contain a password anywhere."""
    if given.key == "database_url":
        return ""
    shown = _mask_credentials(ascii(given.value))
    return f", not {shown if len(shown) <= 60 else shown[:57] + '...'}"


def _mask_credentials(text: str) -> str:
    before, slashes, rest = text.partition("//")
    return f"{before}//***@{rest.rpartition('@')[2]}" if slashes and "@" in rest else text


# Further validation of single settings.


def _resolve_path(given: SettingInput, value: Path | None) -> Path | None:
    return None if value is None else given.base_dir / value


def _parse_database_url(given: SettingInput, value: str) -> str:
    if value.startswith(POSTGRESQL_PREFIXES):
        if not _is_server_url(value):
            raise given.to_problem("expected postgresql://USER:PASSWORD@HOST/NAME")
        return value
    path = value.removeprefix(SQLITE_PREFIX)
    if path == value or not path or "\0" in path:
        raise given.to_problem(
            "expected postgresql://USER:PASSWORD@HOST/NAME, or sqlite:///PATH with the path of a file"
        )
    if path == ":memory:":
        raise given.to_problem("an in-memory database loses the queue at a restart; set the path of a file")
    return SQLITE_PREFIX + str(given.base_dir / path)


def _is_server_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.port != 0 and len(parts.path) > 1 and "\0" not in text
    except ValueError:
        return False


def _parse_public_url(given: SettingInput, value: str) -> str:
    if not is_web_url(value):
        raise given.to_problem(f"expected {describe_expected(given.key)}{_describe_actual(given)}")
    if "@" in urlsplit(value).netloc:
        raise given.to_problem("this address is public; remove the user name and password before the @")
    return value.rstrip("/")


def _parse_proxies(given: SettingInput, value: str) -> str:
    try:
        networks = [ip_network(each.strip()) for each in value.split(",") if each.strip()]
    except ValueError:
        raise given.to_problem(f"expected {describe_expected(given.key)}{_describe_actual(given)}") from None
    return ", ".join(map(str, networks))


def is_web_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        is_reachable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    is_plain = text.isprintable() and " " not in text and not parts.query and not parts.fragment
    return parts.scheme in ("http", "https") and is_reachable and is_plain


PARSERS: dict[str, Callable[[SettingInput, Any], object]] = {
    "data_dir": _resolve_path,
    "sealing_key_file": _resolve_path,
    "database_url_file": _resolve_path,
    "database_url": _parse_database_url,
    "public_url": _parse_public_url,
    "trusted_proxies": _parse_proxies,
}
