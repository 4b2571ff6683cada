"""All queries by name, read once from the `.sql` files beside this room."""

from collections.abc import Iterator
from importlib import resources
from types import MappingProxyType

FOLDER = resources.files("mergeyard.adapters.store_sqlite")
MARK = "-- name: "


def texts(folder: str) -> Iterator[tuple[str, str]]:
    """Every `.sql` file of a folder, by name: its stem and what it holds."""
    files = sorted((FOLDER / folder).iterdir(), key=lambda file: file.name)
    return ((file.name.removesuffix(".sql"), file.read_text("utf-8")) for file in files if file.name.endswith(".sql"))


def queries_of(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(MARK)[1:]:
        name, _, rest = part.partition("\n")
        yield name, "\n".join(line for line in rest.splitlines() if line and not line.startswith("--"))


SQL = MappingProxyType(dict(query for _, text in texts("queries") for query in queries_of(text)))
