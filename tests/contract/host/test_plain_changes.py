"""A plain host finds out without git which repositories changed, and misses no change."""

import os
import stat
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import which

import pytest

from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.adapters.host_plain.ref_watch import FULL_LOOK_INTERVAL_NS, SECOND_NS, RefWatch
from mergeyard.domain.ids import Repo
from mergeyard.ports.forge import ChecksFrom
from tests.contract.host.environment import ONE, REPO, PlainEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin

HOUR_NS = 3600 * SECOND_NS


@pytest.fixture
def git_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Returns the commands of all git processes that the host started."""
    log, folder, git = tmp_path / "git.log", tmp_path / "bin", which("git")
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {git} "$@"\n')
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return lambda: log.read_text().splitlines() if log.exists() else []


@asynccontextmanager
async def a_host(plain: PlainEnvironment, clock: Callable[[], int] | None = None) -> AsyncGenerator[PlainHost]:
    """By default an hour after everything that the test does, so that no change is too recent to be trusted."""
    host = PlainHost("git.local", plain.root, ChecksFrom.API, clock or (lambda: time.time_ns() + HOUR_NS))
    try:
        yield host
    finally:
        await host.close()


async def has_changed(host: PlainHost) -> bool:
    """As far as branches and the first pull request are concerned."""
    return list(await host.find_changed({REPO: [ONE]})) == [REPO]


def let_a_tick_pass(folder: Path) -> None:
    """Until the next change gets another time stamp than all before."""
    paths = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    newest, probe = max(path.stat().st_ctime_ns for path in paths), folder.parent / "probe"
    while True:
        probe.touch()
        if probe.stat().st_mtime_ns > newest:
            return


# Unchanged repositories


@asynchronous
async def test_an_unchanged_repository_starts_no_git_process(plain: PlainEnvironment, git_log: Callable[[], list[str]]):
    plain.open(1)
    plain.origin.run("pack-refs", "--all")
    plain.open(2)
    async with a_host(plain) as host:
        refs = await host.refs(REPO)
        commands = git_log()
        assert len(commands) == 1
        for _ in range(10):
            assert not await has_changed(host)
            assert await host.refs(REPO) is refs
        assert git_log() == commands


@asynchronous
async def test_test_branches_are_no_change(plain: PlainEnvironment, git_log: Callable[[], list[str]]):
    plain.origin.branch("mergeyard/pr-1/x", base="main")
    async with a_host(plain) as host:
        await host.refs(REPO)
        let_a_tick_pass(plain.origin.path)
        plain.origin.branch("mergeyard/pr-2/y", base="main")
        assert not await has_changed(host)
        assert len(git_log()) == 1


@asynchronous
async def test_only_the_changed_ones_of_many_repositories_are_found(plain: PlainEnvironment):
    others = [Repo("git.local", "acme", f"other-{number}") for number in range(3)]
    origins = [Origin.create(plain.root / "acme" / f"{repo.name}.git") for repo in others]
    for origin in origins:
        origin.commit("main", {"a.txt": "1"})
    async with a_host(plain) as host:
        every_repo = dict.fromkeys([REPO, *others], ())
        assert list(await host.find_changed(every_repo)) == [REPO, *others]
        for repo in (REPO, *others):
            await host.refs(repo)
        let_a_tick_pass(origins[1].path)
        origins[1].commit("main", {"a.txt": "2"})
        assert list(await host.find_changed(every_repo)) == [others[1]]


# Changes


def repack_and_commit(plain: PlainEnvironment) -> None:
    plain.origin.run("pack-refs", "--all")
    plain.origin.commit("main", {"a.txt": "2"})


def delete_packed(plain: PlainEnvironment) -> None:
    plain.origin.delete_ref("refs/heads/packed")


def replace_repository(plain: PlainEnvironment) -> None:
    plain.origin.path.rename(plain.root / "acme" / "before.git")
    plain.origin = Origin.create(plain.root / "acme" / "app.git")
    plain.origin.commit("main", {"b.txt": "other"})


CHANGES: dict[str, Callable[[PlainEnvironment], object]] = {
    "a branch moves": lambda plain: plain.origin.commit("main", {"a.txt": "2"}),
    "a packed branch moves": lambda plain: plain.origin.commit("packed", {"a.txt": "2"}),
    "a branch is packed and moves": repack_and_commit,
    "a branch is created": lambda plain: plain.origin.branch("new", base="main"),
    "a branch in a new folder is created": lambda plain: plain.origin.branch("a/b/c", base="main"),
    "a branch in a folder moves": lambda plain: plain.origin.commit("nested/branch", {"a.txt": "2"}),
    "a branch is deleted": lambda plain: plain.origin.delete_ref("refs/heads/topic-1"),
    "a packed branch is deleted": delete_packed,
    "a pull request is opened": lambda plain: plain.open(2),
    "a pull request is pushed to": lambda plain: plain.push(1),
    "a pull request is closed": lambda plain: plain.close(1),
    "metadata is edited": lambda plain: plain.write_meta(1, '{"base": "stable"}'),
    "a pull request is deleted": lambda plain: plain.origin.delete_ref("refs/pull/1/head"),
    "the target of a symbolic ref moves": lambda plain: plain.origin.commit("main", {"a.txt": "alias"}),
    "the repository is replaced": replace_repository,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@asynchronous
async def test_a_change_is_found_and_read(plain: PlainEnvironment, change: Callable[[PlainEnvironment], object]):
    plain.origin.branch("packed", base="main")
    plain.origin.run("pack-refs", "--all")
    plain.origin.branch("nested/branch", base="main")
    plain.origin.run("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    plain.open(1)
    async with a_host(plain) as host, a_host(plain) as newcomer:
        before = await host.refs(REPO)
        assert not await has_changed(host)
        let_a_tick_pass(plain.origin.path)
        change(plain)
        assert await has_changed(host)
        after = await host.refs(REPO)
        assert after != before
        assert after == await newcomer.refs(REPO)
        assert not await has_changed(host)


@asynchronous
async def test_the_first_pull_request_is_found(plain: PlainEnvironment):
    async with a_host(plain) as host:
        await host.refs(REPO)
        let_a_tick_pass(plain.origin.path)
        head = plain.open(1)
        assert await has_changed(host)
        assert (await host.refs(REPO))["refs/pull/1/head"] == head


def overwrite_in_place(plain: PlainEnvironment) -> None:
    (plain.origin.path / "refs" / "heads" / "main").write_text(f"{plain.origin.tip('topic-1')}\n")


def edit_unlisted(plain: PlainEnvironment) -> None:
    """A pull request that no queue holds."""
    plain.write_meta(2, '{"base": "stable"}')


@pytest.mark.parametrize("change", [overwrite_in_place, edit_unlisted])
@asynchronous
async def test_a_less_urgent_change_is_found_a_little_later(
    plain: PlainEnvironment, change: Callable[[PlainEnvironment], None]
):
    plain.open(1)
    plain.open(2)
    now = [time.time_ns() + HOUR_NS]
    async with a_host(plain, lambda: now[0]) as host, a_host(plain) as newcomer:
        before = await host.refs(REPO)
        assert not await has_changed(host)
        let_a_tick_pass(plain.origin.path)
        change(plain)
        now[0] += FULL_LOOK_INTERVAL_NS
        assert await has_changed(host)
        after = await host.refs(REPO)
        assert after == await newcomer.refs(REPO)
        assert after != before


@asynchronous
async def test_a_look_does_not_cost_more_with_pull_requests_that_no_queue_holds(plain: PlainEnvironment):
    looked_at = list[str]()

    def read_stat(path: str) -> os.stat_result:
        looked_at.append(path)
        return os.stat(path)

    for number in range(1, 6):
        plain.open(number)
    now_ns = time.time_ns() + HOUR_NS
    watch = RefWatch(plain.origin.path, lambda: now_ns, read_stat)
    await watch.read(watch.scan())
    assert watch.is_unchanged(())
    looked_at.clear()
    assert watch.is_unchanged([ONE])
    folders = ("", "/refs/heads", "/refs/pull", "/refs/pull/1")
    assert sorted(looked_at) == [f"{plain.origin.path}{folder}" for folder in folders]


# Time stamps that hide a change


class CoarseFileSystem:
    """Everything until the next tick has the same time stamp, and the inode of a folder tells nothing."""

    def __init__(self) -> None:
        self.now_ns = time.time_ns()
        self._tick_ns = self._next_tick_ns = self.now_ns + HOUR_NS

    def read_stat(self, path: str) -> os.stat_result:
        found = os.stat(path)
        stamps = {name: self._coarsen(getattr(found, name)) for name in ("st_mtime_ns", "st_ctime_ns")}
        fields = {name: getattr(found, name) for name in ("st_atime", "st_mtime", "st_ctime", "st_atime_ns")}
        inode = 1 if stat.S_ISDIR(found.st_mode) else found.st_ino
        return os.stat_result([found.st_mode, inode, *found[2:10]], fields | stamps)

    def tick(self, folder: Path) -> None:
        """All earlier changes are old now, and later ones get other stamps."""
        let_a_tick_pass(folder)
        self._next_tick_ns, self.now_ns = time.time_ns(), self.now_ns + 2 * HOUR_NS
        let_a_tick_pass(folder)

    def _coarsen(self, stamp_ns: int) -> int:
        return self._tick_ns if stamp_ns <= self._next_tick_ns else self._tick_ns + stamp_ns


@asynchronous
async def test_two_changes_within_one_tick_are_both_seen(plain: PlainEnvironment):
    files = CoarseFileSystem()
    watch = RefWatch(plain.origin.path, lambda: files.now_ns, files.read_stat)
    first = plain.origin.commit("main", {"a.txt": "first"})
    assert (await watch.read(watch.scan()))["refs/heads/main"] == first
    second = plain.origin.commit("main", {"a.txt": "second"})
    assert not watch.is_unchanged([ONE])
    assert (await watch.read(watch.scan()))["refs/heads/main"] == second
    files.tick(plain.origin.path)
    assert not watch.is_unchanged([ONE])
    refs = await watch.read(watch.scan())
    assert watch.is_unchanged([ONE])
    assert await watch.read(watch.scan()) is refs


@asynchronous
async def test_a_folder_that_is_created_within_the_same_tick_is_watched(plain: PlainEnvironment):
    """The first look found no folder of a pull request, and the stamp is the same after the first one came."""
    plain.open(9)
    plain.origin.run("pack-refs", "--all")
    files = CoarseFileSystem()
    watch = RefWatch(plain.origin.path, lambda: files.now_ns, files.read_stat)
    await watch.read(watch.scan())
    plain.open(1)
    files.tick(plain.origin.path)
    await watch.read(watch.scan())
    assert watch.is_unchanged([ONE])
    plain.origin.set_ref("refs/pull/1/head", plain.origin.tip("main"))
    assert not watch.is_unchanged([ONE])
    assert (await watch.read(watch.scan()))["refs/pull/1/head"] == plain.origin.tip("main")


# Repositories whose refs only git can find


def link_a_ref(plain: PlainEnvironment) -> None:
    (plain.origin.path / "refs" / "heads" / "link").symlink_to("main")


def link_a_folder(plain: PlainEnvironment) -> None:
    (plain.origin.path / "refs" / "heads" / "folder").symlink_to(plain.origin.path / "refs" / "tags")


def point_elsewhere(plain: PlainEnvironment) -> None:
    plain.origin.set_ref("refs/notes/elsewhere", plain.origin.tip("main"))
    plain.origin.run("symbolic-ref", "refs/heads/alias", "refs/notes/elsewhere")


def use_reftables(plain: PlainEnvironment) -> None:
    (plain.origin.path / "reftable").mkdir()


def configure_storage(plain: PlainEnvironment) -> None:
    with (plain.origin.path / "config").open("a") as config:
        config.write("[extensions]\n\trefStorage = files\n")


def serve_a_worktree(plain: PlainEnvironment) -> None:
    """The folder of the host is that of a linked worktree; its refs are in another one."""
    served, moved = plain.origin.path, plain.origin.path.with_name("main.git")
    served.rename(moved)
    plain.origin = Origin(moved)
    plain.origin.run("worktree", "add", "--quiet", "--detach", str(moved.with_name("checkout")), "main")
    served.symlink_to(moved / "worktrees" / "checkout")


UNWATCHABLE = [link_a_ref, link_a_folder, point_elsewhere, use_reftables, configure_storage, serve_a_worktree]


@pytest.mark.parametrize("arrange", UNWATCHABLE)
@asynchronous
async def test_git_is_asked_where_files_do_not_tell(
    plain: PlainEnvironment, arrange: Callable[[PlainEnvironment], None]
):
    arrange(plain)
    async with a_host(plain) as host:
        for number in range(2):
            assert await has_changed(host)
            tip = plain.origin.commit("main", {"a.txt": f"change {number}"})
            assert (await host.refs(REPO))["refs/heads/main"] == tip
        assert await has_changed(host)


@asynchronous
async def test_a_removed_repository_counts_as_changed(plain: PlainEnvironment):
    async with a_host(plain) as host:
        await host.refs(REPO)
        plain.origin.path.rename(plain.root / "away.git")
        assert await has_changed(host)
