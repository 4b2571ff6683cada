"""Merges and picks: trees, or conflicts with their paths."""

import pytest

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Conflict, Mirror, MissingObject, RefUpdate
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Executable, Files, Origin, Symlink

NOWHERE = Sha("1" * 40)
HOSTILE = ["with space", "quote'\"", "line\nbreak", "-dash", "ünï", "tab\there", ":(glob)*", "back\\slash", "nul\udcff"]


async def contents(mirror: Mirror, origin: Origin, tree: Sha | Conflict) -> dict[str, str]:
    """What is in a tree that the mirror made."""
    assert not isinstance(tree, Conflict)
    commit = await mirror.commit(tree, [], "To look at")
    await mirror.push(RefUpdate("refs/heads/look", origin.ref("look"), commit))
    return origin.files("look")


async def both(mirror: Mirror, origin: Origin, ours: Files, theirs: Files) -> tuple[Sha, Sha]:
    """Two branches that part at main."""
    pair = (origin.branch("ours", upon="main", files=ours), origin.branch("theirs", upon="main", files=theirs))
    await mirror.fetch(["refs/heads/*"])
    return pair


@asynchronous
async def test_changes_of_both_sides_are_in_the_merged_tree(mirror: Mirror, origin: Origin):
    ours, theirs = await both(mirror, origin, {"a.txt": "2\n"}, {"b.txt": None, "new/d.txt": "d\n"})
    merged = await contents(mirror, origin, await mirror.merge(ours, theirs))
    assert merged == {"a.txt": "2\n", "lib/c.txt": "c\n", "new/d.txt": "d\n"}


@asynchronous
async def test_changes_within_one_file_are_merged_line_by_line(mirror: Mirror, origin: Origin):
    origin.commit("main", {"lines": "".join(f"{n}\n" for n in range(20))})
    lines = origin.files("main")["lines"]
    ours, theirs = await both(
        mirror, origin, {"lines": lines.replace("2\n", "two\n", 1)}, {"lines": lines.replace("19\n", "end\n")}
    )
    merged = await contents(mirror, origin, await mirror.merge(ours, theirs))
    assert merged["lines"] == lines.replace("2\n", "two\n", 1).replace("19\n", "end\n")


@asynchronous
async def test_a_change_follows_a_renamed_file(mirror: Mirror, origin: Origin):
    origin.branch("ours", upon="main")
    ours = origin.rename("ours", "b.txt", "renamed.txt")
    theirs = origin.branch("theirs", upon="main", files={"b.txt": "1\n2\n3\n4\n"})
    await mirror.fetch(["refs/heads/*"])
    merged = await contents(mirror, origin, await mirror.merge(ours, theirs))
    assert merged["renamed.txt"] == "1\n2\n3\n4\n"
    assert "b.txt" not in merged


@asynchronous
async def test_modes_links_and_binary_files_survive_a_merge(mirror: Mirror, origin: Origin):
    theirs: Files = {"run": Executable("exit 0"), "link": Symlink("a.txt"), "image": bytes(range(256))}
    ours, head = await both(mirror, origin, {"a.txt": "2\n"}, theirs)
    merged = await contents(mirror, origin, await mirror.merge(ours, head))
    assert merged["image"].encode(errors="surrogateescape") == bytes(range(256))
    assert {path: origin.modes("look")[path] for path in ("run", "link")} == {"run": "100755", "link": "120000"}


@asynchronous
async def test_a_mode_and_a_content_change_of_one_file_are_merged(mirror: Mirror, origin: Origin):
    origin.branch("ours", upon="main")
    ours = origin.chmod("ours", "a.txt")
    theirs = origin.branch("theirs", upon="main", files={"a.txt": "2\n"})
    await mirror.fetch(["refs/heads/*"])
    assert (await contents(mirror, origin, await mirror.merge(ours, theirs)))["a.txt"] == "2\n"
    assert origin.modes("look")["a.txt"] == "100755"


