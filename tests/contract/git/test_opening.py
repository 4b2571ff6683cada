"""Mirrors are made once and found again, and nothing around them changes what git does."""

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeyard.adapters.git_cli import Committer, GitCli
from mergeyard.adapters.git_cli.version import complaint
from mergeyard.ports.git import Git, GitTrouble, Mirror, Pushed, RefUpdate, Remote
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin

MAIN = "refs/heads/main"
NOBODY = 65534


@pytest.fixture
def foreign_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment of a careless start: from within a hook, say, or with somebody's own settings."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[core]\n\thooksPath = /nonexistent\n[merge]\n\trenames = false\n[broken\n")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG_PARAMETERS"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    return iter(())


@asynchronous
async def test_the_installed_git_will_do(git: Git):
    await git.check()


@pytest.mark.parametrize("version", ["git version 2.38.0", "git version 2.39.5 (Apple Git-154)", "git version 3.0.rc1"])
def test_a_git_that_merges_without_a_working_tree_will_do(version: str):
    assert complaint(version) is None


@pytest.mark.parametrize("version", ["git version 2.37.9", "git version 1.99.windows.1", "gut"])
def test_a_git_that_will_not_do_is_named_with_advice(version: str):
    words = complaint(version) or ""
    assert version.removeprefix("git version ") in words
    assert "install git 2.38 or newer" in words


@asynchronous
async def test_a_machine_without_git_is_told_to_install_it(git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitTrouble, match="install git"):
        await git.check()


@asynchronous
async def test_no_other_user_reaches_the_mirrors(tmp_path: Path):
    folder = tmp_path / "mirrors"
    await GitCli(folder, Committer("Mergeyard", "mergeyard@example.org")).check()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@asynchronous
async def test_a_mirror_is_found_again_after_a_restart(git: Git, origin: Origin, tmp_path: Path):
    (tip,) = (await (await git.mirror("h/o/n", Remote(origin.url))).fetch([MAIN])).values()
    restarted = GitCli(tmp_path / "mirrors", Committer("Another", "x@example.org"))
    again = await restarted.mirror("h/o/n", Remote("/nowhere"))
    assert (await again.read(tip)).message == "The beginning"


@asynchronous
async def test_mirrors_opened_at_the_same_time_are_one(git: Git, origin: Origin, tmp_path: Path):
    mirrors = await asyncio.gather(*(git.mirror("h/o/n", Remote(origin.url)) for _ in range(4)))
    (tip,) = (await mirrors[0].fetch([MAIN])).values()
    assert [(await mirror.read(tip)).sha for mirror in mirrors] == [tip] * 4
    assert [path.name for path in (tmp_path / "mirrors/h/o").iterdir()] == ["n.git"]


@asynchronous
async def test_mirrors_of_nested_names_are_apart(git: Git, origin: Origin):
    for name in ("h/group/x", "h/group/x/y", "h/group"):
        mirror = await git.mirror(name, Remote(origin.url))
        assert await mirror.fetch([MAIN]) == {MAIN: origin.tip("main")}


@asynchronous
async def test_every_mirror_is_at_hand_however_deep_it_lies_and_nothing_else(git: Git, origin: Origin, tmp_path: Path):
    assert git.at_hand() == set()
    names = {"h/o/n", "h/group/x", "h/group/x/y", "h/a.git/n"}
    for name in names:
        await git.mirror(name, Remote(origin.url))
    mirrors = tmp_path / "mirrors"
    for folder in ("h/o/n.git/refs/heads/topic.git", "h/o/.new-1/x.git", "h/o/empty.git"):
        (mirrors / folder).mkdir(parents=True)
    for folder in ("h/o/n.git/refs/heads/topic.git", "h/o/.new-1/x.git"):
        (mirrors / folder / "HEAD").touch()
    assert git.at_hand() == names


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "", "a//b", "a/.", "a/..", "a\0b", ".git", "a\\b"])
@asynchronous
async def test_no_mirror_lies_outside_the_folder(git: Git, origin: Origin, tmp_path: Path, name: str):
    with pytest.raises(GitTrouble, match="no name for a mirror"):
        await git.mirror(name, Remote(origin.url))
    assert not (tmp_path / "mirrors").exists()


@asynchronous
async def test_a_lock_that_a_lost_machine_left_does_not_stop_fetches(git: Git, origin: Origin, tmp_path: Path):
    mirror = await git.mirror("h/o/n", Remote(origin.url))
    await mirror.fetch([MAIN])
    (kept,) = (path for path in (tmp_path / "mirrors/h/o/n.git/refs").rglob("main") if path.is_file())
    lock = kept.with_name("main.lock")
    lock.touch()
    os.utime(lock, (0, 0))
    tip = origin.commit("main", {"x": "1"})
    restarted = GitCli(tmp_path / "mirrors", Committer("Mergeyard", "x@example.org"))
    assert await (await restarted.mirror("h/o/n", Remote(origin.url))).fetch([MAIN]) == {MAIN: tip}


