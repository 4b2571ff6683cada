"""Commits that are made, and history that is read."""

import pytest

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Mirror, MissingObject, OutputTooLargeError, Signature
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin

NOWHERE = Sha("1" * 40)


@asynchronous
async def test_a_commit_is_ours_unless_it_has_an_author(mirror: Mirror):
    (tip,) = (await mirror.fetch(["refs/heads/main"])).values()
    tree = await mirror.tree(tip)
    ours = await mirror.read(await mirror.commit(tree, [tip], "Ours"))
    assert (ours.author.name, ours.author.email) == ("Mergeyard", "queue@example.org")
    theirs = Signature("Grace Hopper", "grace@example.org", "1500000000 -0330")
    assert (await mirror.read(await mirror.commit(tree, [tip], "Theirs", theirs))).author == theirs


@asynchronous
async def test_a_commit_has_the_tree_parents_and_message_it_was_given(mirror: Mirror, origin: Origin):
    origin.branch("feature", upon="main", files={"x": "1"})
    parents = tuple((await mirror.fetch(["refs/heads/*"])).values())
    tree = await mirror.tree(parents[0])
    message = "Title with 'quotes' – ünï\n\n# not a comment\n-dash\n\nMergeyard-Run: 1\n"
    commit = await mirror.read(await mirror.commit(tree, parents, message))
    assert (commit.tree, commit.parents, commit.message) == (tree, parents, message)


@pytest.mark.parametrize("message", ["", "\0", "a\0b", "\udcff"])
@asynchronous
async def test_a_message_that_git_would_not_take_is_made_fit(mirror: Mirror, origin: Origin, message: str):
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.commit(origin.tree("main"), [origin.tip("main")], message)


@pytest.mark.parametrize("name", ["", " ", "<>", "."])
@asynchronous
async def test_an_author_without_a_name_is_unknown(mirror: Mirror, origin: Origin, name: str):
    await mirror.fetch(["refs/heads/main"])
    nameless = Signature(name, "", "0 +0000")
    commit = await mirror.read(await mirror.commit(origin.tree("main"), [], "By somebody", nameless))
    assert commit.author == Signature("unknown", "", "0 +0000")


@pytest.mark.parametrize("name", ["Sammy Davis Jr.", '"Quoted"', "'s Gravesande", "Ann, M.D.", "\\o/"])
@asynchronous
async def test_an_author_keeps_a_name_that_git_would_trim(mirror: Mirror, origin: Origin, name: str):
    await mirror.fetch(["refs/heads/main"])
    author, parents, message = Signature(name, "a@example.org", "1500000000 -0330"), (origin.tip("main"),), "Theirs\n"
    made = await mirror.read(await mirror.commit(origin.tree("main"), parents, message, author, "7 +0000"))
    assert (made.author, made.parents, made.message, made.committed) == (author, parents, message, "7 +0000")


@asynchronous
async def test_a_commit_upon_a_missing_parent_is_not_made(mirror: Mirror, origin: Origin):
    await mirror.fetch(["refs/heads/main"])
    with pytest.raises(MissingObject, match=NOWHERE):
        await mirror.commit(origin.tree("main"), [NOWHERE], "Nowhere")


@asynchronous
async def test_commits_are_what_the_head_has_more_parents_first(mirror: Mirror, origin: Origin):
    base = origin.tip("main")
    one = origin.branch("feature", upon="main", files={"x": "1"}, message="One\n\nwith a body\n")
    side = origin.branch("side", upon="main", files={"y": "1"})
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
async def test_first_parents_lead_down_to_where_the_branch_was(mirror: Mirror, origin: Origin):
    base = origin.tip("main")
    side = origin.branch("side", upon="main", files={"s": "1"})
    one = origin.commit("main", {"x": "1"})
    two = origin.commit("main", {"s": "1"}, merging="side")
    await mirror.fetch(["refs/heads/*"])
    assert [commit.sha for commit in await mirror.first_parents(two, down_to=base) or ()] == [one, two]
    assert await mirror.first_parents(two, down_to=two) == ()
    assert await mirror.first_parents(two, down_to=side) is None
    assert await mirror.first_parents(base, down_to=two) is None
    assert await mirror.first_parents(two, down_to=origin.tip("side")) is None


