"""There is no git, or one that is too old: a start says so and ends; a server that runs says so and waits for it."""

import shutil
from pathlib import Path
from typing import Self

import pytest

from mergeyard.adapters.git_cli import Committer, GitCli
from mergeyard.ports.git import GitTrouble, Remote
from tests.support.asynchronous import asynchronous
from tests.support.patience import eventually
from tests.support.repositories import Origin
from tests.support.server import Server
from tests.surroundings.conftest import Found

FAILED = 1


class OwnPath:
    """A folder that is all there is in a server's path."""

    def __init__(self, folder: Path) -> None:
        self._git = folder / "git"
        self._folder = folder
        folder.mkdir()

    @classmethod
    def of(cls, server: Server) -> Self:
        path = cls(server.folder / "bin")
        server.surroundings["PATH"] = str(path._folder)
        return path

    def put(self) -> None:
        self._git.symlink_to(shutil.which("git") or "")

    def put_script(self, script: str) -> None:
        self._git.write_text(f"#!/bin/sh\n{script}\n")
        self._git.chmod(0o755)

    def take_away(self) -> None:
        self._git.unlink()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("", "git could not be started"),
        pytest.param("echo git version 2.30.1", "git 2.30.1 is too old", marks=pytest.mark.long),
        pytest.param("echo sorry >&2; exit 1", "is no version", marks=pytest.mark.long),
    ],
)
def test_a_server_without_a_fitting_git_says_so_and_ends(tmp_path: Path, script: str, words: str):
    server = Server(tmp_path)
    path = OwnPath.of(server)
    if script:
        path.put_script(script)
    server.launch()
    assert server.process.wait(60) == FAILED
    told = [entry["event"] for entry in server.told()]
    assert words in told[-1]
    assert "install git 2.38 or newer, and put it first in PATH" in told[-1]
    assert not any("Traceback" in line for line in told)


@asynchronous
async def test_a_git_that_dies_says_nothing_about_what_is_part_of_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    origin = Origin.made(tmp_path / "origin.git")
    first, second = (origin.commit("main", {"a.txt": text}) for text in "12")
    mirror = await GitCli(tmp_path / "mirrors", Committer("Mergeyard", "x@example.org")).mirror("m", Remote(origin.url))
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.holds(second, first)
    OwnPath(tmp_path / "bin").put_script("kill -9 $$")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(GitTrouble):
        await mirror.holds(second, first)


@pytest.mark.long
def test_a_git_without_memory_blames_nobody(found: Found):
    server = found.server()
    path = OwnPath.of(server)
    path.put()
    site = found(server)
    numbers = [site.open_pr({f"{name}.txt": "1"}) for name in "abc"]
    path.take_away()
    path.put_script(f'case "$*" in *merge-tree*|*push*|*fetch*) ulimit -v 3000;; esac; exec {shutil.which("git")} "$@"')
    site.submit(*numbers)
    site.eventually(lambda: site.watching.figure("mergeyard_tasks_total", outcome="trouble") > 3)
    assert {site.state(number) for number in numbers} == {"not_ready"}
    path.take_away()
    path.put()
    site.wait_for("merged", *numbers)


@pytest.mark.long
def test_a_git_that_vanishes_stops_nobody_for_good(found: Found):
    server = found.server()
    path = OwnPath.of(server)
    path.put()
    site = found(server)
    site.ci.working = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    path.take_away()
    site.ci.working = True
    words = eventually(site.watching.in_the_way)
    assert "git could not be started" in words
    assert "install git" in words
    assert site.watching.lives()
    site.submit(late)
    site.eventually(lambda: site.watching.figure("mergeyard_tasks_total", outcome="trouble") > 1)
    assert {site.state(early), site.state(late)}.isdisjoint({"failed", "cancelled"})
    path.put()
    site.wait_for("merged", early, late)
    assert site.watching.is_ready()
    assert server.complaints() == []
