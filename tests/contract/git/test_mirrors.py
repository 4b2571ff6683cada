"""Mirrors are created once and found again, and the environment does not change what git does."""

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeyard.adapters.git_cli import GitCli
from mergeyard.adapters.git_cli.process import MAINTENANCE_ROUNDS, find_version_problem
from mergeyard.ports.git import Git, GitError, Identity, Mirror, Pushed, RefUpdate, Remote
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin

MAIN = "refs/heads/main"
OTHER_USER = 65534


@pytest.fixture
def foreign_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment of a start from within a hook or with a user's own git settings."""
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
async def test_the_installed_git_is_supported(git: Git):
    await git.check()


@pytest.mark.parametrize("version", ["git version 2.38.0", "git version 2.39.5 (Apple Git-154)", "git version 3.0.rc1"])
def test_a_git_that_merges_without_a_working_tree_is_supported(version: str):
    assert find_version_problem(version) is None


@pytest.mark.parametrize("version", ["git version 2.37.9", "git version 1.99.windows.1", "gut"])
def test_an_unsupported_git_is_named_with_advice(version: str):
    message = find_version_problem(version) or ""
    assert version.removeprefix("git version ") in message
    assert "install git 2.38 or newer" in message


@asynchronous
async def test_a_missing_git_is_reported_with_advice_to_install_it(
    git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match="install git"):
        await git.check()


@asynchronous
async def test_no_other_user_reaches_the_mirrors(tmp_path: Path):
    folder = tmp_path / "mirrors"
    await GitCli(folder, Identity("Mergeyard", "mergeyard@example.org")).check()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@asynchronous
async def test_a_mirror_is_found_again_after_a_restart(git: Git, origin: Origin, tmp_path: Path):
    (tip,) = (await (await git.mirror("h/o/n", Remote(origin.url))).fetch([MAIN])).values()
    restarted = GitCli(tmp_path / "mirrors", Identity("Another", "x@example.org"))
    again = await restarted.mirror("h/o/n", Remote("/nowhere"))
    assert (await again.read_commit(tip)).message == "The beginning"


@asynchronous
async def test_mirrors_opened_at_the_same_time_are_one(git: Git, origin: Origin, tmp_path: Path):
    mirrors = await asyncio.gather(*(git.mirror("h/o/n", Remote(origin.url)) for _ in range(4)))
    (tip,) = (await mirrors[0].fetch([MAIN])).values()
    assert [(await mirror.read_commit(tip)).sha for mirror in mirrors] == [tip] * 4
    assert [path.name for path in (tmp_path / "mirrors/h/o").iterdir()] == ["n.git"]


@asynchronous
async def test_a_mirror_is_opened_for_several_committers_at_once(git: Git, origin: Origin):
    remote, ada = Remote(origin.url), Identity("Ada", "ada@example.org")
    ours, hers = await git.mirror("h/o/n", remote), await git.mirror("h/o/n", remote, ada)
    (tip,) = (await ours.fetch([MAIN])).values()
    tree = await ours.tree(tip)
    created = [await mirror.commit(tree, [tip], "New") for mirror in (ours, hers, await git.mirror("h/o/n", remote))]
    authors = [(await ours.read_commit(commit)).author.name for commit in created]
    assert authors == ["Mergeyard", "Ada", "Mergeyard"]


@asynchronous
async def test_a_fetch_for_any_committer_causes_maintenance(git: Git, origin: Origin, tmp_path: Path):
    await git.mirror("h/o/n", Remote(origin.url))
    for _ in range(MAINTENANCE_ROUNDS):
        await git.run_maintenance()
    mirror = await git.mirror("h/o/n", Remote(origin.url), Identity("Ada", "ada@example.org"))
    await mirror.fetch([MAIN])
    assert loose_refs(tmp_path) != []
    await git.run_maintenance()
    assert loose_refs(tmp_path) == []


@asynchronous
async def test_mirrors_of_nested_names_are_separate(git: Git, origin: Origin):
    for name in ("h/group/x", "h/group/x/y", "h/group"):
        mirror = await git.mirror(name, Remote(origin.url))
        assert await mirror.fetch([MAIN]) == {MAIN: origin.tip("main")}


