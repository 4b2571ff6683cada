"""Reading refs and fetching from a remote."""

import asyncio
import os
import re
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Git, GitError, Mirror, MissingObject, Pushed, PushRefused, RefUpdate, Remote, Stale
from tests.support.asynchronous import asynchronous
from tests.support.forges.git_server import GitServer
from tests.support.http_server import Message, Receive, Scope, Send, serve_in_thread
from tests.support.repositories import Origin


@asynchronous
async def test_refs_are_read_from_the_remote_as_they_are_now(mirror: Mirror, origin: Origin):
    before = await mirror.remote_refs("refs/heads/main")
    tip = origin.commit("main", {"a.txt": "2\n"})
    assert before != await mirror.remote_refs("refs/heads/main") == {"refs/heads/main": tip}


@asynchronous
async def test_a_name_does_not_find_refs_that_end_like_it(mirror: Mirror, origin: Origin):
    for ref in ("refs/heads/refs/heads/main", "refs/other/refs/heads/main", "refs/heads/main2", "refs/heads/x/main"):
        origin.set_ref(ref, origin.tip("main"))
    assert list(await mirror.remote_refs("refs/heads/main")) == ["refs/heads/main"]


@asynchronous
async def test_a_pattern_with_a_star_finds_every_matching_ref(mirror: Mirror, origin: Origin):
    tip = origin.tip("main")
    for ref in ("refs/pull/1/head", "refs/pull/22/head", "refs/pull/1/meta", "refs/other/pull/1/head"):
        origin.set_ref(ref, tip)
    assert await mirror.remote_refs("refs/pull/*/head") == {"refs/pull/1/head": tip, "refs/pull/22/head": tip}


@asynchronous
async def test_a_commit_is_fetched_by_its_sha_while_the_remote_has_it(mirror: Mirror, origin: Origin):
    before = origin.tip("main")
    lost = origin.commit("main", {"a.txt": "2\n"})
    origin.set_ref("main", before)
    await mirror.fetch(["refs/heads/main"])
    await mirror.fetch_commit(lost)
    assert [commit.sha for commit in await mirror.commits(lost, without=[before])] == [lost]


@asynchronous
async def test_a_commit_that_the_remote_does_not_have_is_missing(mirror: Mirror):
    with pytest.raises(MissingObject):
        await mirror.fetch_commit(Sha("12" * 20))


NOT_TEXT = "refs/pull/\udcff/head"


@asynchronous
async def test_a_ref_with_an_unusual_name_does_not_disturb_others(mirror: Mirror, origin: Origin):
    """A name can contain what Python calls a line break, and bytes that are not text."""
    tip, odd = origin.tip("main"), "refs/pull/1/head\u2028x\x85/head"
    other = origin.commit("other", {"b.txt": "1"})
    origin.set_ref("refs/pull/1/head", tip)
    origin.set_ref(odd, other)
    origin.set_ref(NOT_TEXT, other)
    there = {"refs/pull/1/head": tip, odd: other}
    assert await mirror.remote_refs("refs/pull/*/head") == there
    assert await mirror.fetch(["refs/pull/*/head"]) == await mirror.fetch(["refs/pull/*/head"]) == there


@asynchronous
async def test_annotated_tags_are_not_peeled(mirror: Mirror, origin: Origin):
    origin.run("tag", "--annotate", "-m", "one", "v1", "main")
    assert await mirror.remote_refs("refs/tags/*") == {"refs/tags/v1": origin.tip("refs/tags/v1")}


@asynchronous
async def test_no_pattern_finds_no_ref(mirror: Mirror):
    assert await mirror.remote_refs() == await mirror.fetch([]) == {}


@asynchronous
async def test_absent_refs_are_left_out_of_a_fetch(mirror: Mirror, origin: Origin):
    tip = origin.tip("main")
    wanted = ["refs/heads/main", "refs/heads/absent", "refs/pull/*/head"]
    assert await mirror.fetch(wanted) == {"refs/heads/main": tip}
    assert (await mirror.read_commit(tip)).message == "The beginning"


@asynchronous
async def test_one_fetch_takes_names_and_patterns(mirror: Mirror, origin: Origin):
    pull_requests = {
        f"refs/pull/{n}/head": origin.branch(f"refs/pull/{n}/head", base="main", files={"n": f"{n}"}) for n in (1, 2)
    }
    fetched = await mirror.fetch(["refs/heads/main", "refs/pull/*/head"])
    assert fetched == {"refs/heads/main": origin.tip("main"), **pull_requests}


