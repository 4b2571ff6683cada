"""The rooms of the house are small, named after what they do, and say so in their first line."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "mergeyard"
ROOMS = sorted(SOURCE.rglob("*.py"))
NAMES_THAT_SAY_NOTHING = {"base", "common", "helpers", "manager", "utils"}
WORDS_OF_THE_DOMAIN = {
    "bisect",
    "collections",
    "enum",
    "functools",
    "hashlib",
    "mergeyard",
    "msgspec",
    "types",
    "typing",
}

every_room = pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(SOURCE)))


def imported_packages(room: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(room.read_text())))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    source = {node.module or "mergeyard" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in plain | source}


@every_room
def test_a_room_opens_with_a_whole_sentence(room: Path):
    docstring = ast.get_docstring(ast.parse(room.read_text())) or ""
    first_line = docstring.partition("\n")[0]
    assert first_line.endswith(".")
    assert len(first_line.split()) > 2


@every_room
def test_a_room_is_named_after_what_it_does(room: Path):
    assert NAMES_THAT_SAY_NOTHING.isdisjoint(room.relative_to(SOURCE).with_suffix("").parts)


@every_room
def test_a_module_has_at_most_400_lines(room: Path):
    assert len(room.read_text().splitlines()) <= 400


def test_the_domain_speaks_only_of_plain_values():
    spoken = set[str]().union(*map(imported_packages, (SOURCE / "domain").glob("*.py")))
    assert spoken <= WORDS_OF_THE_DOMAIN
