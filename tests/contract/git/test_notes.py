"""Git notes that are written without a working tree, and read with git itself."""

import asyncio

import pytest

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import GitError, Mirror, Pushed, RefUpdate, Stale
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin

REF = "refs/notes/mergeyard/test"


async def publish(mirror: Mirror, notes: dict[Sha, bytes]) -> None:
    """As a writer that shares the ref with others."""
    while True:
        tip = (await mirror.fetch([REF])).get(REF)
        new = await mirror.add_notes(tip, notes)
        outcome = await mirror.push(RefUpdate(REF, tip, new))
        if outcome != Stale():
            assert outcome == Pushed()
            return


def read_notes(origin: Origin, *numbers: int) -> list[bytes]:
    return [read_note(origin, origin.unknown_sha(number)) for number in numbers]


def read_note(origin: Origin, commit: str) -> bytes:
    return origin.run("cat-file", "blob", origin.run("notes", f"--ref={REF}", "list", commit).decode().strip())


@asynchronous
async def test_git_reads_the_note_of_a_commit(mirror: Mirror, origin: Origin):
    commit = origin.tip("main")
    await publish(mirror, {commit: b'{"any": "bytes"}\0\xff'})
    assert read_note(origin, commit) == b'{"any": "bytes"}\0\xff'


@asynchronous
async def test_other_notes_stay(mirror: Mirror, origin: Origin):
    await publish(mirror, {origin.unknown_sha(1): b"one", origin.unknown_sha(2): b"two"})
    await publish(mirror, {origin.unknown_sha(2): b"second", origin.unknown_sha(3): b"three"})
    assert read_notes(origin, 1, 2, 3) == [b"one", b"second", b"three"]


@asynchronous
async def test_the_same_note_makes_no_second_commit(mirror: Mirror, origin: Origin):
    await publish(mirror, {origin.unknown_sha(1): b"one"})
    tip = origin.tip(REF)
    assert await mirror.add_notes(tip, {origin.unknown_sha(1): b"one"}) == tip
    assert await mirror.add_notes(tip, {origin.unknown_sha(1): b"other"}) != tip


@asynchronous
@pytest.mark.parametrize("separator", ["", "/"])
async def test_a_note_in_another_folder_is_replaced_and_not_joined(mirror: Mirror, origin: Origin, separator: str):
    name = origin.unknown_sha(1)
    path = separator.join((name[:2], name[2:4], name[4:]))
    origin.commit(REF, {path: "as git itself stores few or very many notes"})
    await publish(mirror, {origin.unknown_sha(1): b"one"})
    assert read_note(origin, origin.unknown_sha(1)) == b"one"


@asynchronous
async def test_two_writers_at_once_lose_no_note(mirror: Mirror, origin: Origin):
    """A second ref update between the read and the push of the first makes that push stale."""
    names = {number: origin.unknown_sha(number) for number in range(6)}
    await asyncio.gather(*(publish(mirror, {name: str(number).encode()}) for number, name in names.items()))
    assert read_notes(origin, *range(6)) == [str(number).encode() for number in range(6)]
    assert len(origin.log(REF, "%H")) == 6


@asynchronous
async def test_of_the_files_of_others_only_notes_stay(mirror: Mirror, origin: Origin):
    """Our signature on a commit with other files would make them look tested."""
    other = f"{origin.unknown_sha(2)[:2]}/{origin.unknown_sha(2)[2:]}"
    names = [
        "backdoor.sh",
        "ab/charts/values.yaml",
        "abcd",
        f"{origin.unknown_sha(3)}/{origin.unknown_sha(4)}",
        f"{origin.unknown_sha(3)}.yaml",
        f"xx/{origin.unknown_sha(3)[2:]}",
    ]
    origin.commit(REF, dict.fromkeys([*names, other], "by others"))
    origin.commit_raw_entry(REF, ".git", f"100644 blob {origin.blob('x')}")
    origin.commit_raw_entry(REF, origin.unknown_sha(5), f"120000 blob {origin.blob('/etc')}")
    foreign = origin.tip(REF)
    await publish(mirror, {origin.unknown_sha(1): b"one"})
    assert origin.files(REF) == {f"{origin.unknown_sha(1)[:2]}/{origin.unknown_sha(1)[2:]}": "one", other: "by others"}
    assert origin.log(REF, "%P")[-1] == foreign


@asynchronous
@pytest.mark.parametrize("kind", ["blob", "tree", "tag"])
async def test_notes_that_are_no_commit_are_replaced(mirror: Mirror, origin: Origin, kind: str):
    objects = {"blob": origin.blob("x"), "tree": origin.tree("main"), "tag": make_tag(origin)}
    origin.run("update-ref", REF, objects[kind])
    await publish(mirror, {origin.unknown_sha(1): b"one"})
    assert read_note(origin, origin.unknown_sha(1)) == b"one"


def make_tag(origin: Origin) -> str:
    tag = f"object {origin.tip('main')}\ntype commit\ntag any\ntagger Eve <eve@example.org> 0 +0000\n\nAny\n"
    return origin.run("mktag", stdin=tag.encode()).decode().strip()


@asynchronous
async def test_a_note_for_something_that_is_no_commit_name_is_refused(mirror: Mirror):
    with pytest.raises(GitError, match="not the name of an object"):
        await mirror.add_notes(None, {Sha("../evil"): b"one"})


def leading(origin: Origin, folder: int, number: int = 0) -> Sha:
    """The name of an object whose first two digits, after which git names a folder, are this number."""
    shift = 4 * (len(origin.unknown_sha(0)) - 2)
    return origin.unknown_sha(folder << shift | number)


@asynchronous
async def test_a_note_beside_many_others_writes_only_its_own_folder_again(mirror: Mirror, origin: Origin):
    await publish(mirror, {leading(origin, number): b"same" for number in range(40)})
    before = origin.tip(REF)
    await publish(mirror, {leading(origin, 7, 1): b"new"})
    objects = origin.run("rev-list", "--objects", origin.tip(REF), f"^{before}").decode().splitlines()
    assert len(objects) == 4, "a commit, the root folder, one folder, and the note"


def test_git_shows_the_note_in_its_log(mirror: Mirror, origin: Origin):
    asyncio.run(publish(mirror, {origin.tip("main"): b"tested\n"}))
    shown = origin.run("log", "-1", f"--notes={REF}", "main").decode()
    assert shown.endswith("    tested\n"), shown