@asynchronous
async def test_a_ref_may_point_to_a_file(mirror: Mirror, origin: Origin):
    origin.set_ref("refs/pull/1/meta", origin.blob("{}"))
    origin.set_ref("refs/pull/1/head", origin.tip("main"))
    fetched = await mirror.fetch(["refs/pull/*"])
    assert fetched["refs/pull/1/meta"] == origin.tip("refs/pull/1/meta")
    assert await mirror.contained_heads(origin.tip("main"), ["refs/pull/*"]) == {origin.tip("main")}


@asynchronous
async def test_a_commit_that_a_force_push_removed_stays_in_the_mirror(mirror: Mirror, origin: Origin):
    old = origin.branch("feature", base="main", files={"x": "old"})
    await mirror.fetch(["refs/heads/feature"])
    origin.delete_ref("feature")
    new = origin.branch("feature", base="main", files={"x": "new"})
    assert await mirror.fetch(["refs/heads/feature"]) == {"refs/heads/feature": new}
    assert await mirror.read_file(old, "x", max_bytes=1000) == b"old"


@asynchronous
async def test_a_branch_can_be_replaced_by_branches_below_its_name(mirror: Mirror, origin: Origin):
    origin.branch("a", base="main")
    await mirror.fetch(["refs/heads/*"])
    origin.delete_ref("a")
    origin.branch("a/b", base="main")
    assert set(await mirror.fetch(["refs/heads/*"])) == {"refs/heads/main", "refs/heads/a/b"}
    origin.delete_ref("a/b")
    origin.branch("a", base="main")
    assert set(await mirror.fetch(["refs/heads/*"])) == {"refs/heads/main", "refs/heads/a"}


@asynchronous
async def test_fetches_at_the_same_time_do_not_disturb_each_other(mirror: Mirror, git: Git, origin: Origin):
    other = await git.mirror("git.local/owner/name", Remote(origin.url))
    for number in range(4):
        origin.branch(f"b{number}", base="main", files={"n": f"{number}"})
    fetched = await asyncio.gather(*(each.fetch(["refs/heads/*"]) for each in (mirror, other) * 3))
    assert all(len(refs) == 5 for refs in fetched)


