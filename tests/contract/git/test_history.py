"""Commits that the mirror creates, and history that it reads."""

import pytest

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Conflict, Mirror, MissingObject, OutputTooLargeError, RefUpdate, Signature
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Executable, Files, Origin, Symlink

NOWHERE = Sha("1" * 40)


@asynchronous
async def test_a_commit_without_an_author_is_authored_by_the_committer(mirror: Mirror):
    (tip,) = (await mirror.fetch(["refs/heads/main"])).values()
    tree = await mirror.tree(tip)
    ours = await mirror.read_commit(await mirror.commit(tree, [tip], "Ours"))
    assert (ours.author.name, ours.author.email) == ("Mergeyard", "queue@example.org")
    theirs = Signature("Grace Hopper", "grace@example.org", "1500000000 -0330")
    assert (await mirror.read_commit(await mirror.commit(tree, [tip], "Theirs", theirs))).author == theirs


@asynchronous
async def test_a_commit_has_the_tree_parents_and_message_it_was_given(mirror: Mirror, origin: Origin):
    origin.branch("feature", base="main", files={"x": "1"})
    parents = tuple((await mirror.fetch(["refs/heads/*"])).values())
    tree = await mirror.tree(parents[0])
    message = "Title with 'quotes' – ünï\n\n# not a comment\n-dash\n\nMergeyard-Run: 1\n"
    commit = await mirror.read_commit(await mirror.commit(tree, parents, message))
    assert (commit.tree, commit.parents, commit.message) == (tree, parents, message)


@pytest.mark.parametrize("message", ["", "\0", "a\0b", "\udcff"])
@asynchronous
async def test_a_message_that_git_would_refuse_is_sanitized(mirror: Mirror, origin: Origin, message: str):
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.commit(origin.tree("main"), [origin.tip("main")], message)


@pytest.mark.parametrize("name", ["", " ", "<>", "."])
@asynchronous
async def test_an_author_without_a_name_is_unknown(mirror: Mirror, origin: Origin, name: str):
    await mirror.fetch(["refs/heads/main"])
    nameless = Signature(name, "", "0 +0000")
    commit = await mirror.read_commit(await mirror.commit(origin.tree("main"), [], "By an unknown author", nameless))
    assert commit.author == Signature("unknown", "", "0 +0000")


@pytest.mark.parametrize("name", ["Sammy Davis Jr.", '"Quoted"', "'s Gravesande", "Ann, M.D.", "\\o/"])
@asynchronous
async def test_an_author_keeps_a_name_that_git_would_trim(mirror: Mirror, origin: Origin, name: str):
    await mirror.fetch(["refs/heads/main"])
    author, parents, message = Signature(name, "a@example.org", "1500000000 -0330"), (origin.tip("main"),), "Theirs\n"
    made = await mirror.read_commit(await mirror.commit(origin.tree("main"), parents, message, author, "7 +0000"))
    assert (made.author, made.parents, made.message, made.committer.date) == (author, parents, message, "7 +0000")


@asynchronous
async def test_a_commit_with_a_missing_parent_is_not_created(mirror: Mirror, origin: Origin):
    await mirror.fetch(["refs/heads/main"])
    with pytest.raises(MissingObject, match=NOWHERE):
        await mirror.commit(origin.tree("main"), [NOWHERE], "Nowhere")


@asynchronous
async def test_commits_are_those_only_in_the_head_with_parents_first(mirror: Mirror, origin: Origin):
    base = origin.tip("main")
    one = origin.branch("feature", base="main", files={"x": "1"}, message="One\n\nwith a body\n")
    side = origin.branch("side", base="main", files={"y": "1"})
    merge = origin.commit("feature", {"y": "1"}, merging="side")
    origin.commit("main", {"later": "1"})
    await mirror.fetch(["refs/heads/*"])
    found = await mirror.commits(merge, without=[base])
    assert {commit.sha for commit in found[:-1]} == {one, side}
    assert found[-1].sha == merge
    assert next(commit for commit in found if commit.sha == one).message == "One\n\nwith a body\n"
    assert await mirror.commits(merge, without=[merge]) == ()
    assert [commit.sha for commit in await mirror.commits(merge, without=[base, side])] == [one, merge]


