"""The site builds without a warning, and no page of it loads anything from another host."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"<(?:script|img|iframe|link|source)\b[^>]*\b(?:src|srcset|href)=[\"']?(?:https?:)?//[^\"'\s>]*")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_built(site: Path):
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    named = [page.with_name("index.md") if page.name == "README.md" else page for page in pages]
    assert [page for page in named if not (site / page).with_suffix(".html").is_file()] == []


def test_what_pages_link_to_beside_the_docs_is_there_too(site: Path):
    assert (site / "project" / "CONTRIBUTING.html").is_file()
    assert (site / "project" / "examples" / "github-actions" / "ci.yml").is_file()
    assert 'href="../states.html"' in (site / "project" / "CONTRIBUTING.html").read_text()


def test_no_page_loads_anything_from_another_host(site: Path):
    found = {page.name: LOADED.findall(page.read_text()) for page in site.rglob("*.html")}
    assert {name: sources for name, sources in found.items() if sources} == {}