@pytest.mark.parametrize("left", ["index-1/index", "objects/info/commit-graphs/commit-graph-chain.lock"])
@asynchronous
async def test_what_a_killed_server_left_is_cleared_away(git: Git, origin: Origin, tmp_path: Path, left: str):
    await git.mirror("h/o/n", Remote(origin.url))
    path = tmp_path / "mirrors/h/o/n.git" / left
    path.parent.mkdir(parents=True)
    path.touch()
    restarted = GitCli(tmp_path / "mirrors", Committer("Mergeyard", "x@example.org"))
    await (await restarted.mirror("h/o/n", Remote(origin.url))).fetch([MAIN])
    assert not path.exists()


@pytest.mark.usefixtures("foreign_surroundings")
@asynchronous
async def test_the_surroundings_of_the_service_do_not_matter(mirror: Mirror, origin: Origin, tmp_path: Path):
    origin.branch("feature", upon="main")
    head = origin.rename("feature", "b.txt", "z.txt")
    tip = origin.commit("main", {"b.txt": "1\n2\n3\n4\n"})
    await mirror.fetch(["refs/heads/*"])
    tree = await mirror.merge(tip, head)
    assert isinstance(tree, str)
    merged = await mirror.commit(tree, [tip, head], "Merged")
    assert await mirror.push(RefUpdate(MAIN, tip, merged)) == Pushed()
    assert origin.files("main")["z.txt"] == "1\n2\n3\n4\n"
    assert not (tmp_path / "nowhere").exists()


@asynchronous
async def test_secrets_of_the_service_are_not_handed_on(
    mirror: Mirror, origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MERGEYARD_DATABASE_URL", "postgresql://hidden")
    origin.hook("pre-receive", f"env > {tmp_path / 'seen'}")
    await mirror.fetch([MAIN])
    commit = await mirror.commit(origin.tree("main"), [origin.tip("main")], "x")
    assert await mirror.push(RefUpdate("refs/heads/x", None, commit)) == Pushed()
    assert "hidden" not in (tmp_path / "seen").read_text()


@asynchronous
async def test_the_environment_of_a_remote_reaches_it(git: Git, origin: Origin, tmp_path: Path):
    origin.hook("pre-receive", f'echo "$CREDENTIAL" > {tmp_path / "seen"}')
    mirror = await git.mirror("h/o/n", Remote(origin.url, {"CREDENTIAL": "a token"}))
    await mirror.fetch([MAIN])
    commit = await mirror.commit(origin.tree("main"), [origin.tip("main")], "x")
    await mirror.push(RefUpdate("refs/heads/x", None, commit))
    assert (tmp_path / "seen").read_text() == "a token\n"


@asynchronous
async def test_no_hook_runs_in_a_mirror(mirror: Mirror, origin: Origin, tmp_path: Path):
    hooks = tmp_path / "mirrors/git.local/owner/name.git/hooks"
    hooks.mkdir()
    for name in ("pre-push", "reference-transaction", "post-checkout"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\nexit 1\n")
        (hooks / name).chmod(stat.S_IRWXU)
    await mirror.fetch([MAIN])
    commit = await mirror.commit(origin.tree("main"), [origin.tip("main")], "x")
    assert await mirror.push(RefUpdate("refs/heads/x", None, commit)) == Pushed()
    await mirror.export(commit, str(tmp_path / "work"))
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@asynchronous
async def test_repositories_of_another_user_are_served(mirror: Mirror, origin: Origin, tmp_path: Path):
    for path in (origin.path, tmp_path / "mirrors", *origin.path.rglob("*"), *(tmp_path / "mirrors").rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    await mirror.fetch([MAIN])
    commit = await mirror.commit(origin.tree("main"), [origin.tip("main")], "x")
    assert await mirror.push(RefUpdate("refs/heads/x", None, commit)) == Pushed()


@asynchronous
async def test_an_address_that_would_run_a_command_is_refused(git: Git, tmp_path: Path):
    for address in (f"ext::touch {tmp_path / 'ran'}", f"--upload-pack=touch {tmp_path / 'ran'}"):
        with pytest.raises(GitTrouble):
            await (await git.mirror("h/o/n", Remote(address))).remote_refs(MAIN)
    assert not (tmp_path / "ran").exists()