@asynchronous
async def test_a_limit_keeps_the_newest_commits(mirror: Mirror, origin: Origin):
    shas = [origin.commit("main", {"n": f"{n}"}) for n in range(4)]
    await mirror.fetch(["refs/heads/main"])
    assert [commit.sha for commit in await mirror.commits(shas[-1], without=[], limit=2)] == shas[-2:]


@asynchronous
async def test_first_parents_are_listed_down_to_the_old_tip(mirror: Mirror, origin: Origin):
    base = origin.tip("main")
    side = origin.branch("side", base="main", files={"s": "1"})
    one = origin.commit("main", {"x": "1"})
    two = origin.commit("main", {"s": "1"}, merging="side")
    await mirror.fetch(["refs/heads/*"])
    assert [commit.sha for commit in await mirror.first_parents(two, down_to=base) or ()] == [one, two]
    assert await mirror.first_parents(two, down_to=two) == ()
    assert await mirror.first_parents(two, down_to=side) is None
    assert await mirror.first_parents(base, down_to=two) is None
    assert await mirror.first_parents(two, down_to=origin.tip("side")) is None


@asynchronous
async def test_the_latest_first_parents_exclude_merged_commits(mirror: Mirror, origin: Origin):
    base = origin.tip("main")
    origin.branch("side", base="main", files={"s": "1"})
    one = origin.commit("main", {"x": "1"})
    two = origin.commit("main", {"s": "1"}, merging="side")
    await mirror.fetch(["refs/heads/*"])
    assert [commit.sha for commit in await mirror.last_first_parents(two, limit=9)] == [two, one, base]
    assert [commit.sha for commit in await mirror.last_first_parents(two, limit=2)] == [two, one]


@asynchronous
async def test_a_commit_contains_itself_and_its_history(mirror: Mirror, origin: Origin):
    base = origin.tip("main")
    tip = origin.commit("main", {"x": "1"})
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.contains(tip, tip)
    assert await mirror.contains(tip, base)
    assert not await mirror.contains(base, tip)


@asynchronous
async def test_an_unknown_ancestor_is_not_contained_but_an_unknown_commit_is_missing(mirror: Mirror):
    (tip,) = (await mirror.fetch(["refs/heads/main"])).values()
    assert not await mirror.contains(tip, NOWHERE)
    with pytest.raises(MissingObject, match=NOWHERE):
        await mirror.contains(NOWHERE, tip)


@pytest.mark.long
@asynchronous
async def test_of_a_message_that_is_too_large_the_trailers_are_read(mirror: Mirror, origin: Origin):
    before = origin.tip("main")
    message = f"Greet\n\n{'x' * 20_000_000}\n\nMergeyard-Run: 12\nMergeyard-Head: 34\n"
    large = origin.commit("main", {"a": "1"}, message=message)
    await mirror.fetch(["refs/heads/main"])
    trailers = "Mergeyard-Run: 12\nMergeyard-Head: 34"
    assert (await mirror.read_commit(large)).message.strip() == trailers
    ways = (
        await mirror.commits(large, without=[before]),
        await mirror.first_parents(large, down_to=before) or (),
        (await mirror.last_first_parents(large, limit=2))[:1],
    )
    assert [[(commit.sha, commit.message.strip()) for commit in way] for way in ways] == [[(large, trailers)]] * 3
    with pytest.raises(OutputTooLargeError):
        await mirror.commits(large, without=[before], full_messages=True)


@pytest.mark.long
@asynchronous
async def test_of_trailers_that_are_too_large_nothing_is_read(mirror: Mirror, origin: Origin):
    trailers = "\n".join(f"Trailer-{count}: {'x' * 1000}" for count in range(20_000))
    large = origin.commit("main", {"a": "1"}, message=f"Greet\n\n{trailers}")
    await mirror.fetch(["refs/heads/main"])
    assert (await mirror.read_commit(large)).message.strip() == ""


