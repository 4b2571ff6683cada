"""Modules have a docstring and a telling name, and the domain imports only plain values."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "mergeyard"
MODULES = sorted(SOURCE.rglob("*.py"))
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


def imported_packages(module: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(module.read_text())))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    source = {node.module or "mergeyard" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in plain | source}


def starts_with_a_sentence(module: Path) -> bool:
    docstring = ast.get_docstring(ast.parse(module.read_text())) or ""
    first_line = docstring.partition("\n\n")[0]
    return first_line.endswith((".", ":")) and len(first_line.split()) > 2


def test_every_module_starts_with_a_sentence():
    assert [module for module in MODULES if not starts_with_a_sentence(module)] == []


def test_every_module_has_a_name_with_a_meaning():
    names = {module: module.relative_to(SOURCE).with_suffix("").parts for module in MODULES}
    assert [module for module, parts in names.items() if not NAMES_WITHOUT_MEANING.isdisjoint(parts)] == []


def test_domain_imports_only_plain_values():
    imported = set[str]().union(*map(imported_packages, (SOURCE / "domain").glob("*.py")))
    assert imported <= IMPORTS_OF_THE_DOMAIN
