"""A remote repository and a mirror of it."""

import asyncio
from pathlib import Path

import pytest

from mergeyard.adapters.git_cli import GitCli
from mergeyard.domain.ids import SHA1, SHA256, ObjectFormat
from mergeyard.ports.git import Git, Identity, Mirror, Remote
from tests.support.repositories import Origin

MODULES_WITH_BOTH_FORMATS = ("test_notes", "test_object_formats")
"""Of the others, the daily tests run with one format."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "object_format" not in metafunc.fixturenames:
        return
    is_daily = metafunc.definition.path.stem in MODULES_WITH_BOTH_FORMATS
    marks = () if is_daily else (pytest.mark.long,)
    formats = [pytest.param(SHA1, id="sha1"), pytest.param(SHA256, id="sha256", marks=marks)]
    metafunc.parametrize("object_format", formats)


@pytest.fixture
def origin(tmp_path: Path, object_format: ObjectFormat) -> Origin:
    origin = Origin.create(tmp_path / "origin.git", object_format)
    origin.commit("main", {"a.txt": "1\n", "b.txt": "1\n2\n3\n", "lib/c.txt": "c\n"}, message="The beginning")
    return origin


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return GitCli(tmp_path / "mirrors", Identity("Mergeyard", "queue@example.org"))


@pytest.fixture
def mirror(git: Git, origin: Origin) -> Mirror:
    return asyncio.run(git.mirror("git.local/owner/name", Remote(origin.url)))