@asynchronous
async def test_a_commit_that_another_process_fetches_meanwhile_is_found(
    mirror: Mirror, origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """This git fetches the commit right after it reported that it is missing."""
    await mirror.fetch(["refs/heads/main"])
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
async def test_tags_are_fetched_only_on_request(mirror: Mirror, origin: Origin):
    origin.run("tag", "v1", "main")
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.contained_heads(origin.tip("main"), ["refs/tags/*"]) == frozenset()
    await mirror.fetch(["refs/tags/v1"])
    assert await mirror.contained_heads(origin.tip("main"), ["refs/tags/*"]) == {origin.tip("main")}


@asynchronous
async def test_pruned_refs_keep_their_commits_in_the_mirror(mirror: Mirror, origin: Origin):
    tip, heads = origin.tip("main"), [f"refs/pull/{number}/head" for number in (1, 2)]
    first, second = (origin.branch(head, base="main", files={"x": head}) for head in heads)
    origin.set_ref("refs/pull/2/merge", tip)
    await mirror.fetch(["refs/heads/main", "refs/pull/*"])
    await mirror.prune_refs("refs/pull/*/head", keep=heads[1:].__contains__)
    kept = origin.commit("main", {"y": "1"}, merging=second)
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.contained_heads(kept, ["refs/heads/main", "refs/pull/*"]) == {kept, second, tip}
    assert [(await mirror.read_commit(commit)).parents for commit in (first, second)] == [(tip,), (tip,)]
    assert await mirror.fetch(["refs/pull/*/head"]) == dict(zip(heads, (first, second), strict=True))


@asynchronous
async def test_contained_heads_are_those_in_the_history_of_the_tip(mirror: Mirror, origin: Origin):
    inside = origin.branch("refs/pull/1/head", base="main", files={"x": "1"})
    origin.commit("main", {"x": "1", "y": "1"}, merging="refs/pull/1/head")
    origin.branch("refs/pull/2/head", base="main", files={"z": "1"})
    origin.branch("inside-too", base="main")
    fetched = await mirror.fetch(["refs/heads/*", "refs/pull/*/head"])
    assert await mirror.contained_heads(fetched["refs/heads/main"], ["refs/pull/*/head"]) == {inside}
    named = ["refs/pull/2/head", "refs/pull/3/head"]
    assert await mirror.contained_heads(fetched["refs/heads/main"], named) == frozenset()
    assert await mirror.contained_heads(fetched["refs/heads/main"], [*named, "refs/pull/1/head"]) == {inside}
    assert await mirror.contained_heads(fetched["refs/heads/main"], []) == frozenset()


@asynchronous
async def test_fetching_from_a_missing_remote_is_an_error_with_a_message(mirror: Mirror, origin: Origin):
    shutil.rmtree(origin.path)
    with pytest.raises(GitError, match="does not appear to be a git repository"):
        await mirror.remote_refs("refs/heads/main")
    with pytest.raises(GitError, match="does not appear to be a git repository"):
        await mirror.fetch(["refs/heads/main"])


@pytest.mark.parametrize(
    "ref", ["main", "--upload-pack=x", "refs/heads/a b", "refs/heads/a..b", "refs/heads/*/*", "refs/a:b"]
)
@asynchronous
async def test_what_is_no_ref_is_not_handed_to_git(mirror: Mirror, ref: str):
    with pytest.raises(GitError, match="not the full name of a ref"):
        await mirror.fetch([ref])


@asynchronous
async def test_a_commit_that_was_never_fetched_is_missing(mirror: Mirror, origin: Origin):
    unknown = origin.tip("main")
    with pytest.raises(MissingObject, match=unknown):
        await mirror.read_commit(unknown)
    with pytest.raises(MissingObject, match=unknown):
        await mirror.merge(unknown, unknown)
    with pytest.raises(MissingObject, match=unknown):
        await mirror.tree(unknown)
    with pytest.raises(MissingObject, match=unknown):
        await mirror.commits(unknown, without=[])


@asynchronous
async def test_an_invalid_sha_is_not_passed_to_git(mirror: Mirror):
    for sha in ("HEAD", "--help", "a" * 39, "A" * 40, ""):
        with pytest.raises(GitError, match="not the name of an object"):
            await mirror.read_commit(Sha(sha))


MAIN = "refs/heads/main"
RUN = "refs/heads/mergeyard/pr-1/run"
NOWHERE = Sha("1" * 40)


async def a_new_commit(mirror: Mirror, origin: Origin) -> tuple[Sha, Sha]:
    """The tip of main and a new commit on top of it that the origin does not have yet."""
    (tip,) = (await mirror.fetch([MAIN])).values()
    return tip, await mirror.commit(origin.tree("main"), [tip], "Tested")


async def on_a_test_branch(mirror: Mirror, origin: Origin) -> tuple[Sha, Sha]:
    tip, tested = await a_new_commit(mirror, origin)
    assert await mirror.push(RefUpdate(RUN, None, tested)) == Pushed()
    return tip, tested


@asynchronous
async def test_a_landing_moves_the_target_branch_and_deletes_the_test_branch(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    assert origin.refs() == {MAIN: tip, RUN: tested}
    assert await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None)) == Pushed()
    assert origin.refs() == {MAIN: tested}


@asynchronous
async def test_a_target_that_moved_meanwhile_is_left_alone(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    foreign = origin.commit("main", {"foreign": "1"})
    assert await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None)) == Stale()
    assert origin.refs() == {MAIN: foreign, RUN: tested}


@asynchronous
async def test_without_its_test_branch_nothing_lands(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    origin.delete_ref(RUN)
    assert await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None)) == Stale()
    assert origin.refs() == {MAIN: tip}


@asynchronous
async def test_a_target_branch_that_moved_back_is_not_fast_forwarded(mirror: Mirror, origin: Origin):
    """It would be a fast-forward, but not from the expected commit."""
    before = origin.tip("main")
    origin.commit("main", {"x": "1"})
    tip, tested = await a_new_commit(mirror, origin)
    origin.set_ref("main", before)
    assert await mirror.push(RefUpdate(MAIN, tip, tested)) == Stale()
    assert origin.tip("main") == before


