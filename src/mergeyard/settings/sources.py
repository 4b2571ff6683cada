"""Finds what is given: in the file, in the environment and on the command line."""

import difflib
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from mergeyard.service import toml_document
from mergeyard.service.toml_document import KeyPath, Unreadable
from mergeyard.settings.schema import Settings

DEFAULT_FILE = Path("mergeyard.toml")
PREFIX = "MERGEYARD_"
FILE_VARIABLE = "MERGEYARD_CONFIG"

KEYS = tuple(Settings.__struct_fields__)
TABLES = ("hosts", "oidc")
"""They stand only in the file."""
SIMPLE_KEYS = tuple(key for key in KEYS if key not in TABLES)
KEYS_OF_VARIABLES = (*SIMPLE_KEYS, "config", "oidc_client_secret", "url", "token")
"""The last two are for the client."""


class Complaint(Struct, frozen=True):
    """What is wrong, where, and what to do about it."""

    words: str


class Given(Struct, frozen=True, kw_only=True):
    """One setting, as one source has it."""

    key: str
    value: object
    where: str
    beside: Path
    """What a relative path starts from."""
    has_types: bool
    """The environment knows only text."""

    def complaint(self, words: str) -> Complaint:
        return Complaint(f"{self.where}: {words}")


class File(Struct, frozen=True):
    path: Path
    values: dict[str, object]
    lines: dict[KeyPath, int]

    def where(self, *keys: str) -> str:
        return f"{self.path} line {self.lines.get(keys, 1)}, {'.'.join(map(spelled, keys))}"


def variable(key: str) -> str:
    return PREFIX + key.upper()


def option(key: str) -> str:
    return "--" + key.replace("_", "-")


def spelled(key: str) -> str:
    """As TOML has it: a key with dots or spaces needs quotes."""
    return key if key.replace("_", "").replace("-", "").isalnum() else json.dumps(key)


# The file


def read_file(path: Path | None, environment: Mapping[str, str]) -> File | Complaint:
    """The file that is asked for, else the one in the current folder, else an empty one."""
    asked = path or (Path(environment[FILE_VARIABLE]) if environment.get(FILE_VARIABLE) else None)
    if asked is None and not DEFAULT_FILE.exists():
        return File(DEFAULT_FILE, {}, {})
    found = asked or DEFAULT_FILE
    try:
        document = toml_document.read(found.read_bytes())
    except OSError as error:
        return Complaint(f"{found}: {error.strerror}; correct --config or {FILE_VARIABLE}, or make the file readable")
    if isinstance(document, Unreadable):
        return Complaint(f"{found} line {document.line}: {document.words}")
    return File(found, document.values, toml_document.lines_of_keys(document))


def from_file(file: File) -> Iterator[Given | Complaint]:
    for key, value in file.values.items():
        if key in SIMPLE_KEYS:
            yield Given(key=key, value=value, where=file.where(key), beside=file.path.parent, has_types=True)
        elif key not in KEYS:
            yield unknown(file.where(key), key, KEYS)


# The environment and the command line


def from_environment(environment: Mapping[str, str]) -> Iterator[Given | Complaint]:
    """An empty variable counts as not set. Others may share our prefix, so only what looks mistyped is refused."""
    for name, value in environment.items():
        key = name.removeprefix(PREFIX).lower()
        if name == variable("hosts"):
            yield Complaint(f"{name}: hosts stand only in the file; or did you mean {variable('host')}?")
        elif name == variable(key) and key in SIMPLE_KEYS and value:
            yield Given(key=key, value=value, where=name, beside=Path(), has_types=False)
        elif name == variable(key) and key not in KEYS_OF_VARIABLES and (close := nearest(key, KEYS_OF_VARIABLES)):
            yield Complaint(f"{name}: there is no such setting; did you mean {variable(close)}?")


def from_options(options: Mapping[str, object]) -> Iterator[Given | Complaint]:
    """None: the option was not given."""
    for key, value in options.items():
        if key not in SIMPLE_KEYS:
            yield unknown(option(key), option(key), list(map(option, SIMPLE_KEYS)))
        elif value is not None:
            yield Given(key=key, value=value, where=option(key), beside=Path(), has_types=False)


def unknown(where: str, name: str, known: Collection[str]) -> Complaint:
    close = nearest(name, known)
    return Complaint(f"{where}: there is no such setting; " + (f"did you mean {close}?" if close else "remove it"))


def nearest(name: str, known: Collection[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name[:100], sorted(known), n=1, cutoff=0.75)), None)