@pytest.mark.parametrize(
    ("ours", "theirs", "paths"),
    [
        ({"a.txt": "2\n"}, {"a.txt": "3\n"}, {"a.txt"}),
        ({"a.txt": "2\n", "b.txt": "x"}, {"a.txt": "3\n", "b.txt": "y"}, {"a.txt", "b.txt"}),
        ({"b.txt": None}, {"b.txt": "1\n2\nthree\n"}, {"b.txt"}),
        ({"new": "1\n"}, {"new": "2\n"}, {"new"}),
        ({"bin": b"\0\1"}, {"bin": b"\0\2"}, {"bin"}),
        ({"link": Symlink("a")}, {"link": Symlink("b")}, {"link"}),
    ],
    ids=["content", "two files", "modify and delete", "added twice", "binary", "links"],
)
@asynchronous
async def test_a_conflict_names_its_paths(mirror: Mirror, origin: Origin, ours: Files, theirs: Files, paths: set[str]):
    conflict = await mirror.merge(*await both(mirror, origin, ours, theirs))
    assert isinstance(conflict, Conflict)
    assert set(conflict.paths) == paths


@asynchronous
async def test_a_file_renamed_to_two_names_is_a_conflict_of_all_three(mirror: Mirror, origin: Origin):
    for branch in ("ours", "theirs"):
        origin.branch(branch, upon="main")
    ours, theirs = origin.rename("ours", "b.txt", "x.txt"), origin.rename("theirs", "b.txt", "y.txt")
    await mirror.fetch(["refs/heads/*"])
    conflict = await mirror.merge(ours, theirs)
    assert isinstance(conflict, Conflict)
    assert set(conflict.paths) == {"b.txt", "x.txt", "y.txt"}


@asynchronous
async def test_a_file_against_a_directory_is_a_conflict(mirror: Mirror, origin: Origin):
    conflict = await mirror.merge(*await both(mirror, origin, {"thing": "file\n"}, {"thing/inside": "file\n"}))
    assert isinstance(conflict, Conflict)
    assert any(path.startswith("thing") for path in conflict.paths)


@asynchronous
async def test_conflicts_in_files_with_hostile_names_are_told_as_text(mirror: Mirror, origin: Origin):
    ours: Files = dict.fromkeys(HOSTILE, "1\n")
    theirs: Files = dict.fromkeys(HOSTILE, "2\n")
    conflict = await mirror.merge(*await both(mirror, origin, ours, theirs))
    assert isinstance(conflict, Conflict)
    assert set(conflict.paths) == {name.replace("\udcff", "\\xff") for name in HOSTILE}
    assert "".join(conflict.paths).encode()


@asynchronous
async def test_nothing_in_a_pull_request_chooses_how_it_is_merged(mirror: Mirror, origin: Origin):
    union = "* merge=union\n"
    origin.commit("main", {".gitattributes": union})
    conflict = await mirror.merge(*await both(mirror, origin, {"a.txt": "2\n"}, {"a.txt": "3\n"}))
    assert conflict == Conflict(("a.txt",))


@asynchronous
async def test_histories_that_share_nothing_do_not_merge(mirror: Mirror, origin: Origin):
    stranger = origin.commit("stranger", {"z.txt": "1"})
    await mirror.fetch(["refs/heads/*"])
    assert await mirror.merge(origin.tip("main"), stranger) == Conflict(())


@asynchronous
async def test_a_missing_commit_is_no_conflict(mirror: Mirror, origin: Origin):
    await mirror.fetch(["refs/heads/*"])
    for pair in ((origin.tip("main"), NOWHERE), (NOWHERE, origin.tip("main"))):
        with pytest.raises(MissingObject, match=NOWHERE):
            await mirror.merge(*pair)
        with pytest.raises(MissingObject, match=NOWHERE):
            await mirror.pick(*pair)


@asynchronous
async def test_a_stack_holds_every_pull_request_and_its_base(mirror: Mirror, origin: Origin):
    first, second = await both(mirror, origin, {"a.txt": "2\n"}, {"lib/c.txt": "d\n"})
    base = origin.commit("main", {"later": "1\n"})
    await mirror.fetch(["refs/heads/main"])
    tip = base
    for head in (first, second):
        tree = await mirror.merge(tip, head)
        assert not isinstance(tree, Conflict)
        tip = await mirror.commit(tree, [tip, head], "Merge")
    stacked = await contents(mirror, origin, await mirror.tree(tip))
    assert stacked == {"a.txt": "2\n", "b.txt": "1\n2\n3\n", "lib/c.txt": "d\n", "later": "1\n"}
    assert await mirror.holds(tip, first)
    assert (await mirror.read(tip)).parents[1] == second


