"""A damaged mirror is recreated automatically, stale files are removed, and an intact mirror is kept."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mergeyard.adapters.git_cli import GitCli
from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Conflict, Git, GitError, Identity, Mirror, Pushed, RefUpdate, Remote
from tests.faults import mirror_damage
from tests.faults.mirror_damage import DAMAGES, Damage
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin

NAME = "h/o/n"
MAIN = "refs/heads/main"
NOT_LONG = (
    (mirror_damage.cut_packs, "running"),
    (mirror_damage.remove_everything, "running"),
    (mirror_damage.leave_locks, "restarted"),
)
"""Cases of the normal test run; the others are long."""
CASES = [
    pytest.param(
        damage, start, marks=() if (damage, start) in NOT_LONG else pytest.mark.long, id=f"{damage.__name__}-{start}"
    )
    for start in ("running", "restarted")
    for damage in DAMAGES
]
ATTEMPTS = 3
"""The first fails, the second uses a repaired mirror; some damage shows two errors."""


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    origin = Origin.create(tmp_path / "origin.git")
    origin.commit("main", {"a.txt": "1\n"})
    origin.branch("feature", base="main", files={"x.txt": "1"})
    return origin


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return GitCli(tmp_path / "mirrors", Identity("Mergeyard", "queue@example.org"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "mirrors" / "h" / "o" / "n.git"


async def land(mirror: Mirror) -> Sha:
    """All operations of a landing on a mirror."""
    refs = await mirror.fetch([MAIN, "refs/heads/feature"])
    tip, head = refs[MAIN], refs["refs/heads/feature"]
    tree = await mirror.merge(tip, head)
    assert not isinstance(tree, Conflict)
    commit = await mirror.commit(tree, [tip, head], "Merged")
    assert await mirror.contains(commit, tip)
    assert await mirror.push(RefUpdate(MAIN, tip, commit)) == Pushed()
    return commit


async def land_with_retries(git: Git, origin: Origin) -> Sha:
    for _ in range(ATTEMPTS - 1):
        try:
            return await land(await git.mirror(NAME, Remote(origin.url)))
        except GitError:
            continue
    return await land(await git.mirror(NAME, Remote(origin.url)))


@pytest.mark.parametrize(("damage", "start"), CASES)
@asynchronous
async def test_damaged_mirror_is_repaired_within_a_few_attempts(
    git: Git, origin: Origin, tmp_path: Path, folder: Path, damage: Damage, start: str
):
    await (await git.mirror(NAME, Remote(origin.url))).fetch([MAIN, "refs/heads/feature"])
    origin.branch("feature", base="feature", files={"y.txt": "2"})
    damage(folder)
    if start == "restarted":
        git = GitCli(tmp_path / "mirrors", Identity("Mergeyard", "x@example.org"))
    landed = await land_with_retries(git, origin)
    assert origin.tip("main") == landed
    assert {"x.txt", "y.txt"} <= set(origin.files("main"))
    assert [path.name for path in folder.parent.iterdir()] == ["n.git"]


@asynchronous
async def test_damaged_mirror_is_logged_once(git: Git, origin: Origin, folder: Path):
    await (await git.mirror(NAME, Remote(origin.url))).fetch([MAIN])
    mirror_damage.remove_objects(folder)
    with capture_logs() as logs:
        await land_with_retries(git, origin)
    assert [entry["event"] for entry in logs] == ["mirror_damaged"]


@asynchronous
async def test_intact_mirror_is_kept_whatever_error_the_host_reports(git: Git, origin: Origin):
    mirror = await git.mirror(NAME, Remote(origin.url))
    tip = (await mirror.fetch([MAIN]))[MAIN]
    commit = await mirror.commit(origin.tree("main"), [tip], "Only here")
    script = "echo 'fatal: loose object is corrupt' >&2; echo 'fatal: not a git repository' >&2; exit 1"
    origin.install_hook("pre-receive", script)
    for _ in range(2):
        await (await git.mirror(NAME, Remote(origin.url))).push(RefUpdate(MAIN, tip, commit))
        away = origin.path.rename(origin.path.with_name("away"))
        with pytest.raises(GitError):
            await (await git.mirror(NAME, Remote(origin.url))).fetch([MAIN])
        away.rename(origin.path)
    assert (await (await git.mirror(NAME, Remote(origin.url))).read_commit(commit)).message == "Only here"
