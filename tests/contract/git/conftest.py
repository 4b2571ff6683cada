"""A remote repository and a mirror of it."""

import asyncio
from pathlib import Path

import pytest

from mergeyard.adapters.git_cli import GitCli
from mergeyard.ports.git import Git, Identity, Mirror, Remote
from tests.support.repositories import Origin


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    origin = Origin.create(tmp_path / "origin.git")
    origin.commit("main", {"a.txt": "1\n", "b.txt": "1\n2\n3\n", "lib/c.txt": "c\n"}, message="The beginning")
    return origin


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return GitCli(tmp_path / "mirrors", Identity("Mergeyard", "queue@example.org"))


@pytest.fixture
def mirror(git: Git, origin: Origin) -> Mirror:
    return asyncio.run(git.mirror("git.local/owner/name", Remote(origin.url)))