@asynchronous
async def test_a_squash_is_a_merge_with_one_parent(mirror: Mirror, origin: Origin):
    origin.branch("feature", upon="main", files={"a.txt": "2\n"})
    head = origin.commit("feature", {"a.txt": "3\n"})
    tip = origin.commit("main", {"later": "1\n"})
    await mirror.fetch(["refs/heads/*"])
    tree = await mirror.merge(tip, head)
    assert not isinstance(tree, Conflict)
    squashed = await mirror.read(await mirror.commit(tree, [tip], "Squashed"))
    assert squashed.parents == (tip,)
    assert (await contents(mirror, origin, squashed.tree))["a.txt"] == "3\n"


@asynchronous
async def test_a_rebase_is_every_commit_picked_in_turn(mirror: Mirror, origin: Origin):
    base = origin.tip("main")
    origin.branch("feature", upon="main", files={"a.txt": "2\n"}, message="One")
    origin.rename("feature", "lib/c.txt", "lib/d.txt", message="Two")
    head = origin.commit("feature", {"a.txt": "3\n"}, message="Three")
    tip = origin.commit("main", {"b.txt": "0\n1\n2\n3\n"})
    await mirror.fetch(["refs/heads/*"])
    for commit in await mirror.commits(head, without=[base]):
        tree = await mirror.pick(tip, commit.sha)
        assert not isinstance(tree, Conflict)
        tip = await mirror.commit(tree, [tip], commit.message, commit.author)
    rebased = await contents(mirror, origin, await mirror.tree(tip))
    assert rebased == {"a.txt": "3\n", "b.txt": "0\n1\n2\n3\n", "lib/d.txt": "c\n"}


@asynchronous
async def test_a_pick_brings_one_commit_and_not_what_came_before_it(mirror: Mirror, origin: Origin):
    origin.branch("feature", upon="main", files={"a.txt": "2\n"})
    second = origin.commit("feature", {"new.txt": "n\n"})
    await mirror.fetch(["refs/heads/*"])
    picked = await contents(mirror, origin, await mirror.pick(origin.tip("main"), second))
    assert (picked["a.txt"], picked["new.txt"]) == ("1\n", "n\n")


@asynchronous
async def test_a_pick_that_brings_nothing_new_gives_the_same_tree(mirror: Mirror, origin: Origin):
    change = origin.branch("feature", upon="main", files={"a.txt": "2\n"})
    tip = origin.commit("main", {"a.txt": "2\n", "later": "1\n"})
    await mirror.fetch(["refs/heads/*"])
    assert await mirror.pick(tip, change) == await mirror.tree(tip)


@asynchronous
async def test_a_pick_conflicts_where_the_target_changed_the_same_lines(mirror: Mirror, origin: Origin):
    ours, theirs = await both(mirror, origin, {"a.txt": "2\n"}, {"a.txt": "3\n"})
    assert await mirror.pick(ours, theirs) == Conflict(("a.txt",))


@asynchronous
async def test_a_merge_commit_is_picked_against_its_first_parent(mirror: Mirror, origin: Origin):
    origin.branch("feature", upon="main", files={"a.txt": "2\n"})
    origin.branch("side", upon="main", files={"side": "s\n"})
    merge = origin.commit("feature", {"side": "s\n"}, merging="side")
    await mirror.fetch(["refs/heads/*"])
    picked = await contents(mirror, origin, await mirror.pick(origin.tip("main"), merge))
    assert (picked["a.txt"], picked["side"]) == ("1\n", "s\n")


@asynchronous
async def test_a_commit_without_parents_can_be_picked(mirror: Mirror, origin: Origin):
    stranger = origin.commit("stranger", {"z.txt": "1"})
    await mirror.fetch(["refs/heads/*"])
    picked = await contents(mirror, origin, await mirror.pick(origin.tip("main"), stranger))
    assert picked == {**origin.files("main"), "z.txt": "1"}


@asynchronous
async def test_a_conflict_in_more_paths_than_are_read_is_still_a_conflict(mirror: Mirror, origin: Origin):
    names = [f"{count}-{'x' * 200}" for count in range(6000)]
    origin.branch("feature", upon="main", files=dict.fromkeys(names, "1"))
    origin.commit("main", dict.fromkeys(names, "2"))
    await mirror.fetch(["refs/heads/*"])
    found = await mirror.merge(origin.tip("main"), origin.tip("feature"))
    assert isinstance(found, Conflict)
    assert 1000 < len(found.paths) < len(names)
    assert set(found.paths) <= set(names)