@asynchronous
async def test_all_mirrors_are_listed_at_any_depth_and_nothing_else(git: Git, origin: Origin, tmp_path: Path):
    assert git.mirror_names() == set()
    names = {"h/o/n", "h/group/x", "h/group/x/y", "h/a.git/n"}
    for name in names:
        await git.mirror(name, Remote(origin.url))
    mirrors = tmp_path / "mirrors"
    for folder in ("h/o/n.git/refs/heads/topic.git", "h/o/.new-1/x.git", "h/o/empty.git"):
        (mirrors / folder).mkdir(parents=True)
    for folder in ("h/o/n.git/refs/heads/topic.git", "h/o/.new-1/x.git"):
        (mirrors / folder / "HEAD").touch()
    assert git.mirror_names() == names


@asynchronous
async def test_names_that_begin_with_a_dot_have_mirrors_of_their_own(git: Git, origin: Origin, tmp_path: Path):
    names = {"h/o/.github", "h/o/github", "h/.o/n", "h/o/%2Egithub", "h/o/%252Egithub", "h/o/...", "h/o/.git", "h/o/%"}
    for name in names:
        await (await git.mirror(name, Remote(origin.url))).fetch([MAIN])
    assert git.mirror_names() == names
    assert not [path for path in (tmp_path / "mirrors").rglob(".*") if path.is_dir()]


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "", "a//b", "a/.", "a/..", "a\0b", "a\\b"])
@asynchronous
async def test_no_mirror_lies_outside_the_folder(git: Git, origin: Origin, tmp_path: Path, name: str):
    with pytest.raises(GitError, match="not a valid name for a mirror"):
        await git.mirror(name, Remote(origin.url))
    assert not (tmp_path / "mirrors").exists()


@asynchronous
async def test_a_stale_lock_does_not_stop_fetches(git: Git, origin: Origin, tmp_path: Path):
    mirror = await git.mirror("h/o/n", Remote(origin.url))
    await mirror.fetch([MAIN])
    (ref_file,) = (path for path in (tmp_path / "mirrors/h/o/n.git/refs").rglob("main") if path.is_file())
    lock = ref_file.with_name("main.lock")
    lock.touch()
    os.utime(lock, (0, 0))
    tip = origin.commit("main", {"x": "1"})
    restarted = GitCli(tmp_path / "mirrors", Identity("Mergeyard", "x@example.org"))
    assert await (await restarted.mirror("h/o/n", Remote(origin.url))).fetch([MAIN]) == {MAIN: tip}


@pytest.mark.parametrize("left", ["index-1/index", "objects/info/commit-graphs/commit-graph-chain.lock"])
@asynchronous
async def test_files_that_a_killed_server_left_are_removed(git: Git, origin: Origin, tmp_path: Path, left: str):
    await git.mirror("h/o/n", Remote(origin.url))
    path = tmp_path / "mirrors/h/o/n.git" / left
    path.parent.mkdir(parents=True)
    path.touch()
    restarted = GitCli(tmp_path / "mirrors", Identity("Mergeyard", "x@example.org"))
    await (await restarted.mirror("h/o/n", Remote(origin.url))).fetch([MAIN])
    assert not path.exists()


@pytest.mark.usefixtures("foreign_environment")
@asynchronous
async def test_the_surroundings_of_the_service_do_not_matter(mirror: Mirror, origin: Origin, tmp_path: Path):
    origin.branch("feature", base="main")
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
    origin.install_hook("pre-receive", f"env > {tmp_path / 'seen'}")
    await mirror.fetch([MAIN])
    commit = await mirror.commit(origin.tree("main"), [origin.tip("main")], "x")
    assert await mirror.push(RefUpdate("refs/heads/x", None, commit)) == Pushed()
    assert "hidden" not in (tmp_path / "seen").read_text()


@asynchronous
async def test_the_environment_of_a_remote_reaches_it(git: Git, origin: Origin, tmp_path: Path):
    origin.install_hook("pre-receive", f'echo "$CREDENTIAL" > {tmp_path / "seen"}')
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
    await mirror.export_tree(commit, str(tmp_path / "work"))
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@asynchronous
async def test_repositories_of_another_user_are_served(mirror: Mirror, origin: Origin, tmp_path: Path):
    for path in (origin.path, tmp_path / "mirrors", *origin.path.rglob("*"), *(tmp_path / "mirrors").rglob("*")):
        os.chown(path, OTHER_USER, OTHER_USER)
    await mirror.fetch([MAIN])
    commit = await mirror.commit(origin.tree("main"), [origin.tip("main")], "x")
    assert await mirror.push(RefUpdate("refs/heads/x", None, commit)) == Pushed()


@asynchronous
async def test_an_address_that_would_run_a_command_is_refused(git: Git, tmp_path: Path):
    for address in (f"ext::touch {tmp_path / 'ran'}", f"--upload-pack=touch {tmp_path / 'ran'}"):
        with pytest.raises(GitError):
            await (await git.mirror("h/o/n", Remote(address))).remote_refs(MAIN)
    assert not (tmp_path / "ran").exists()


