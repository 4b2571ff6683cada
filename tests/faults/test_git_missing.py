"""Git is missing or too old: a starting server reports it and exits, a running one reports it and waits."""

import shutil
from pathlib import Path
from typing import Self

import pytest

from mergeyard.adapters.git_cli import GitCli
from mergeyard.ports.git import GitError, Identity, Remote
from tests.faults.conftest import SiteFactory
from tests.support.asynchronous import asynchronous
from tests.support.polling import eventually
from tests.support.repositories import Origin
from tests.support.server import Server

FAILED = 1


class OwnPath:
    """A folder that is the only one in a server's PATH."""

    def __init__(self, folder: Path) -> None:
        self._git = folder / "git"
        self._folder = folder
        folder.mkdir()

    @classmethod
    def of(cls, server: Server) -> Self:
        path = cls(server.folder / "bin")
        server.environment["PATH"] = str(path._folder)
        return path

    def install(self) -> None:
        self._git.symlink_to(shutil.which("git") or "")

    def install_script(self, script: str) -> None:
        self._git.write_text(f"#!/bin/sh\n{script}\n")
        self._git.chmod(0o755)

    def uninstall(self) -> None:
        self._git.unlink()


@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("", "git could not be started"),
        pytest.param("echo git version 2.30.1", "git 2.30.1 is too old", marks=pytest.mark.long),
        pytest.param("echo sorry >&2; exit 1", "which is not valid", marks=pytest.mark.long),
    ],
)
def test_server_without_a_supported_git_reports_it_and_exits(tmp_path: Path, script: str, message: str):
    server = Server(tmp_path)
    path = OwnPath.of(server)
    if script:
        path.install_script(script)
    server.launch()
    assert server.process.wait(60) == FAILED
    messages = [entry["event"] for entry in server.log_entries()]
    assert message in messages[-1]
    assert "install git 2.38 or newer, and put it first in PATH" in messages[-1]
    assert not any("Traceback" in line for line in messages)


@asynchronous
async def test_killed_git_is_an_error_and_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    origin = Origin.create(tmp_path / "origin.git")
    first, second = (origin.commit("main", {"a.txt": text}) for text in "12")
    mirror = await GitCli(tmp_path / "mirrors", Identity("Mergeyard", "x@example.org")).mirror("m", Remote(origin.url))
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.contains(second, first)
    OwnPath(tmp_path / "bin").install_script("kill -9 $$")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(GitError):
        await mirror.contains(second, first)


@pytest.mark.long
def test_git_without_memory_fails_no_pull_request(make_site: SiteFactory):
    server = make_site.server()
    path = OwnPath.of(server)
    path.install()
    site = make_site(server)
    numbers = [site.open_pr({f"{name}.txt": "1"}) for name in "abc"]
    path.uninstall()
    path.install_script(
        f'case "$*" in *merge-tree*|*push*|*fetch*) ulimit -v 3000;; esac; exec {shutil.which("git")} "$@"'
    )
    site.submit(*numbers)
    site.eventually(lambda: site.health.metric("mergeyard_tasks_total", outcome="failed") > 3)
    assert {site.state(number) for number in numbers} == {"not_ready"}
    path.uninstall()
    path.install()
    site.wait_for("merged", *numbers)


@pytest.mark.long
def test_server_recovers_when_git_was_missing(make_site: SiteFactory):
    server = make_site.server()
    path = OwnPath.of(server)
    path.install()
    site = make_site(server)
    site.ci.enabled = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    path.uninstall()
    site.ci.enabled = True
    message = eventually(site.health.readiness_error)
    assert "git could not be started" in message
    assert "install git" in message
    assert site.health.is_alive()
    site.submit(late)
    site.eventually(lambda: site.health.metric("mergeyard_tasks_total", outcome="failed") > 1)
    assert {site.state(early), site.state(late)}.isdisjoint({"failed", "cancelled"})
    path.install()
    site.wait_for("merged", early, late)
    site.eventually(site.health.is_ready)
    assert server.logged_errors() == []
