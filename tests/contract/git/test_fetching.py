"""What a mirror knows of its remote."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Git, GitTrouble, Mirror, MissingObject, Remote
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin


@asynchronous
async def test_refs_are_read_from_the_remote_as_they_are_now(mirror: Mirror, origin: Origin):
    before = await mirror.remote_refs("refs/heads/main")
    tip = origin.commit("main", {"a.txt": "2\n"})
    assert before != await mirror.remote_refs("refs/heads/main") == {"refs/heads/main": tip}


@asynchronous
async def test_a_name_does_not_find_refs_that_end_like_it(mirror: Mirror, origin: Origin):
    for ref in ("refs/heads/refs/heads/main", "refs/other/refs/heads/main", "refs/heads/main2", "refs/heads/x/main"):
        origin.set(ref, origin.tip("main"))
    assert list(await mirror.remote_refs("refs/heads/main")) == ["refs/heads/main"]


@asynchronous
async def test_a_star_finds_every_ref_of_its_form(mirror: Mirror, origin: Origin):
    tip = origin.tip("main")
    for ref in ("refs/pull/1/head", "refs/pull/22/head", "refs/pull/1/meta", "refs/other/pull/1/head"):
        origin.set(ref, tip)
    assert await mirror.remote_refs("refs/pull/*/head") == {"refs/pull/1/head": tip, "refs/pull/22/head": tip}


@asynchronous
async def test_a_commit_is_brought_by_its_name_as_long_as_the_remote_has_it(mirror: Mirror, origin: Origin):
    before = origin.tip("main")
    lost = origin.commit("main", {"a.txt": "2\n"})
    origin.set("main", before)
    await mirror.fetch(["refs/heads/main"])
    await mirror.fetch_commit(lost)
    assert [commit.sha for commit in await mirror.commits(lost, without=[before])] == [lost]


@asynchronous
async def test_a_commit_that_the_remote_does_not_have_is_missing(mirror: Mirror):
    with pytest.raises(MissingObject):
        await mirror.fetch_commit(Sha("12" * 20))


NOT_TEXT = "refs/pull/\udcff/head"


@asynchronous
async def test_a_ref_with_an_odd_name_stands_in_nobodys_way(mirror: Mirror, origin: Origin):
    """What Python takes for the end of a line may be in a name, and so may bytes that are no text."""
    tip, odd = origin.tip("main"), "refs/pull/1/head\u2028x\x85/head"
    other = origin.commit("other", {"b.txt": "1"})
    origin.set("refs/pull/1/head", tip)
    origin.set(odd, other)
    origin.set(NOT_TEXT, other)
    there = {"refs/pull/1/head": tip, odd: other}
    assert await mirror.remote_refs("refs/pull/*/head") == there
    assert await mirror.fetch(["refs/pull/*/head"]) == await mirror.fetch(["refs/pull/*/head"]) == there


@asynchronous
async def test_annotated_tags_are_not_peeled(mirror: Mirror, origin: Origin):
    origin.run("tag", "--annotate", "-m", "one", "v1", "main")
    assert await mirror.remote_refs("refs/tags/*") == {"refs/tags/v1": origin.tip("refs/tags/v1")}


@asynchronous
async def test_no_name_finds_nothing(mirror: Mirror):
    assert await mirror.remote_refs() == await mirror.fetch([]) == {}


@asynchronous
async def test_absent_refs_are_left_out_of_a_fetch(mirror: Mirror, origin: Origin):
    tip = origin.tip("main")
    wanted = ["refs/heads/main", "refs/heads/absent", "refs/pull/*/head"]
    assert await mirror.fetch(wanted) == {"refs/heads/main": tip}
    assert (await mirror.read(tip)).message == "The beginning"


@asynchronous
async def test_a_fetch_brings_names_and_stars_together(mirror: Mirror, origin: Origin):
    pulls = {
        f"refs/pull/{n}/head": origin.branch(f"refs/pull/{n}/head", upon="main", files={"n": f"{n}"}) for n in (1, 2)
    }
    fetched = await mirror.fetch(["refs/heads/main", "refs/pull/*/head"])
    assert fetched == {"refs/heads/main": origin.tip("main"), **pulls}


@asynchronous
async def test_a_ref_may_point_to_a_file(mirror: Mirror, origin: Origin):
    origin.set("refs/pull/1/meta", origin.blob("{}"))
    origin.set("refs/pull/1/head", origin.tip("main"))
    fetched = await mirror.fetch(["refs/pull/*"])
    assert fetched["refs/pull/1/meta"] == origin.tip("refs/pull/1/meta")
    assert await mirror.contained(origin.tip("main"), ["refs/pull/*"]) == {origin.tip("main")}


@asynchronous
async def test_a_commit_that_was_pushed_away_stays_in_the_mirror(mirror: Mirror, origin: Origin):
    old = origin.branch("feature", upon="main", files={"x": "old"})
    await mirror.fetch(["refs/heads/feature"])
    origin.remove("feature")
    new = origin.branch("feature", upon="main", files={"x": "new"})
    assert await mirror.fetch(["refs/heads/feature"]) == {"refs/heads/feature": new}
    assert await mirror.file(old, "x", max_bytes=1000) == b"old"


@asynchronous
async def test_a_branch_may_give_way_to_branches_below_its_name(mirror: Mirror, origin: Origin):
    origin.branch("a", upon="main")
    await mirror.fetch(["refs/heads/*"])
    origin.remove("a")
    origin.branch("a/b", upon="main")
    assert set(await mirror.fetch(["refs/heads/*"])) == {"refs/heads/main", "refs/heads/a/b"}
    origin.remove("a/b")
    origin.branch("a", upon="main")
    assert set(await mirror.fetch(["refs/heads/*"])) == {"refs/heads/main", "refs/heads/a"}


@asynchronous
async def test_fetches_at_the_same_time_do_not_disturb_each_other(mirror: Mirror, git: Git, origin: Origin):
    other = await git.mirror("git.local/owner/name", Remote(origin.url))
    for number in range(4):
        origin.branch(f"b{number}", upon="main", files={"n": f"{number}"})
    fetched = await asyncio.gather(*(each.fetch(["refs/heads/*"]) for each in (mirror, other) * 3))
    assert all(len(refs) == 5 for refs in fetched)


@asynchronous
async def test_what_somebody_brings_just_now_is_there(
    mirror: Mirror, origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """This git brings the commit right after it said that it has none."""
    head, git = origin.commit("other", {"b.txt": "1"}), shutil.which("git")
    mirrors = tmp_path / "mirrors" / "git.local" / "owner" / "name.git"
    tool = tmp_path / "bin" / "git"
    tool.parent.mkdir()
    bring = f"{git} --git-dir={mirrors} fetch --quiet {origin.url} other"
    tool.write_text(f'#!/bin/sh\n{git} "$@" || {{ code=$?; case "$*" in *rev-parse*) {bring};; esac; exit $code; }}\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    assert await mirror.tree(head) == origin.run("rev-parse", "other^{tree}").decode().strip()


@asynchronous
async def test_tags_are_brought_only_when_asked_for(mirror: Mirror, origin: Origin):
    origin.run("tag", "v1", "main")
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.contained(origin.tip("main"), ["refs/tags/*"]) == frozenset()
    await mirror.fetch(["refs/tags/v1"])
    assert await mirror.contained(origin.tip("main"), ["refs/tags/*"]) == {origin.tip("main")}


@asynchronous
async def test_refs_are_let_go_of_and_their_commits_stay(mirror: Mirror, origin: Origin):
    tip, heads = origin.tip("main"), [f"refs/pull/{number}/head" for number in (1, 2)]
    first, second = (origin.branch(head, upon="main", files={"x": head}) for head in heads)
    origin.set("refs/pull/2/merge", tip)
    await mirror.fetch(["refs/heads/main", "refs/pull/*"])
    await mirror.forget("refs/pull/*/head", unless=heads[1:].__contains__)
    kept = origin.commit("main", {"y": "1"}, merging=second)
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.contained(kept, ["refs/heads/main", "refs/pull/*"]) == {kept, second, tip}
    assert [(await mirror.read(commit)).parents for commit in (first, second)] == [(tip,), (tip,)]
    assert await mirror.fetch(["refs/pull/*/head"]) == dict(zip(heads, (first, second), strict=True))


@asynchronous
async def test_contained_heads_are_those_in_the_history_of_the_tip(mirror: Mirror, origin: Origin):
    inside = origin.branch("refs/pull/1/head", upon="main", files={"x": "1"})
    origin.commit("main", {"x": "1", "y": "1"}, merging="refs/pull/1/head")
    origin.branch("refs/pull/2/head", upon="main", files={"z": "1"})
    origin.branch("inside-too", upon="main")
    fetched = await mirror.fetch(["refs/heads/*", "refs/pull/*/head"])
    assert await mirror.contained(fetched["refs/heads/main"], ["refs/pull/*/head"]) == {inside}
    named = ["refs/pull/2/head", "refs/pull/3/head"]
    assert await mirror.contained(fetched["refs/heads/main"], named) == frozenset()
    assert await mirror.contained(fetched["refs/heads/main"], [*named, "refs/pull/1/head"]) == {inside}
    assert await mirror.contained(fetched["refs/heads/main"], []) == frozenset()


@asynchronous
async def test_a_remote_that_is_gone_is_trouble_with_words(mirror: Mirror, origin: Origin):
    shutil.rmtree(origin.path)
    with pytest.raises(GitTrouble, match="does not appear to be a git repository"):
        await mirror.remote_refs("refs/heads/main")
    with pytest.raises(GitTrouble, match="does not appear to be a git repository"):
        await mirror.fetch(["refs/heads/main"])


@pytest.mark.parametrize(
    "ref", ["main", "--upload-pack=x", "refs/heads/a b", "refs/heads/a..b", "refs/heads/*/*", "refs/a:b"]
)
@asynchronous
async def test_what_is_no_ref_is_not_handed_to_git(mirror: Mirror, ref: str):
    with pytest.raises(GitTrouble, match="not the full name of a ref"):
        await mirror.fetch([ref])


@asynchronous
async def test_a_commit_that_was_never_fetched_is_missing(mirror: Mirror, origin: Origin):
    unknown = origin.tip("main")
    with pytest.raises(MissingObject, match=unknown):
        await mirror.read(unknown)
    with pytest.raises(MissingObject, match=unknown):
        await mirror.merge(unknown, unknown)
    with pytest.raises(MissingObject, match=unknown):
        await mirror.tree(unknown)
    with pytest.raises(MissingObject, match=unknown):
        await mirror.commits(unknown, without=[])


@asynchronous
async def test_what_is_no_sha_is_not_handed_to_git(mirror: Mirror):
    for sha in ("HEAD", "--help", "a" * 39, "A" * 40, ""):
        with pytest.raises(GitTrouble, match="not the name of an object"):
            await mirror.read(Sha(sha))
