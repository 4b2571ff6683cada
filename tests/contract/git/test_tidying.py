"""A mirror that is tidied takes less room, and holds whatever it held: also what no ref leads to."""

from pathlib import Path

from mergeyard.adapters.git_cli import Committer, GitCli
from mergeyard.adapters.git_cli.mirror import ROUNDS_OF_TIDYING
from mergeyard.ports.git import Git, Mirror, Remote
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin

MAIN, FEATURE = "refs/heads/main", "refs/heads/feature"
MANY = 150


def loose(tmp_path: Path) -> int:
    return len(list(tmp_path.glob("mirrors/**/objects/??/*")))


def loose_refs(tmp_path: Path) -> list[Path]:
    return [path for path in tmp_path.glob("mirrors/**/refs/**/*") if path.is_file()]


@asynchronous
async def test_what_lies_loose_is_packed_and_stays(git: Git, mirror: Mirror, origin: Origin, tmp_path: Path):
    await mirror.fetch([MAIN])
    tree = await mirror.tree(origin.tip("main"))
    commits = [await mirror.commit(tree, [], f"Number {number}") for number in range(MANY)]
    assert loose(tmp_path) >= MANY
    await git.tidy()
    await git.tidy()
    assert loose(tmp_path) == 0
    assert [(await mirror.read(commit)).message for commit in commits] == [f"Number {n}" for n in range(MANY)]


@asynchronous
async def test_refs_are_put_together_and_go_on(git: Git, mirror: Mirror, origin: Origin, tmp_path: Path):
    feature = origin.branch("feature", upon="main")
    await mirror.fetch([MAIN, FEATURE])
    assert len(loose_refs(tmp_path)) == 2
    await git.tidy()
    assert loose_refs(tmp_path) == []
    tip = origin.commit("main", {"x": "1"})
    assert await mirror.fetch([MAIN, FEATURE]) == {MAIN: tip, FEATURE: feature}


@asynchronous
async def test_a_mirror_to_which_nothing_was_brought_is_left_alone(git: Git, mirror: Mirror, tmp_path: Path):
    await mirror.fetch([MAIN])
    await git.tidy()
    await git.tidy()
    (packed,) = tmp_path.glob("mirrors/**/packed-refs")
    packed.unlink()
    await git.tidy()
    assert not packed.exists()
    await mirror.fetch([MAIN])
    await git.tidy()
    assert packed.exists()


@asynchronous
async def test_git_need_not_walk_through_a_long_history(git: Git, mirror: Mirror, origin: Origin, tmp_path: Path):
    first = origin.tip("main")
    for number in range(MANY):
        origin.commit("main", {"n": f"{number}"})
    await mirror.fetch([MAIN])
    await git.tidy()
    assert list(tmp_path.glob("mirrors/**/objects/info/commit-graphs/*.graph"))
    assert await mirror.holds(origin.tip("main"), first)
    assert len(await mirror.commits(origin.tip("main"), without=[first])) == MANY


@asynchronous
async def test_what_a_killed_git_left_does_not_keep_refs_apart(mirror: Mirror, origin: Origin, tmp_path: Path):
    await mirror.fetch([MAIN])
    (head,) = tmp_path.glob("mirrors/**/HEAD")
    for half_written in ("packed-refs.new", "packed-refs.lock"):
        head.with_name(half_written).touch()
    restarted = GitCli(tmp_path / "mirrors", Committer("Mergeyard", "x@example.org"))
    again = await restarted.mirror("git.local/owner/name", Remote(origin.url))
    await restarted.tidy()
    assert loose_refs(tmp_path) == []
    assert await again.fetch([MAIN]) == {MAIN: origin.tip("main")}


@asynchronous
async def test_little_is_left_as_it_is(git: Git, mirror: Mirror, tmp_path: Path):
    await mirror.fetch([MAIN])
    before = loose(tmp_path)
    await git.tidy()
    assert before == loose(tmp_path) > 0


@asynchronous
async def test_a_mirror_that_is_gone_keeps_nobody_from_the_others(git: Git, mirror: Mirror, tmp_path: Path):
    await mirror.fetch([MAIN])
    for head in tmp_path.glob("mirrors/**/HEAD"):
        head.unlink()
    await git.tidy()


@asynchronous
async def test_where_tidying_failed_it_is_tried_again(git: Git, mirror: Mirror, tmp_path: Path):
    await mirror.fetch([MAIN])
    (head,) = tmp_path.glob("mirrors/**/HEAD")
    hidden = head.rename(head.with_name("hidden"))
    for _ in range(ROUNDS_OF_TIDYING):
        await git.tidy()
    hidden.rename(head)
    await git.tidy()
    assert loose_refs(tmp_path) == []