@asynchronous
async def test_the_last_along_first_parents_leave_out_what_was_merged(mirror: Mirror, origin: Origin):
    base = origin.tip("main")
    origin.branch("side", upon="main", files={"s": "1"})
    one = origin.commit("main", {"x": "1"})
    two = origin.commit("main", {"s": "1"}, merging="side")
    await mirror.fetch(["refs/heads/*"])
    assert [commit.sha for commit in await mirror.last_first_parents(two, limit=9)] == [two, one, base]
    assert [commit.sha for commit in await mirror.last_first_parents(two, limit=2)] == [two, one]


@asynchronous
async def test_a_commit_holds_itself_and_its_history(mirror: Mirror, origin: Origin):
    base = origin.tip("main")
    tip = origin.commit("main", {"x": "1"})
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.holds(tip, tip)
    assert await mirror.holds(tip, base)
    assert not await mirror.holds(base, tip)


@asynchronous
async def test_an_unknown_ancestor_is_not_held_but_an_unknown_commit_is_missing(mirror: Mirror):
    (tip,) = (await mirror.fetch(["refs/heads/main"])).values()
    assert not await mirror.holds(tip, NOWHERE)
    with pytest.raises(MissingObject, match=NOWHERE):
        await mirror.holds(NOWHERE, tip)


@asynchronous
async def test_of_a_message_that_is_too_large_the_trailers_are_read(mirror: Mirror, origin: Origin):
    before = origin.tip("main")
    message = f"Greet\n\n{'x' * 20_000_000}\n\nMergeyard-Run: 12\nMergeyard-Head: 34\n"
    large = origin.commit("main", {"a": "1"}, message=message)
    await mirror.fetch(["refs/heads/main"])
    trailers = "Mergeyard-Run: 12\nMergeyard-Head: 34"
    assert (await mirror.read(large)).message.strip() == trailers
    ways = (
        await mirror.commits(large, without=[before]),
        await mirror.first_parents(large, down_to=before) or (),
        (await mirror.last_first_parents(large, limit=2))[:1],
    )
    assert [[(commit.sha, commit.message.strip()) for commit in way] for way in ways] == [[(large, trailers)]] * 3
    with pytest.raises(OutputTooLargeError):
        await mirror.commits(large, without=[before], whole=True)


@asynchronous
async def test_of_trailers_that_are_too_large_nothing_is_read(mirror: Mirror, origin: Origin):
    trailers = "\n".join(f"Trailer-{count}: {'x' * 1000}" for count in range(20_000))
    large = origin.commit("main", {"a": "1"}, message=f"Greet\n\n{trailers}")
    await mirror.fetch(["refs/heads/main"])
    assert (await mirror.read(large)).message.strip() == ""


@asynchronous
async def test_shas_are_those_of_the_commits(mirror: Mirror, origin: Origin):
    before = origin.tip("main")
    for count in range(4):
        origin.commit("main", {"a": str(count)})
    await mirror.fetch(["refs/heads/main"])
    tip = origin.tip("main")
    commits = [commit.sha for commit in await mirror.commits(tip, without=[before])]
    assert list(await mirror.shas(tip, without=[before])) == commits
    assert list(await mirror.shas(tip, without=[before], limit=2)) == commits[-2:]
    assert await mirror.shas(tip, without=[tip]) == ()


@asynchronous
async def test_merge_bases_are_all_best_common_ancestors(mirror: Mirror, origin: Origin):
    one = origin.branch("one", upon="main", files={"one": "1"})
    two = origin.branch("two", upon="main", files={"two": "1"})
    left = origin.commit("one", {"left": "1"}, merging="two")
    right = origin.commit("two", {"right": "1"}, merging=one)
    stranger = origin.commit("stranger", {"other": "1"})
    await mirror.fetch(["refs/heads/*"])
    assert set(await mirror.merge_bases(left, right)) == {one, two}
    assert await mirror.merge_bases(one, left) == (one,)
    assert await mirror.merge_bases(one, stranger) == ()
    with pytest.raises(MissingObject):
        await mirror.merge_bases(one, Sha("1" * 40))
