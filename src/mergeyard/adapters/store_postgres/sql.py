"""All queries by name, read once from the `.sql` files beside this room.

They name their values (`:queue`), as people read them; PostgreSQL gets numbers (`$1`).
"""

import re
from collections.abc import Iterator, Mapping
from importlib import resources
from types import MappingProxyType

from msgspec import Struct

from mergeyard.adapters.store_postgres.handles import Value
from mergeyard.adapters.store_postgres.text import stored

FOLDER = resources.files("mergeyard.adapters.store_postgres")
MARK = "-- name: "
NAMED_VALUE = re.compile(r"(?<!:):([a-z_]+)")
"""Two colons are a cast."""


class Query(Struct, frozen=True):
    text: str
    names: tuple[str, ...]

    def arguments(self, values: Mapping[str, Value]) -> list[Value]:
        return [storable(values[name]) for name in self.names]


def storable(value: Value) -> Value:
    if isinstance(value, str):
        return stored(value)
    if isinstance(value, list | tuple):
        return [storable(part) for part in value]
    return value


def texts(folder: str) -> Iterator[tuple[str, str]]:
    """Every `.sql` file of a folder, by name: its stem and what it holds."""
    files = sorted((FOLDER / folder).iterdir(), key=lambda file: file.name)
    return ((file.name.removesuffix(".sql"), file.read_text("utf-8")) for file in files if file.name.endswith(".sql"))


def queries_of(text: str) -> Iterator[tuple[str, Query]]:
    for part in text.split(MARK)[1:]:
        name, _, rest = part.partition("\n")
        yield name, numbered("\n".join(line for line in rest.splitlines() if line and not line.startswith("--")))


def numbered(text: str) -> Query:
    names = tuple(dict.fromkeys(NAMED_VALUE.findall(text)))
    return Query(NAMED_VALUE.sub(lambda found: f"${names.index(found[1]) + 1}", text), names)


SQL = MappingProxyType(dict(query for _, text in texts("queries") for query in queries_of(text)))
