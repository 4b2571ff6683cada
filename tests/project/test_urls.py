"""The addresses of the project are those of pyproject.toml, and the version is that of the package, in every file that
names them."""

import re
import shutil
from pathlib import Path

import pytest

from mergeyard import __version__
from tools.urls import ADDRESS, PLACES, ROOT, list_files, read_addresses, replace_addresses

REPOSITORY, DOCUMENTATION = read_addresses(ROOT)
OTHER_ADDRESSES = ("https://code.example.org/tools/mergeyard", "https://example.org/manual")
RUNBOOK = f"{DOCUMENTATION}/operate/monitoring.html#"


@pytest.mark.parametrize("address", [REPOSITORY, DOCUMENTATION, *OTHER_ADDRESSES])
def test_address_has_no_slash_at_its_end(address: str):
    assert ADDRESS.fullmatch(address)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("README.md", f"git clone {REPOSITORY}\n"),
        ("README.md", f"]({REPOSITORY}/issues)"),
        ("README.md", f"]({DOCUMENTATION})"),
        ("SECURITY.md", f"({REPOSITORY})"),
        ("CONTRIBUTING.md", f"({REPOSITORY}/issues)"),
        ("Dockerfile", f'image.source="{REPOSITORY}"'),
        ("Dockerfile", f'image.documentation="{DOCUMENTATION}"'),
        ("deploy/helm/mergeyard/Chart.yaml", f"home: {DOCUMENTATION}\n"),
        ("deploy/helm/mergeyard/Chart.yaml", f"sources: [{REPOSITORY}]\n"),
    ],
)
def test_file_names_the_address(place: str, text: str):
    assert text in (ROOT / place).read_text()


def test_runbooks_are_pages_of_the_documentation():
    rules = (ROOT / "deploy" / "prometheus" / "rules.yml").read_text()
    links = re.findall(r"runbook_url: (\S+)", rules)
    assert len(links) == rules.count("alert: ")
    assert [link for link in links if not link.startswith(RUNBOOK)] == []


def test_new_addresses_replace_the_old_ones_everywhere(tmp_path: Path):
    for place in PLACES:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / place).is_dir() else shutil.copy
        copy(ROOT / place, tmp_path / place)
    changed = {path.relative_to(tmp_path).as_posix() for path in replace_addresses(tmp_path, OTHER_ADDRESSES)}
    assert {"pyproject.toml", "README.md", "Dockerfile", "deploy/helm/mergeyard/Chart.yaml"} <= changed
    assert read_addresses(tmp_path) == OTHER_ADDRESSES
    contents = [(path, path.read_bytes()) for path in list_files(tmp_path)]
    assert [path for path, text in contents if REPOSITORY.encode() in text or DOCUMENTATION.encode() in text] == []


@pytest.mark.parametrize("place", ["README.md", "docs/start/install.md"])
def test_page_installs_the_wheel_of_this_version(place: str):
    versions = re.findall(r"dist/mergeyard-([\d.]+)-py3", (ROOT / place).read_text())
    assert set(versions) == {__version__}


def test_changelog_starts_with_this_version():
    assert re.findall(r"^## ([\d.]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == __version__
