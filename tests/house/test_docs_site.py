"""The documentation is a whole site: every page is reached, every picture is seen, and nothing comes from elsewhere."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.deploy.files import read_yaml
from tests.house.test_docs import links, without_code

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
PICTURES = sorted((DOCS / "pictures").glob("*.svg"))
STYLES = sorted((DOCS / "stylesheets").glob("*.css"))
SITE: dict[str, Any] = read_yaml(ROOT / "mkdocs.yml")
GUESTS = "project/"
"""Below this the site shows files that stand beside docs/."""

IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
ELSEWHERE = re.compile(r"(?:src|href|srcset)=|url\(|@import|<script|<iframe|<foreignObject", re.IGNORECASE)

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
every_picture = pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.stem)


def entries(navigation: Any) -> Iterator[str]:
    """The pages of the navigation; a folder stands for all that are in it."""
    if isinstance(navigation, str):
        folder = navigation.endswith("/")
        yield from (
            (f"{navigation}{page.name}" for page in (DOCS / navigation).glob("*.md")) if folder else (navigation,)
        )
        return
    parts = cast(dict[str, Any], navigation).values() if isinstance(navigation, dict) else cast(list[Any], navigation)
    for part in parts:
        yield from entries(part)


def place(entry: str) -> Path:
    return ROOT / entry.removeprefix(GUESTS) if entry.startswith(GUESTS) else DOCS / entry


def images(page: Path) -> list[tuple[str, str]]:
    return IMAGE.findall(without_code(page))


# Every page


def test_the_navigation_leads_a_newcomer_from_start_to_contribute():
    groups = [next(iter(group)) for group in SITE["nav"]]
    assert groups == ["Start", "Use", "Operate", "Understand", "Reference", "Contribute"]


def test_every_page_stands_in_the_navigation_once():
    led_to = sorted(entry for entry in entries(SITE["nav"]) if not entry.startswith(GUESTS))
    assert led_to == sorted(str(page.relative_to(DOCS)) for page in PAGES)


def test_the_navigation_leads_only_to_what_is_there():
    assert [entry for entry in entries(SITE["nav"]) if not place(entry).is_file()] == []


@every_page
def test_a_page_begins_with_its_one_title(page: Path):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert text.startswith("# ")
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1


@every_page
def test_lists_and_tables_stand_apart_from_the_text_above(page: Path):
    """On a forge they need not; on the site they would run on as text."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    begun = r"^(?![-*|#>\d ])[^\n]+\n(?:[-*] |\d+\. |\|)[^\n]*"
    assert re.findall(begun, text, re.MULTILINE) == []


@every_page
def test_links_to_headings_mean_the_same_on_a_forge_and_on_the_site(page: Path):
    """Where a heading has something between two blanks that is left out, the two write it differently."""
    assert [anchor for _, anchor in links(page) if "--" in anchor or anchor.strip("-") != anchor] == []


def test_the_site_is_built_strictly():
    checks = SITE["validation"]
    assert {check for group in ("nav", "links") for check in checks[group].values()} == {"warn"}
    assert {"anchors", "not_found"} <= checks["links"].keys()


# Nothing from elsewhere


def test_the_site_brings_its_own_letters_styles_and_search():
    assert SITE["theme"]["font"] is False
    assert SITE["plugins"] == ["search"]
    assert "extra_javascript" not in SITE
    assert [style for style in SITE["extra_css"] if not (DOCS / style).is_file()] == []


@pytest.mark.parametrize("file", [*PICTURES, *STYLES], ids=lambda file: file.name)
def test_pictures_and_styles_load_nothing(file: Path):
    assert ELSEWHERE.findall(file.read_text()) == []


@every_page
def test_a_page_is_markdown_with_pictures_of_our_own(page: Path):
    assert re.findall(r"<[a-z][^>]*>", without_code(page)) == []
    assert "```mermaid" not in page.read_text()
    assert [source for _, source in images(page) if not (page.parent / source).is_file()] == []


# Pictures


@every_page
def test_a_picture_is_told_to_those_who_do_not_see_it(page: Path):
    assert [source for words, source in images(page) if len(words.split()) < 5] == []


@every_picture
def test_a_picture_is_on_some_page(picture: Path):
    shown = {(page.parent / source).resolve() for page in PAGES for _, source in images(page)}
    assert picture.resolve() in shown


@every_picture
def test_a_picture_has_a_title_and_is_drawn_for_light_and_dark(picture: Path):
    text = picture.read_text()
    assert re.search(r"<title>[^<]+</title>\s*<desc>[^<]+\.</desc>", text)
    assert "@media (prefers-color-scheme: dark)" in text
    assert 'role="img"' in text
