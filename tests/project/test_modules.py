"""Modules have a docstring, a telling name and a readable size, and the domain imports only plain values."""

import ast
import statistics
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "mergeyard"
MODULES = sorted(SOURCE.rglob("*.py"))
MAX_MODULES = 270
MAX_LINES = 450
NAMES_WITHOUT_MEANING = {"base", "helpers", "manager", "misc", "utils"}
IMPORTS_OF_THE_DOMAIN = {
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

each_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(SOURCE)))


def imported_packages(module: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(module.read_text())))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    source = {node.module or "mergeyard" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in plain | source}


@each_module
def test_module_starts_with_a_sentence(module: Path):
    docstring = ast.get_docstring(ast.parse(module.read_text())) or ""
    first_line = docstring.partition("\n\n")[0]
    assert first_line.endswith((".", ":"))
    assert len(first_line.split()) > 2


@each_module
def test_module_has_a_name_with_a_meaning(module: Path):
    assert NAMES_WITHOUT_MEANING.isdisjoint(module.relative_to(SOURCE).with_suffix("").parts)


@each_module
def test_module_is_short_enough_to_read(module: Path):
    assert len(module.read_text().splitlines()) <= MAX_LINES


def test_product_has_few_and_deep_modules():
    assert len(MODULES) <= MAX_MODULES
    assert statistics.median(len(module.read_text().splitlines()) for module in MODULES) >= 120


def test_domain_imports_only_plain_values():
    imported = set[str]().union(*map(imported_packages, (SOURCE / "domain").glob("*.py")))
    assert imported <= IMPORTS_OF_THE_DOMAIN