@asynchronous
async def test_a_ref_that_should_not_exist_is_not_overwritten(mirror: Mirror, origin: Origin):
    _, tested = await a_new_commit(mirror, origin)
    there = origin.branch(RUN, base="main")
    assert await mirror.push(RefUpdate(RUN, None, tested)) == Stale()
    assert origin.tip(RUN) == there


@asynchronous
async def test_a_ref_that_should_exist_is_not_created(mirror: Mirror, origin: Origin):
    tip, tested = await a_new_commit(mirror, origin)
    assert await mirror.push(RefUpdate(RUN, tip, tested)) == Stale()
    assert origin.refs() == {MAIN: tip}


@asynchronous
async def test_deleting_a_missing_ref_succeeds(mirror: Mirror, origin: Origin):
    tip, _ = await a_new_commit(mirror, origin)
    assert await mirror.push(RefUpdate(RUN, tip, None)) == Pushed()
    assert origin.refs() == {MAIN: tip}


@asynchronous
async def test_a_push_may_rewind_a_ref_from_where_it_is(mirror: Mirror, origin: Origin):
    before, after = origin.tip("main"), origin.commit("main", {"x": "1"})
    await mirror.fetch([MAIN])
    assert await mirror.push(RefUpdate(MAIN, after, before)) == Pushed()
    assert origin.tip("main") == before


@asynchronous
async def test_repeating_a_push_succeeds(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    landing = (RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None))
    assert await mirror.push(*landing) == Pushed()
    assert await mirror.push(*landing) == Pushed()
    assert await mirror.push(RefUpdate(MAIN, NOWHERE, tested)) == Pushed()


@asynchronous
async def test_a_value_that_is_there_already_does_not_excuse_another_ref(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    origin.set_ref(MAIN, tested)
    foreign = origin.branch("foreign", base="main", files={"f": "1"})
    origin.set_ref(RUN, foreign)
    assert await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None)) == Stale()
    assert (origin.tip(MAIN), origin.tip(RUN)) == (tested, foreign)


@asynchronous
async def test_a_target_at_the_tested_commit_still_loses_its_test_branch(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    origin.set_ref(MAIN, tested)
    assert await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None)) == Pushed()
    assert origin.refs() == {MAIN: tested}


@pytest.mark.parametrize("hook", ["pre-receive", "update"])
@asynchronous
async def test_the_message_of_a_host_that_declines_is_returned(mirror: Mirror, origin: Origin, hook: str):
    tip, tested = await a_new_commit(mirror, origin)
    origin.install_hook(hook, "echo 'main is protected: ask Ada' >&2; exit 1")
    outcome = await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(RUN, None, tested))
    assert isinstance(outcome, PushRefused)
    assert "main is protected: ask Ada" in outcome.detail
    assert origin.refs() == {MAIN: tip}


LONG_LIST = " ".join(f"file-{number}.bin" for number in range(1000))
REFUSALS = {
    "a required check": "error: GH006: Protected branch update failed. Required check 'timeout tests' is expected",
    "a size": "error: GH001: Large files detected. File a.bin is 501 MB, try again without it",
    "a line": "error: GH009: Secrets detected at line 503, service unavailable in unable to write",
    "a rule": "error: GH013: Repository rule violations found. reference already exists",
    "a long list": f"error: GH013: Repository rule violations found. temporary {LONG_LIST}",
    "a file": "GitLab: File name src/timeout.pem was prohibited by the pattern",
    "a check": "The check internal-error-tests/read-only has not passed",
    "a quoted check": "The check 'timeout-tests' has not passed",
    "a quoted file": "The file 'unavailable.txt' is not allowed",
    "a number": "The branch may have at most 503 commits",
    "a class": "The file src/Client.Timeout.java is not allowed",
    "a constant": "The check ETIMEDOUT-tests has not passed",
    "a service": "The file 'ServiceUnavailable.java' is not allowed",
}


@pytest.mark.parametrize("message", REFUSALS.values(), ids=REFUSALS.keys())
@asynchronous
async def test_words_in_names_do_not_make_a_refusal_temporary(mirror: Mirror, origin: Origin, message: str):
    tip, tested = await a_new_commit(mirror, origin)
    origin.install_hook("pre-receive", f'echo "{message}" >&2; exit 1')
    outcome = await mirror.push(RefUpdate(MAIN, tip, tested))
    assert isinstance(outcome, PushRefused)
    assert outcome.detail.startswith(message[:30])
    assert len(outcome.detail) <= 2000


