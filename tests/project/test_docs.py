"""The documentation matches the code: links resolve, and lists of modules, steps and settings are complete."""

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from mergeyard import engine
from mergeyard.domain.config import Config
from mergeyard.engine.decide import STEPS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "mergeyard"
FRONT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
PAGES = [*FRONT, *sorted(DOCS.rglob("*.md"))]
ARCHITECTURE = DOCS / "contribute/architecture.md"
DECISIONS = sorted((DOCS / "decisions").glob("[0-9]*.md"))

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
each_decision = pytest.mark.parametrize("decision", DECISIONS, ids=lambda page: page.stem)


def without_code(page: Path) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)


def links(page: Path) -> list[tuple[str, str]]:
    """The links of a page to files of this project: a file, and a heading in it."""
    found = re.findall(r"\]\(([^()\s]+)\)", without_code(page))
    return [(link.partition("#")[0], link.partition("#")[2]) for link in found if "://" not in link]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def section(page: Path, heading: str) -> str:
    """The text below a heading, up to the next heading of the same level."""
    (found,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    return found


def code_spans(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", text)


# Links


@each_page
def test_links_lead_to_existing_files(page: Path):
    assert [link for link, _ in links(page) if not (page.parent / link).exists()] == []


@each_page
def test_links_to_headings_lead_to_existing_headings(page: Path):
    targets = [((page.parent / link) if link else page, anchor) for link, anchor in links(page) if anchor]
    assert [anchor for target, anchor in targets if anchor not in anchors(target)] == []


# Architecture


def test_architecture_page_lists_the_layers_in_order():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    rows = re.findall(r"^\| (`.+?`) \|", section(ARCHITECTURE, "Layers"), re.MULTILINE)
    assert [name for row in rows for name in code_spans(row)] == re.findall(r"\w+", " ".join(layers))


def test_packages_named_by_the_architecture_page_exist():
    rows = re.findall(r"^\| (`.+?`) \|.*\| (`.+) \|$", section(ARCHITECTURE, "Packages"), re.MULTILINE)
    assert rows
    for packages, modules in rows:
        first, *others = (SOURCE / name for name in code_spans(packages))
        assert all((first.parent / other.name / "__init__.py").is_file() for other in (first, *others)), packages
        assert all((first / f"{name}.py").is_file() for name in code_spans(modules)), modules


def test_paths_named_by_the_architecture_page_exist():
    """`<forge>` is a placeholder for any name, and modules are named without `.py`."""
    text = ARCHITECTURE.read_text().replace(section(ARCHITECTURE, "Packages"), "")
    spans = [re.sub(r"<\w+>", "*", span) for span in code_spans(text)]
    paths = [span for span in spans if re.fullmatch(r"[\w*.]+(?:/[\w*.]+)+/?", span)]
    patterns = {path: (path.rstrip("/"), f"{path}.py") for path in paths}
    assert len(patterns) > 20
    assert [
        path
        for path, names in patterns.items()
        if not any(found for folder in (ROOT, SOURCE) for name in names for found in folder.glob(name))
    ] == []


def test_engine_docstring_lists_the_steps_of_a_decision_in_order():
    listed = re.findall(r"^\d+\. `(\w+\.\w+)`", engine.__doc__ or "", re.MULTILINE)
    assert listed == [f"{step.__module__.rpartition('.')[2]}.{step.__name__}" for step in STEPS]


def test_engine_docstring_names_every_module_once():
    named = code_spans((engine.__doc__ or "").partition("\nModules\n")[2])
    assert sorted(named) == sorted({path.stem for path in (SOURCE / "engine").glob("*.py")} - {"__init__"})


# Glossary


def test_glossary_is_in_alphabetical_order_and_has_each_word_once():
    words = re.findall(r"^\*\*(.+?)\*\*", (DOCS / "reference/glossary.md").read_text(), re.MULTILINE)
    assert words == sorted(set(words), key=str.lower)


# Decisions


@each_decision
def test_decision_has_context_choice_and_cost(decision: Path):
    assert re.findall(r"^## (.+)$", decision.read_text(), re.MULTILINE) == ["Context", "Choice", "Cost"]


@each_decision
def test_decision_fits_on_one_page(decision: Path):
    assert len(decision.read_text().splitlines()) <= 60


def test_decisions_are_numbered_from_one_and_listed_in_order():
    listed = [link for link, _ in links(DOCS / "decisions" / "README.md") if link[0].isdigit()]
    assert listed == [decision.name for decision in DECISIONS]
    assert [int(decision.name[:4]) for decision in DECISIONS] == list(range(1, len(DECISIONS) + 1))


# Settings


def camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def describe_values(kind: inspect.Type) -> str:
    match kind:
        case inspect.IntType(ge=least, le=most):
            return f"{least}–{most}"
        case inspect.BoolType():
            return "`true` `false`"
        case inspect.EnumType(cls=members):
            return " ".join(f"`{member.value}`" for member in members)
        case inspect.UnionType(types=(inspect.VarTupleType(min_length=1), inspect.NoneType())):
            return "a list of at least one name, or `null`"
        case inspect.StrType():
            return "text"
        case _:
            raise AssertionError(f"the page cannot describe {kind}")


JSON_LISTS = {"allowed_bot_submitters": "a list of names", "batching_rules": "a list of objects"}
"""Settings that are lists in the API and text in the code."""


def format_default(default: Any) -> str:
    text = msgspec.json.encode(default).decode()
    return "`" + (text.strip('"') or text) + "`"


def settings_in_code() -> list[tuple[str, str, str]]:
    kind = inspect.type_info(Config)
    assert isinstance(kind, inspect.StructType)
    return [
        (
            camel_case(field.name),
            JSON_LISTS.get(field.name) or describe_values(field.type),
            format_default(field.default),
        )
        for field in kind.fields
    ]


def settings_on_page() -> list[tuple[str, str, str]]:
    rows = re.findall(
        r"^\| `(\w+)` \| (.+?) \| (`.+?`) \| .+\. \|$", (DOCS / "reference/settings.md").read_text(), re.MULTILINE
    )
    return [(name, allowed, default) for name, allowed, default in rows]


def test_settings_page_lists_every_setting_with_its_range_and_default():
    assert sorted(settings_on_page()) == sorted(settings_in_code())