@asynchronous
async def test_shas_are_those_of_the_commits(mirror: Mirror, origin: Origin):
    before = origin.tip("main")
    for count in range(4):
        origin.commit("main", {"a": str(count)})
    await mirror.fetch(["refs/heads/main"])
    tip = origin.tip("main")
    commits = [commit.sha for commit in await mirror.commits(tip, without=[before])]
    assert list(await mirror.commit_shas(tip, without=[before])) == commits
    assert list(await mirror.commit_shas(tip, without=[before], limit=2)) == commits[-2:]
    assert await mirror.commit_shas(tip, without=[tip]) == ()


@asynchronous
async def test_merge_bases_are_all_best_common_ancestors(mirror: Mirror, origin: Origin):
    one = origin.branch("one", base="main", files={"one": "1"})
    two = origin.branch("two", base="main", files={"two": "1"})
    left = origin.commit("one", {"left": "1"}, merging="two")
    right = origin.commit("two", {"right": "1"}, merging=one)
    stranger = origin.commit("stranger", {"other": "1"})
    await mirror.fetch(["refs/heads/*"])
    assert set(await mirror.merge_bases(left, right)) == {one, two}
    assert await mirror.merge_bases(one, left) == (one,)
    assert await mirror.merge_bases(one, stranger) == ()
    with pytest.raises(MissingObject):
        await mirror.merge_bases(one, Sha("1" * 40))


HOSTILE = ["with space", "quote'\"", "line\nbreak", "-dash", "ünï", "tab\there", ":(glob)*", "back\\slash", "nul\udcff"]


async def contents(mirror: Mirror, origin: Origin, tree: Sha | Conflict) -> dict[str, str]:
    """Returns the files of a tree that the mirror created."""
    assert not isinstance(tree, Conflict)
    commit = await mirror.commit(tree, [], "To look at")
    await mirror.push(RefUpdate("refs/heads/look", origin.ref("look"), commit))
    return origin.files("look")


async def both(mirror: Mirror, origin: Origin, ours: Files, theirs: Files) -> tuple[Sha, Sha]:
    """Creates two branches that start at main."""
    pair = (origin.branch("ours", base="main", files=ours), origin.branch("theirs", base="main", files=theirs))
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
    origin.branch("ours", base="main")
    ours = origin.rename("ours", "b.txt", "renamed.txt")
    theirs = origin.branch("theirs", base="main", files={"b.txt": "1\n2\n3\n4\n"})
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
    origin.branch("ours", base="main")
    ours = origin.chmod("ours", "a.txt")
    theirs = origin.branch("theirs", base="main", files={"a.txt": "2\n"})
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
        origin.branch(branch, base="main")
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
async def test_conflicts_in_files_with_hostile_names_are_reported_as_text(mirror: Mirror, origin: Origin):
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
async def test_unrelated_histories_do_not_merge(mirror: Mirror, origin: Origin):
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
            await mirror.cherry_pick(*pair)


@asynchronous
async def test_a_stack_contains_every_pull_request_and_its_base(mirror: Mirror, origin: Origin):
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
    assert await mirror.contains(tip, first)
    assert (await mirror.read_commit(tip)).parents[1] == second


@asynchronous
async def test_a_squash_is_a_merge_with_one_parent(mirror: Mirror, origin: Origin):
    origin.branch("feature", base="main", files={"a.txt": "2\n"})
    head = origin.commit("feature", {"a.txt": "3\n"})
    tip = origin.commit("main", {"later": "1\n"})
    await mirror.fetch(["refs/heads/*"])
    tree = await mirror.merge(tip, head)
    assert not isinstance(tree, Conflict)
    squashed = await mirror.read_commit(await mirror.commit(tree, [tip], "Squashed"))
    assert squashed.parents == (tip,)
    assert (await contents(mirror, origin, squashed.tree))["a.txt"] == "3\n"