TEMPORARY = (
    "GitLab: Internal API unreachable",
    "GitLab: Internal API error (502)",
    "the upstream answered with HTTP 502",
    "502 Bad Gateway",
    "The repository is temporarily read-only. Please try again later.",
    "Operation timed out.",
    "net/http: request canceled (Client.Timeout exceeded while awaiting headers)",
    "connect ETIMEDOUT 192.0.2.1:443",
    "rpc error: code = DeadlineExceeded desc = context deadline exceeded",
    "502: Bad Gateway",
    "The upstream returned 503",
    "ServiceUnavailable: the storage starts",
    "fatal: unable to create '/srv/git/objects': No space left on device",
    "warning: GH001: Large files detected. Internal Server Error",
)


@pytest.mark.parametrize("message", TEMPORARY)
@asynchronous
async def test_a_failure_of_the_host_is_temporary(mirror: Mirror, origin: Origin, message: str):
    tip, tested = await a_new_commit(mirror, origin)
    origin.install_hook("pre-receive", f'echo "{message}" >&2; exit 1')
    with pytest.raises(GitError, match=re.escape(message)):
        await mirror.push(RefUpdate(MAIN, tip, tested))


FEATURE = "refs/heads/feature"


@asynchronous
async def test_a_refusal_names_the_refs_that_the_host_refuses(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    head = origin.branch("feature", base="main", files={"f": "1"})
    origin.install_hook("update", f'test "$1" != {FEATURE} || {{ echo "it is protected" >&2; exit 1; }}')
    updates = RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None), RefUpdate(FEATURE, head, tested)
    outcome = await mirror.push(*updates)
    assert isinstance(outcome, PushRefused)
    assert outcome.refs == (FEATURE,)
    assert outcome.detail.startswith("it is protected")
    assert origin.refs() == {MAIN: tip, RUN: tested, FEATURE: head}


@asynchronous
async def test_a_ref_that_is_at_its_new_commit_does_not_hide_a_refusal(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    head = origin.branch("feature", base="main", files={"f": "1"})
    origin.set_ref(MAIN, tested)
    origin.install_hook("update", f'test "$1" != {FEATURE} || exit 1')
    outcome = await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(FEATURE, head, tested))
    assert isinstance(outcome, PushRefused)
    assert outcome.refs == (FEATURE,)


@asynchronous
async def test_a_refusal_of_a_whole_push_names_no_ref(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    origin.install_hook("pre-receive", "echo 'the feature branch is protected' >&2; exit 1")
    outcome = await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None))
    assert outcome == PushRefused("the feature branch is protected", ())
    outcome = await mirror.push(RefUpdate(MAIN, tip, tested))
    assert outcome == PushRefused("the feature branch is protected", (MAIN,))


@asynchronous
async def test_a_push_to_a_fork_moves_nothing_else(mirror: Mirror, origin: Origin, tmp_path: Path):
    tip, tested = await a_new_commit(mirror, origin)
    fork = Origin.create(tmp_path / "fork.git", origin.object_format)
    head = fork.commit("feature", {"f": "1"})
    update, to = RefUpdate(FEATURE, head, tested), Remote(fork.url)
    assert await mirror.push(update, to=to) == Pushed()
    assert (fork.refs(), origin.refs()) == ({FEATURE: tested}, {MAIN: tip})
    fork.set_ref(FEATURE, head)
    fork.commit("feature", {"f": "2"})
    assert await mirror.push(update, to=to) == Stale()
    with pytest.raises(GitError):
        await mirror.push(update, to=Remote(str(tmp_path / "gone.git")))


@asynchronous
async def test_a_host_that_forbids_deletion_refuses(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    origin.run("config", "receive.denyDeletes", "true")
    outcome = await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None))
    assert isinstance(outcome, PushRefused)
    assert "deletion" in outcome.detail
    assert origin.refs() == {MAIN: tip, RUN: tested}


