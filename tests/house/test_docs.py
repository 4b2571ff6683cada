"""The docs do not lie: links lead somewhere, and what they tell of the code is what the code says."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from mergeyard.domain.config import Config
from mergeyard.engine.decide import STEPS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "mergeyard"
FRONT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
PAGES = [*FRONT, *sorted(DOCS.rglob("*.md"))]
DECISIONS = sorted((DOCS / "decisions").glob("[0-9]*.md"))

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
every_decision = pytest.mark.parametrize("decision", DECISIONS, ids=lambda page: page.stem)


def without_code(page: Path) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)


def links(page: Path) -> list[tuple[str, str]]:
    """Where the links of a page lead that stay in the project: a file, and a heading in it."""
    found = re.findall(r"\]\(([^()\s]+)\)", without_code(page))
    return [(link.partition("#")[0], link.partition("#")[2]) for link in found if "://" not in link]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def section(page: Path, heading: str) -> str:
    """What stands under a heading, up to the next of its rank."""
    (found,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    return found


def first_cells(text: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


def modules(storey: str) -> set[str]:
    return {room.stem for room in (SOURCE / storey).glob("*.py")} - {"__init__"}


# Links


@every_page
def test_every_link_leads_to_a_file_that_is_there(page: Path):
    assert [link for link, _ in links(page) if not (page.parent / link).exists()] == []


@every_page
def test_every_link_to_a_heading_leads_to_one_that_is_there(page: Path):
    pointed = [((page.parent / link) if link else page, anchor) for link, anchor in links(page) if anchor]
    assert [anchor for target, anchor in pointed if anchor not in anchors(target)] == []


# The picture of the house


@pytest.mark.parametrize(
    ("storey", "heading"), [("domain", "The nouns"), ("engine", "The verbs"), ("service", "The service")]
)
def test_the_architecture_page_names_every_room_once_and_no_other(storey: str, heading: str):
    named = first_cells(section(DOCS / "architecture.md", heading))
    assert len(named) == len(set(named))
    assert set(named) == modules(storey)


def test_the_architecture_page_lists_the_steps_of_a_turn_in_their_order():
    listed = re.findall(r"^\d+\. `(\w+\.\w+)`", section(DOCS / "architecture.md", "One turn"), re.MULTILINE)
    assert listed == [f"{step.__module__.rpartition('.')[2]}.{step.__name__}" for step in STEPS]


# The words


def test_the_glossary_is_in_the_order_of_the_alphabet_and_explains_each_word_once():
    words = re.findall(r"^\*\*(.+?)\*\*", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    assert words == sorted(set(words), key=str.lower)


# The decisions


@every_decision
def test_a_decision_tells_its_context_its_choice_and_its_cost(decision: Path):
    assert re.findall(r"^## (.+)$", decision.read_text(), re.MULTILINE) == ["Context", "Choice", "Cost"]


@every_decision
def test_a_decision_fits_on_one_page(decision: Path):
    assert len(decision.read_text().splitlines()) <= 60


def test_decisions_are_numbered_from_one_and_listed_in_their_order():
    listed = [link for link, _ in links(DOCS / "decisions" / "README.md") if link[0].isdigit()]
    assert listed == [decision.name for decision in DECISIONS]
    assert [int(decision.name[:4]) for decision in DECISIONS] == list(range(1, len(DECISIONS) + 1))


# The settings


def camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def values(kind: inspect.Type) -> str:
    match kind:
        case inspect.IntType(ge=least, le=most):
            return f"{least}–{most}"
        case inspect.BoolType():
            return "`true` `false`"
        case inspect.EnumType(cls=words):
            return " ".join(f"`{word.value}`" for word in words)
        case inspect.UnionType(types=(inspect.VarTupleType(min_length=1), inspect.NoneType())):
            return "a list of at least one name, or `null`"
        case inspect.StrType():
            return "text"
        case _:
            raise AssertionError(f"the page has no way to show {kind}")


def spelled(default: Any) -> str:
    return "`" + msgspec.json.encode(default).decode().strip('"') + "`"


def settings_in_code() -> list[tuple[str, str, str]]:
    kind = inspect.type_info(Config)
    assert isinstance(kind, inspect.StructType)
    return [(camel_case(field.name), values(field.type), spelled(field.default)) for field in kind.fields]


def settings_on_the_page() -> list[tuple[str, str, str]]:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (`.+?`) \| .+\. \|$", (DOCS / "settings.md").read_text(), re.MULTILINE)
    return [(name, allowed, default) for name, allowed, default in rows]


def test_every_setting_stands_on_its_page_with_its_range_and_default():
    assert sorted(settings_on_the_page()) == sorted(settings_in_code())