@asynchronous
async def test_a_rebase_picks_every_commit_in_order(mirror: Mirror, origin: Origin):
    base = origin.tip("main")
    origin.branch("feature", base="main", files={"a.txt": "2\n"}, message="One")
    origin.rename("feature", "lib/c.txt", "lib/d.txt", message="Two")
    head = origin.commit("feature", {"a.txt": "3\n"}, message="Three")
    tip = origin.commit("main", {"b.txt": "0\n1\n2\n3\n"})
    await mirror.fetch(["refs/heads/*"])
    for commit in await mirror.commits(head, without=[base]):
        tree = await mirror.cherry_pick(tip, commit.sha)
        assert not isinstance(tree, Conflict)
        tip = await mirror.commit(tree, [tip], commit.message, commit.author)
    rebased = await contents(mirror, origin, await mirror.tree(tip))
    assert rebased == {"a.txt": "3\n", "b.txt": "0\n1\n2\n3\n", "lib/d.txt": "c\n"}


@asynchronous
async def test_a_pick_applies_one_commit_without_its_ancestors(mirror: Mirror, origin: Origin):
    origin.branch("feature", base="main", files={"a.txt": "2\n"})
    second = origin.commit("feature", {"new.txt": "n\n"})
    await mirror.fetch(["refs/heads/*"])
    picked = await contents(mirror, origin, await mirror.cherry_pick(origin.tip("main"), second))
    assert (picked["a.txt"], picked["new.txt"]) == ("1\n", "n\n")


@asynchronous
async def test_a_pick_without_changes_gives_the_same_tree(mirror: Mirror, origin: Origin):
    change = origin.branch("feature", base="main", files={"a.txt": "2\n"})
    tip = origin.commit("main", {"a.txt": "2\n", "later": "1\n"})
    await mirror.fetch(["refs/heads/*"])
    assert await mirror.cherry_pick(tip, change) == await mirror.tree(tip)


@asynchronous
async def test_a_pick_conflicts_if_the_target_branch_changed_the_same_lines(mirror: Mirror, origin: Origin):
    ours, theirs = await both(mirror, origin, {"a.txt": "2\n"}, {"a.txt": "3\n"})
    assert await mirror.cherry_pick(ours, theirs) == Conflict(("a.txt",))


@asynchronous
async def test_a_merge_commit_is_picked_against_its_first_parent(mirror: Mirror, origin: Origin):
    origin.branch("feature", base="main", files={"a.txt": "2\n"})
    origin.branch("side", base="main", files={"side": "s\n"})
    merge = origin.commit("feature", {"side": "s\n"}, merging="side")
    await mirror.fetch(["refs/heads/*"])
    picked = await contents(mirror, origin, await mirror.cherry_pick(origin.tip("main"), merge))
    assert (picked["a.txt"], picked["side"]) == ("1\n", "s\n")


@asynchronous
async def test_a_commit_without_parents_can_be_picked(mirror: Mirror, origin: Origin):
    stranger = origin.commit("stranger", {"z.txt": "1"})
    await mirror.fetch(["refs/heads/*"])
    picked = await contents(mirror, origin, await mirror.cherry_pick(origin.tip("main"), stranger))
    assert picked == {**origin.files("main"), "z.txt": "1"}


@pytest.mark.long
@asynchronous
async def test_a_conflict_in_more_paths_than_are_read_is_still_a_conflict(mirror: Mirror, origin: Origin):
    names = [f"{count}-{'x' * 200}" for count in range(6000)]
    origin.branch("feature", base="main", files=dict.fromkeys(names, "1"))
    origin.commit("main", dict.fromkeys(names, "2"))
    await mirror.fetch(["refs/heads/*"])
    found = await mirror.merge(origin.tip("main"), origin.tip("feature"))
    assert isinstance(found, Conflict)
    assert 1000 < len(found.paths) < len(names)
    assert set(found.paths) <= set(names)