@asynchronous
async def test_a_branch_that_blocks_the_name_of_a_test_branch_is_a_refusal(mirror: Mirror, origin: Origin):
    origin.branch("mergeyard", base="main")
    _, tested = await a_new_commit(mirror, origin)
    outcome = await mirror.push(RefUpdate(RUN, None, tested))
    assert isinstance(outcome, PushRefused)
    assert "refs/heads/mergeyard" in outcome.detail


@asynchronous
async def test_a_ref_that_moves_in_the_middle_of_a_push_is_left_alone(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    foreign = origin.commit("elsewhere", {"foreign": "1"})
    origin.install_hook("pre-receive", f"unset GIT_QUARANTINE_PATH; git update-ref {MAIN} {foreign}")
    assert await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None)) == Stale()
    assert (origin.tip(MAIN), origin.tip(RUN)) == (foreign, tested)


@pytest.mark.parametrize("branch", ["main", "GH123", "error-GH006"])
@asynchronous
async def test_a_ref_that_moved_and_came_back_is_stale_whatever_its_name(mirror: Mirror, origin: Origin, branch: str):
    tip, tested = await a_new_commit(mirror, origin)
    message = f"error: cannot lock ref 'refs/heads/{branch}': is at {tested} but expected {tip}"
    origin.install_hook("pre-receive", f'echo "{message}" >&2; exit 1')
    assert await mirror.push(RefUpdate(MAIN, tip, tested)) == Stale()


@asynchronous
async def test_a_ref_that_another_process_has_locked_is_a_temporary_error(mirror: Mirror, origin: Origin):
    tip, tested = await a_new_commit(mirror, origin)
    lock = origin.path / f"{MAIN}.lock"
    lock.touch()
    with pytest.raises(GitError, match="cannot lock ref"):
        await mirror.push(RefUpdate(MAIN, tip, tested))
    lock.unlink()
    assert await mirror.push(RefUpdate(MAIN, tip, tested)) == Pushed()


@asynchronous
async def test_a_push_whose_response_was_lost_after_success_has_succeeded(mirror: Mirror, origin: Origin):
    tip, tested = await a_new_commit(mirror, origin)
    origin.install_hook("post-receive", "kill -9 $PPID")
    assert await mirror.push(RefUpdate(MAIN, tip, tested)) == Pushed()


@asynchronous
async def test_a_push_whose_response_was_lost_before_success_is_an_error(mirror: Mirror, origin: Origin):
    tip, tested = await a_new_commit(mirror, origin)
    origin.install_hook("pre-receive", "kill -9 $PPID")
    with pytest.raises(GitError):
        await mirror.push(RefUpdate(MAIN, tip, tested))
    assert origin.tip("main") == tip


@asynchronous
async def test_pushing_to_a_missing_remote_is_an_error(mirror: Mirror, origin: Origin):
    tip, tested = await a_new_commit(mirror, origin)
    shutil.rmtree(origin.path)
    with pytest.raises(GitError, match="does not appear to be a git repository"):
        await mirror.push(RefUpdate(MAIN, tip, tested))


@asynchronous
async def test_a_commit_that_the_mirror_lacks_is_not_pushed(mirror: Mirror, origin: Origin):
    tip, _ = await a_new_commit(mirror, origin)
    with pytest.raises(MissingObject, match=NOWHERE):
        await mirror.push(RefUpdate(MAIN, tip, NOWHERE))
    assert origin.tip("main") == tip


@asynchronous
async def test_an_expected_value_need_not_be_known_to_the_mirror(mirror: Mirror, origin: Origin):
    _, tested = await a_new_commit(mirror, origin)
    unknown = origin.commit("main", {"x": "1"})
    assert await mirror.push(RefUpdate(MAIN, unknown, tested)) == Pushed()


@asynchronous
async def test_an_empty_push_succeeds(mirror: Mirror):
    assert await mirror.push() == Pushed()


@asynchronous
async def test_an_invalid_ref_is_not_pushed(mirror: Mirror, origin: Origin):
    tip, tested = await a_new_commit(mirror, origin)
    for ref in ("main", "--mirror", "refs/heads/*", "refs/heads/a:b", "refs/heads/x.lock"):
        with pytest.raises(GitError, match="not the full name of a ref"):
            await mirror.push(RefUpdate(ref, tip, tested))


# Over HTTP


