"""A mirror that breaks is made anew by itself, one that is merely in the way is cleared, and a sound one is kept."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mergeyard.adapters.git_cli import Committer, GitCli
from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Conflict, Git, GitTrouble, Mirror, Pushed, RefUpdate, Remote
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin
from tests.surroundings import breaking
from tests.surroundings.breaking import WAYS, Break

NAME = "h/o/n"
MAIN = "refs/heads/main"
QUICKLY = (
    (breaking.cut_packs, "running"),
    (breaking.remove_everything, "running"),
    (breaking.leave_locks, "restarted"),
)
"""Enough for every day; the others take their time."""
CASES = [
    pytest.param(way, start, marks=() if (way, start) in QUICKLY else pytest.mark.long, id=f"{way.__name__}-{start}")
    for start in ("running", "restarted")
    for way in WAYS
]
ATTEMPTS = 3
"""At the first git complains, before the second the mirror is healed; now and then it complains of two things."""


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    origin = Origin.made(tmp_path / "origin.git")
    origin.commit("main", {"a.txt": "1\n"})
    origin.branch("feature", upon="main", files={"x.txt": "1"})
    return origin


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return GitCli(tmp_path / "mirrors", Committer("Mergeyard", "queue@example.org"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "mirrors" / "h" / "o" / "n.git"


async def land(mirror: Mirror) -> Sha:
    """All that a landing asks of a mirror."""
    refs = await mirror.fetch([MAIN, "refs/heads/feature"])
    tip, head = refs[MAIN], refs["refs/heads/feature"]
    tree = await mirror.merge(tip, head)
    assert not isinstance(tree, Conflict)
    commit = await mirror.commit(tree, [tip, head], "Merged")
    assert await mirror.holds(commit, tip)
    assert await mirror.push(RefUpdate(MAIN, tip, commit)) == Pushed()
    return commit


async def lands_after_some_attempts(git: Git, origin: Origin) -> Sha:
    for _ in range(ATTEMPTS - 1):
        try:
            return await land(await git.mirror(NAME, Remote(origin.url)))
        except GitTrouble:
            continue
    return await land(await git.mirror(NAME, Remote(origin.url)))


@pytest.mark.parametrize(("way", "start"), CASES)
@asynchronous
async def test_a_mirror_that_breaks_is_healed_within_a_few_attempts(
    git: Git, origin: Origin, tmp_path: Path, folder: Path, way: Break, start: str
):
    await (await git.mirror(NAME, Remote(origin.url))).fetch([MAIN, "refs/heads/feature"])
    origin.branch("feature", upon="feature", files={"y.txt": "2"})
    way(folder)
    if start == "restarted":
        git = GitCli(tmp_path / "mirrors", Committer("Mergeyard", "x@example.org"))
    landed = await lands_after_some_attempts(git, origin)
    assert origin.tip("main") == landed
    assert {"x.txt", "y.txt"} <= set(origin.files("main"))
    assert [path.name for path in folder.parent.iterdir()] == ["n.git"]


@asynchronous
async def test_a_damaged_mirror_is_told_of_once(git: Git, origin: Origin, folder: Path):
    await (await git.mirror(NAME, Remote(origin.url))).fetch([MAIN])
    breaking.remove_objects(folder)
    with capture_logs() as logs:
        await lands_after_some_attempts(git, origin)
    assert [entry["event"] for entry in logs] == ["a mirror is damaged and is made anew"]


@asynchronous
async def test_a_sound_mirror_is_kept_whatever_the_host_complains_about(git: Git, origin: Origin):
    mirror = await git.mirror(NAME, Remote(origin.url))
    tip = (await mirror.fetch([MAIN]))[MAIN]
    commit = await mirror.commit(origin.tree("main"), [tip], "Only here")
    script = "echo 'fatal: loose object is corrupt' >&2; echo 'fatal: not a git repository' >&2; exit 1"
    origin.hook("pre-receive", script)
    for _ in range(2):
        await (await git.mirror(NAME, Remote(origin.url))).push(RefUpdate(MAIN, tip, commit))
        away = origin.path.rename(origin.path.with_name("away"))
        with pytest.raises(GitTrouble):
            await (await git.mirror(NAME, Remote(origin.url))).fetch([MAIN])
        away.rename(origin.path)
    assert (await (await git.mirror(NAME, Remote(origin.url))).read(commit)).message == "Only here"
