"""Refs at the remote move all together, each only from where it was thought to be."""

import shutil

import pytest

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import GitTrouble, Mirror, MissingObject, Pushed, PushRefused, RefUpdate, Stale
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin

MAIN = "refs/heads/main"
RUN = "refs/heads/mergeyard/pr-1/run"
NOWHERE = Sha("1" * 40)


async def a_new_commit(mirror: Mirror, origin: Origin) -> tuple[Sha, Sha]:
    """The tip of main and a new commit upon it, which the origin does not have yet."""
    (tip,) = (await mirror.fetch([MAIN])).values()
    return tip, await mirror.commit(origin.tree("main"), [tip], "Tested")


async def on_a_test_branch(mirror: Mirror, origin: Origin) -> tuple[Sha, Sha]:
    tip, tested = await a_new_commit(mirror, origin)
    assert await mirror.push(RefUpdate(RUN, None, tested)) == Pushed()
    return tip, tested


@asynchronous
async def test_a_landing_moves_the_target_and_deletes_the_test_branch(mirror: Mirror, origin: Origin):
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
    origin.remove(RUN)
    assert await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None)) == Stale()
    assert origin.refs() == {MAIN: tip}


@asynchronous
async def test_a_target_that_moved_back_is_not_forwarded(mirror: Mirror, origin: Origin):
    """It would be a fast-forward, but not from where we thought."""
    before = origin.tip("main")
    origin.commit("main", {"x": "1"})
    tip, tested = await a_new_commit(mirror, origin)
    origin.set("main", before)
    assert await mirror.push(RefUpdate(MAIN, tip, tested)) == Stale()
    assert origin.tip("main") == before


@asynchronous
async def test_a_ref_that_should_not_exist_is_not_overwritten(mirror: Mirror, origin: Origin):
    _, tested = await a_new_commit(mirror, origin)
    there = origin.branch(RUN, upon="main")
    assert await mirror.push(RefUpdate(RUN, None, tested)) == Stale()
    assert origin.tip(RUN) == there


@asynchronous
async def test_a_ref_that_should_exist_is_not_made(mirror: Mirror, origin: Origin):
    tip, tested = await a_new_commit(mirror, origin)
    assert await mirror.push(RefUpdate(RUN, tip, tested)) == Stale()
    assert origin.refs() == {MAIN: tip}


@asynchronous
async def test_a_ref_that_is_gone_already_is_deleted(mirror: Mirror, origin: Origin):
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
async def test_a_push_that_was_done_before_is_pushed(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    landing = (RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None))
    assert await mirror.push(*landing) == Pushed()
    assert await mirror.push(*landing) == Pushed()
    assert await mirror.push(RefUpdate(MAIN, NOWHERE, tested)) == Pushed()


@asynchronous
async def test_a_value_that_is_there_already_does_not_excuse_another_ref(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    origin.set(MAIN, tested)
    foreign = origin.branch("foreign", upon="main", files={"f": "1"})
    origin.set(RUN, foreign)
    assert await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None)) == Stale()
    assert (origin.tip(MAIN), origin.tip(RUN)) == (tested, foreign)


@asynchronous
async def test_a_target_at_the_tested_commit_still_loses_its_test_branch(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    origin.set(MAIN, tested)
    assert await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None)) == Pushed()
    assert origin.refs() == {MAIN: tested}


@pytest.mark.parametrize("hook", ["pre-receive", "update"])
@asynchronous
async def test_a_host_that_declines_is_quoted(mirror: Mirror, origin: Origin, hook: str):
    tip, tested = await a_new_commit(mirror, origin)
    origin.hook(hook, "echo 'main is protected: ask Ada' >&2; exit 1")
    outcome = await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(RUN, None, tested))
    assert isinstance(outcome, PushRefused)
    assert "main is protected: ask Ada" in outcome.words
    assert origin.refs() == {MAIN: tip}


@asynchronous
async def test_a_host_that_forbids_deletion_refuses(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    origin.run("config", "receive.denyDeletes", "true")
    outcome = await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None))
    assert isinstance(outcome, PushRefused)
    assert "deletion" in outcome.words
    assert origin.refs() == {MAIN: tip, RUN: tested}


@asynchronous
async def test_a_branch_in_the_way_of_ours_is_a_refusal(mirror: Mirror, origin: Origin):
    origin.branch("mergeyard", upon="main")
    _, tested = await a_new_commit(mirror, origin)
    outcome = await mirror.push(RefUpdate(RUN, None, tested))
    assert isinstance(outcome, PushRefused)
    assert "refs/heads/mergeyard" in outcome.words


@asynchronous
async def test_a_ref_that_moves_in_the_middle_of_a_push_is_left_alone(mirror: Mirror, origin: Origin):
    tip, tested = await on_a_test_branch(mirror, origin)
    foreign = origin.commit("elsewhere", {"foreign": "1"})
    origin.hook("pre-receive", f"unset GIT_QUARANTINE_PATH; git update-ref {MAIN} {foreign}")
    assert await mirror.push(RefUpdate(MAIN, tip, tested), RefUpdate(RUN, tested, None)) == Stale()
    assert (origin.tip(MAIN), origin.tip(RUN)) == (foreign, tested)


@asynchronous
async def test_a_ref_that_is_locked_by_somebody_is_trouble_that_passes(mirror: Mirror, origin: Origin):
    tip, tested = await a_new_commit(mirror, origin)
    lock = origin.path / f"{MAIN}.lock"
    lock.touch()
    with pytest.raises(GitTrouble, match="cannot lock ref"):
        await mirror.push(RefUpdate(MAIN, tip, tested))
    lock.unlink()
    assert await mirror.push(RefUpdate(MAIN, tip, tested)) == Pushed()


@asynchronous
async def test_an_answer_that_was_lost_after_success_is_pushed(mirror: Mirror, origin: Origin):
    tip, tested = await a_new_commit(mirror, origin)
    origin.hook("post-receive", "kill -9 $PPID")
    assert await mirror.push(RefUpdate(MAIN, tip, tested)) == Pushed()


@asynchronous
async def test_an_answer_that_was_lost_before_success_is_trouble(mirror: Mirror, origin: Origin):
    tip, tested = await a_new_commit(mirror, origin)
    origin.hook("pre-receive", "kill -9 $PPID")
    with pytest.raises(GitTrouble):
        await mirror.push(RefUpdate(MAIN, tip, tested))
    assert origin.tip("main") == tip


@asynchronous
async def test_a_remote_that_is_gone_is_trouble(mirror: Mirror, origin: Origin):
    tip, tested = await a_new_commit(mirror, origin)
    shutil.rmtree(origin.path)
    with pytest.raises(GitTrouble, match="does not appear to be a git repository"):
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
async def test_nothing_to_push_is_pushed(mirror: Mirror):
    assert await mirror.push() == Pushed()


@asynchronous
async def test_what_is_no_ref_is_not_pushed(mirror: Mirror, origin: Origin):
    tip, tested = await a_new_commit(mirror, origin)
    for ref in ("main", "--mirror", "refs/heads/*", "refs/heads/a:b", "refs/heads/x.lock"):
        with pytest.raises(GitTrouble, match="not the full name of a ref"):
            await mirror.push(RefUpdate(ref, tip, tested))