class RecordingServer:
    """Keeps what it sent: the refs are in the responses."""

    def __init__(self, folder: Path) -> None:
        self.git = GitServer(folder, is_allowed=lambda _: True)
        self.sent = b""
        self.url = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def record(message: Message) -> None:
            self.sent += message.get("body", b"")
            await send(message)

        await self.git(scope, receive, record)

    def create(self, name: str) -> tuple[Origin, Remote]:
        url = f"{self.url}/{name}.git"
        header = {"GIT_CONFIG_KEY_0": "http.extraHeader", "GIT_CONFIG_VALUE_0": "Authorization: Basic YTpi"}
        return self.git.create(name), Remote(url, {"GIT_CONFIG_COUNT": "1", **header})


@pytest.fixture
def server(tmp_path: Path) -> Generator[RecordingServer]:
    server = RecordingServer(tmp_path / "served")
    with serve_in_thread(server) as server.url:
        yield server


@asynchronous
async def test_the_host_lists_only_the_kind_of_refs_that_is_asked_for(git: Git, server: RecordingServer):
    """Hosts keep the refs of every pull request ever opened."""
    origin, remote = server.create("acme/app")
    tip = origin.commit("main", {"a.txt": "1"})
    heads = [origin.branch(f"refs/pull/{number}/head", base="main", files={"n": f"{number}"}) for number in range(1, 6)]
    mirror = await git.mirror("h/acme/app", remote)
    assert await mirror.remote_refs(MAIN, "refs/heads/mergeyard/*") == {MAIN: tip}
    assert await mirror.fetch([MAIN]) == {MAIN: tip}
    assert await mirror.push(RefUpdate(RUN, None, tip)) == Pushed()
    assert b"refs/pull/" not in server.sent.partition(b"receive-pack")[0]
    server.sent = b""
    first = {"refs/pull/1/head": heads[0]}
    assert await mirror.fetch(["refs/pull/1/head"]) == first
    assert await mirror.fetch([MAIN, "refs/heads/mergeyard/*", "refs/pull/1/head"]) == {MAIN: tip, RUN: tip} | first
    assert b"refs/pull/1/head" in server.sent
    assert b"refs/pull/2/head" not in server.sent
    origin.set_ref("refs/pull/1/head", heads[1])
    assert await mirror.fetch(["refs/pull/1/head"]) == {"refs/pull/1/head": heads[1]}


@asynchronous
async def test_absent_refs_are_left_out_of_a_fetch_over_http(git: Git, server: RecordingServer):
    origin, remote = server.create("acme/app")
    tip = origin.commit("main", {"a.txt": "1"})
    origin.set_ref("refs/pull/1/head", tip)
    mirror = await git.mirror("h/acme/app", remote)
    wanted = [MAIN, "refs/pull/1/head", "refs/pull/2/head"]
    assert await mirror.fetch(wanted) == {MAIN: tip, "refs/pull/1/head": tip}
    origin.delete_ref("refs/pull/1/head")
    assert await mirror.fetch(wanted) == {MAIN: tip}
    assert await mirror.fetch(["refs/pull/1/head"]) == {}


@asynchronous
async def test_an_empty_repository_is_an_error_over_http(git: Git, server: RecordingServer):
    """git accepts any web page as an empty repository, so it can be that as well."""
    origin, remote = server.create("acme/app")
    mirror = await git.mirror("h/acme/app", remote)
    for refs in ([MAIN], ["refs/pull/1/head"], [MAIN, "refs/pull/*/head"]):
        with pytest.raises(GitError, match="has no branch: it is empty, or it is not a git repository"):
            await mirror.fetch(refs)
    origin.commit("other", {"a.txt": "1"})
    assert await mirror.remote_refs(MAIN) == {}


@asynchronous
async def test_the_message_about_a_redirect_says_what_to_do(git: Git, server: RecordingServer):
    origin, remote = server.create("acme/app")
    origin.commit("main", {"a.txt": "1"})
    server.git.rename("acme/app", "acme/new")
    mirror = await git.mirror("h/acme/app", remote)
    for call in (
        mirror.remote_refs(MAIN),
        mirror.fetch(["refs/pull/1/head"]),
        mirror.push(RefUpdate(RUN, NOWHERE, None)),
    ):
        with pytest.raises(GitError, match=r"error: 301: the Git host redirects .* create the queue for the new name"):
            await call
