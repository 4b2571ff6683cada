"""A mirror that is tidied takes less room, and holds whatever it held: also what no ref leads to."""

from pathlib import Path

from mergeyard.ports.git import Git, Mirror
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin

MAIN = "refs/heads/main"
MANY = 150


def loose(tmp_path: Path) -> int:
    return len(list(tmp_path.glob("mirrors/**/objects/??/*")))


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
