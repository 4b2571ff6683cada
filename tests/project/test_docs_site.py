"""The documentation site: every page is in the navigation, every picture is used, and nothing is loaded externally."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.deploy.files import read_yaml
from tests.project.test_docs import links, without_code

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
PICTURES = sorted((DOCS / "pictures").glob("*.svg"))
STYLES = sorted((DOCS / "stylesheets").glob("*.css"))
SITE: dict[str, Any] = read_yaml(ROOT / "mkdocs.yml")
OUTSIDE_DOCS = "project/"
"""The site shows files from outside docs/ under this prefix."""

IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
LOADS_RESOURCE = re.compile(r"(?:src|href|srcset)=|url\(|@import|<script|<iframe|<foreignObject", re.IGNORECASE)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
each_picture = pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.stem)


def entries(navigation: Any) -> Iterator[str]:
    """The pages of the navigation; a folder means all pages in it."""
    if isinstance(navigation, str):
        folder = navigation.endswith("/")
        yield from (
            (f"{navigation}{page.name}" for page in (DOCS / navigation).glob("*.md")) if folder else (navigation,)
        )
        return
    parts = cast(dict[str, Any], navigation).values() if isinstance(navigation, dict) else cast(list[Any], navigation)
    for part in parts:
        yield from entries(part)


def to_path(entry: str) -> Path:
    return ROOT / entry.removeprefix(OUTSIDE_DOCS) if entry.startswith(OUTSIDE_DOCS) else DOCS / entry


def images(page: Path) -> list[tuple[str, str]]:
    return IMAGE.findall(without_code(page))


# Pages


def test_navigation_groups_lead_from_start_to_contribute():
    groups = [next(iter(group)) for group in SITE["nav"]]
    assert groups == ["Start", "For developers", "For admins", "Operate", "Reference", "Understand", "Contribute"]


def test_every_page_is_in_the_navigation_once():
    listed = sorted(entry for entry in entries(SITE["nav"]) if not entry.startswith(OUTSIDE_DOCS))
    assert listed == sorted(str(page.relative_to(DOCS)) for page in PAGES)


def test_navigation_names_only_existing_files():
    assert [entry for entry in entries(SITE["nav"]) if not to_path(entry).is_file()] == []


@each_page
def test_page_starts_with_its_only_title(page: Path):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert text.startswith("# ")
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1


@each_page
def test_lists_and_tables_are_separated_from_the_text_above(page: Path):
    """A forge does not need the blank line; the site would render them as text."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    not_separated = r"^(?![-*|#>\d ])[^\n]+\n(?:[-*] |\d+\. |\|)[^\n]*"
    assert re.findall(not_separated, text, re.MULTILINE) == []


@each_page
def test_links_to_headings_work_on_a_forge_and_on_the_site(page: Path):
    """Forges and the site build different anchors where a dropped character is between two blanks."""
    assert [anchor for _, anchor in links(page) if "--" in anchor or anchor.strip("-") != anchor] == []


def test_site_validation_warns_about_everything():
    checks = SITE["validation"]
    assert {check for group in ("nav", "links") for check in checks[group].values()} == {"warn"}
    assert {"anchors", "not_found"} <= checks["links"].keys()


# External resources


def test_site_ships_its_own_fonts_styles_and_search():
    assert SITE["theme"]["font"] is False
    assert SITE["plugins"] == ["search"]
    assert "extra_javascript" not in SITE
    assert [style for style in SITE["extra_css"] if not (DOCS / style).is_file()] == []


@pytest.mark.parametrize("file", [*PICTURES, *STYLES], ids=lambda file: file.name)
def test_pictures_and_styles_load_nothing(file: Path):
    assert LOADS_RESOURCE.findall(file.read_text()) == []


@each_page
def test_page_is_markdown_with_local_pictures(page: Path):
    assert re.findall(r"<[a-z][^>]*>", without_code(page)) == []
    assert "```mermaid" not in page.read_text()
    assert [source for _, source in images(page) if not (page.parent / source).is_file()] == []


# Pictures


@each_page
def test_picture_has_an_alternative_text(page: Path):
    assert [source for text, source in images(page) if len(text.split()) < 5] == []


@each_picture
def test_picture_is_used_on_a_page(picture: Path):
    shown = {(page.parent / source).resolve() for page in PAGES for _, source in images(page)}
    assert picture.resolve() in shown


@each_picture
def test_picture_has_a_title_and_supports_light_and_dark(picture: Path):
    text = picture.read_text()
    assert re.search(r"<title>[^<]+</title>\s*<desc>[^<]+\.</desc>", text)
    assert "@media (prefers-color-scheme: dark)" in text
    assert 'role="img"' in text


EXTERNAL_RESOURCE = re.compile(
    r"<(?:script|img|iframe|link|source)\b[^>]*\b(?:src|srcset|href)=[\"']?(?:https?:)?//[^\"'\s>]*"
)


def build_site(folder: Path) -> None:
    build = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert build.returncode == 0, build.stderr


def test_site_has_every_page_and_loads_nothing_from_another_host(tmp_path: Path):
    build_site(tmp_path)
    sources = [page.relative_to(DOCS) for page in PAGES]
    sources = [page.with_name("index.md") if page.name == "README.md" else page for page in sources]
    assert [page for page in sources if not (tmp_path / page).with_suffix(".html").is_file()] == []
    assert (tmp_path / "project" / "examples" / "github-actions" / "ci.yml").is_file()
    assert 'href="../reference/states.html"' in (tmp_path / "project" / "CONTRIBUTING.html").read_text()
    found = {page.name: EXTERNAL_RESOURCE.findall(page.read_text()) for page in tmp_path.rglob("*.html")}
    assert {name: resources for name, resources in found.items() if resources} == {}