FEATURE = "refs/heads/feature"
MANY = 150


def loose(tmp_path: Path) -> int:
    return len(list(tmp_path.glob("mirrors/**/objects/??/*")))


def loose_refs(tmp_path: Path) -> list[Path]:
    return [path for path in tmp_path.glob("mirrors/**/refs/**/*") if path.is_file()]


@asynchronous
async def test_loose_objects_are_packed_and_kept(git: Git, mirror: Mirror, origin: Origin, tmp_path: Path):
    await mirror.fetch([MAIN])
    tree = await mirror.tree(origin.tip("main"))
    commits = [await mirror.commit(tree, [], f"Number {number}") for number in range(MANY)]
    assert loose(tmp_path) >= MANY
    await git.run_maintenance()
    await git.run_maintenance()
    assert loose(tmp_path) == 0
    assert [(await mirror.read_commit(commit)).message for commit in commits] == [f"Number {n}" for n in range(MANY)]


@asynchronous
async def test_refs_are_packed_and_can_still_change(git: Git, mirror: Mirror, origin: Origin, tmp_path: Path):
    feature = origin.branch("feature", base="main")
    await mirror.fetch([MAIN, FEATURE])
    assert len(loose_refs(tmp_path)) == 2
    await git.run_maintenance()
    assert loose_refs(tmp_path) == []
    tip = origin.commit("main", {"x": "1"})
    assert await mirror.fetch([MAIN, FEATURE]) == {MAIN: tip, FEATURE: feature}


@asynchronous
async def test_a_mirror_without_new_objects_is_left_alone(git: Git, mirror: Mirror, tmp_path: Path):
    await mirror.fetch([MAIN])
    await git.run_maintenance()
    await git.run_maintenance()
    (packed,) = tmp_path.glob("mirrors/**/packed-refs")
    packed.unlink()
    await git.run_maintenance()
    assert not packed.exists()
    await mirror.fetch([MAIN])
    await git.run_maintenance()
    assert packed.exists()


@asynchronous
async def test_maintenance_writes_a_commit_graph(git: Git, mirror: Mirror, origin: Origin, tmp_path: Path):
    first = origin.tip("main")
    for number in range(MANY):
        origin.commit("main", {"n": f"{number}"})
    await mirror.fetch([MAIN])
    await git.run_maintenance()
    assert list(tmp_path.glob("mirrors/**/objects/info/commit-graphs/*.graph"))
    assert await mirror.contains(origin.tip("main"), first)
    assert len(await mirror.commits(origin.tip("main"), without=[first])) == MANY


@asynchronous
async def test_a_stale_lock_does_not_stop_packing_of_refs(mirror: Mirror, origin: Origin, tmp_path: Path):
    await mirror.fetch([MAIN])
    (head,) = tmp_path.glob("mirrors/**/HEAD")
    for half_written in ("packed-refs.new", "packed-refs.lock"):
        head.with_name(half_written).touch()
    restarted = GitCli(tmp_path / "mirrors", Identity("Mergeyard", "x@example.org"))
    again = await restarted.mirror("git.local/owner/name", Remote(origin.url))
    await restarted.run_maintenance()
    assert loose_refs(tmp_path) == []
    assert await again.fetch([MAIN]) == {MAIN: origin.tip("main")}


@asynchronous
async def test_few_loose_objects_are_not_packed(git: Git, mirror: Mirror, tmp_path: Path):
    await mirror.fetch([MAIN])
    before = loose(tmp_path)
    await git.run_maintenance()
    assert before == loose(tmp_path) > 0


@asynchronous
async def test_a_missing_mirror_does_not_stop_maintenance_of_others(git: Git, mirror: Mirror, tmp_path: Path):
    await mirror.fetch([MAIN])
    for head in tmp_path.glob("mirrors/**/HEAD"):
        head.unlink()
    await git.run_maintenance()


@asynchronous
async def test_failed_maintenance_is_retried(git: Git, mirror: Mirror, tmp_path: Path):
    await mirror.fetch([MAIN])
    (head,) = tmp_path.glob("mirrors/**/HEAD")
    hidden = head.rename(head.with_name("hidden"))
    for _ in range(MAINTENANCE_ROUNDS):
        await git.run_maintenance()
    hidden.rename(head)
    await git.run_maintenance()
    assert loose_refs(tmp_path) == []
