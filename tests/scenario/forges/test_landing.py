"""What lands is what was tested, whether we push it or the forge merges it; and test branches can be seen."""

import pytest

from mergeyard.domain.config import Config, LandingMethod, MergeMethod
from mergeyard.domain.states import QueueState
from mergeyard.service.errors import Code, Refused
from tests.scenario.forges.conftest import Stories
from tests.support.asynchronous import asynchronous
from tests.support.forge_scenario import USUAL
from tests.support.forges.faults import Answers, LosesReply
from tests.support.meanwhile import Meanwhile
from tests.support.scenario import MINUTE, SECOND

every_method = pytest.mark.parametrize("method", [MergeMethod.MERGE_COMMIT, MergeMethod.SQUASH])


def by_forge(method: MergeMethod = MergeMethod.MERGE_COMMIT) -> Config:
    return Config(landing=LandingMethod.PROVIDER_MERGE, merge_method=method)


@asynchronous
async def test_three_that_passed_land_in_one_push_and_are_all_shown_as_merged(story: Stories):
    async with story() as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        tested = scenario.run_of(3).tip
        for number in (3, 2, 1):
            await scenario.passes(number)
        assert scenario.origin.tip("main") == tested
        assert all(scenario.place.is_merged(number) for number in (1, 2, 3))


@every_method
@asynchronous
async def test_the_forge_merges_what_was_tested(story: Stories, method: MergeMethod):
    async with story(by_forge(method)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        tree = scenario.origin.tree(scenario.run_of(2).tip)
        await scenario.passes(2)
        await scenario.passes(1)
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert scenario.origin.tree("main") == tree
        assert all(scenario.place.is_merged(number) for number in (1, 2))
        assert scenario.test_branches() == []
        assert (await scenario.service.verifier.verify(scenario.keeper.key, 20)).mismatches == ()


@asynchronous
async def test_a_push_between_the_last_look_and_the_merge_is_noticed_and_pauses_the_queue(story: Stories):
    async with story(by_forge(MergeMethod.SQUASH)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        foreign = Meanwhile(lambda: scenario.origin.commit("main", {"foreign": "f"}))
        scenario.place.faults.plan(foreign, scenario.place.paths.merge)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: tree_mismatch"
        assert scenario.keeper.queue.state is QueueState.PAUSED
        assert "tree_mismatch" in scenario.comment(1)
        assert not scenario.place.is_merged(2)


@asynchronous
async def test_nobody_is_merged_upon_what_was_not_tested_though_the_reply_was_lost(github_story: Stories):
    async with github_story(by_forge(MergeMethod.SQUASH)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        foreign = Meanwhile(lambda: scenario.origin.commit("main", {"foreign": "f"}), LosesReply())
        scenario.place.faults.plan(foreign, scenario.place.paths.merge)
        await scenario.passes(1)
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "merged: tree_mismatch"
        assert not scenario.place.is_merged(2)


@asynchronous
async def test_one_that_was_merged_though_what_lay_beneath_was_taken_off_is_ours_though_the_reply_was_lost(
    github_story: Stories,
):
    async with github_story(by_forge(MergeMethod.SQUASH)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        before = scenario.origin.tip("main")
        undone = Meanwhile(lambda: scenario.origin.set("main", before), LosesReply())
        scenario.place.faults.plan(undone, "/pulls/2/merge", method="PUT")
        await scenario.passes(1)
        await scenario.a_minute_passes()
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: tree_mismatch"] * 2
        assert scenario.keeper.queue.state is QueueState.PAUSED


@asynchronous
async def test_what_was_taken_off_in_the_moment_of_the_merge_and_came_back_with_the_head_pauses_the_queue(
    github_story: Stories,
):
    async with github_story(by_forge()) as scenario:
        before = scenario.origin.tip("main")
        scenario.place.push_to_main({"foreign": "f"})
        scenario.open(1)
        await scenario.submit(1)
        undone = Meanwhile(lambda: scenario.origin.set("main", before))
        scenario.place.faults.plan(undone, scenario.place.paths.merge)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: tree_mismatch"
        assert scenario.keeper.queue.state is QueueState.PAUSED


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_what_the_forge_merged_and_somebody_took_off_does_not_come_back(
    github_story: Stories, method: MergeMethod
):
    async with github_story(by_forge(method), poll_seconds=USUAL) as scenario:
        clean = scenario.origin.tip("main")
        scenario.open(1, files={"secret": "leaked"})
        scenario.open(2, upon="feature1")
        await scenario.submit(1)
        await scenario.passes(1)
        scenario.origin.set("main", clean)
        await scenario.a_minute_passes()
        await scenario.submit(2)
        assert await scenario.state(2) == "failed: contains_removed_commit"


@asynchronous
async def test_a_push_to_the_target_before_the_merge_has_it_tested_again(story: Stories):
    async with story(by_forge()) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        before = scenario.run_of(1).id
        foreign = scenario.place.push_to_main({"foreign": "f"})
        await scenario.a_moment_passes()
        assert scenario.run_of(1).id != before
        assert scenario.run_of(1).base == foreign
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_one_that_was_about_to_be_merged_and_was_not_is_no_longer_called_good(story: Stories):
    """Where our status is required, anybody could merge it past the queue."""
    async with story(by_forge()) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        down = Meanwhile(lambda: scenario.place.push_to_main({"foreign": "f"}), Answers(502))
        scenario.place.faults.plan(down, scenario.place.paths.merge)
        await scenario.passes(1)
        await scenario.a_minute_passes()
        assert scenario.run_of(1).base == scenario.origin.tip("main")
        assert scenario.shown(1).state == "pending"


@asynchronous
async def test_a_merge_whose_reply_was_lost_is_found_and_not_done_twice(story: Stories):
    async with story(by_forge(MergeMethod.SQUASH)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.place.faults.plan(LosesReply(), scenario.place.paths.merge)
        await scenario.passes(1)
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert len(scenario.landed()) == 1


@asynchronous
async def test_an_outage_after_a_merge_uses_up_no_patience_with_a_target_that_shows_it_late(story: Stories):
    async with story(by_forge()) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        before = scenario.origin.tip("main")
        scenario.place.faults.plan(Meanwhile(scenario.break_down, LosesReply()), scenario.place.paths.merge)
        await scenario.passes(1)
        merged = scenario.origin.tip("main")
        scenario.origin.set("main", before)
        await scenario.time_passes(90 * SECOND)
        scenario.place.faults.clear()
        await scenario.time_passes(20 * SECOND)
        scenario.origin.set("main", merged)
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_push_whose_reply_was_lost_is_found_and_not_done_twice(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        tested = scenario.run_of(1).tip
        scenario.place.faults.plan(LosesReply(), scenario.place.paths.push)
        await scenario.passes(1)
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") == tested
        assert scenario.place.is_merged(1)


@asynchronous
async def test_a_push_to_the_head_in_the_last_moment_merges_nothing(story: Stories):
    """The forge is told which head we mean, so it refuses the other."""
    async with story(by_forge()) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        untested = Meanwhile(lambda: scenario.place.push(1, {"evil": "yes"}))
        scenario.place.faults.plan(untested, scenario.place.paths.merge)
        await scenario.passes(1)
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "cancelled: pr_pushed"
        assert "evil" not in scenario.origin.files("main")
        assert not scenario.place.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_one_that_was_forced_and_that_the_forge_calls_unmergeable_fails_and_blocks_nobody(github_story: Stories):
    """Upon the squash of the one beneath it we can merge it, and the forge cannot."""
    async with github_story(by_forge(MergeMethod.SQUASH)) as scenario:
        scenario.open(1, files={"shared": "1\n"})
        scenario.open(2, upon="feature1", files={"shared": "2\n"})
        scenario.open(3)
        await scenario.submit(1)
        await scenario.passes(1)
        await scenario.submit(2, forced=True)
        await scenario.submit(3)
        await scenario.passes(3)
        await scenario.passes(2)
        await scenario.time_passes(2 * MINUTE)
        assert await scenario.state(2) == "failed: merge_refused"
        await scenario.passes(3)
        assert await scenario.state(3) == "merged: merged_by_queue"


@asynchronous
async def test_what_somebody_merges_by_hand_is_merged(story: Stories):
    async with story() as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        scenario.place.merge_by_hand(1)
        await scenario.a_moment_passes()
        assert await scenario.state(1) == "merged: merged_manually"
        assert scenario.picture == "main ← 2…"


@asynchronous
async def test_a_squash_that_we_would_have_to_push_ourselves_is_refused_with_words(github_story: Stories):
    async with github_story() as scenario:
        with pytest.raises(Refused) as refused:
            await scenario.change(merge_method=MergeMethod.SQUASH)
        assert refused.value.code is Code.INVALID_REQUEST
        assert "provider_merge" in refused.value.detail


# Draft pull requests for test branches.


@asynchronous
async def test_test_branches_are_shown_as_drafts_as_long_as_they_are_tested(story: Stories):
    async with story(Config(create_prs_for_testing_branches=True)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        branch = scenario.branch_of(1).removeprefix("refs/heads/")
        assert scenario.place.drafts() == {branch: True}
        await scenario.passes(1)
        assert scenario.place.is_merged(1)
        assert scenario.place.drafts() == {branch: False}


@asynchronous
async def test_the_draft_of_a_run_that_failed_is_closed(story: Stories):
    async with story(Config(create_prs_for_testing_branches=True)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.judges(1)
        assert await scenario.state(1) == "failed: test_run_failed"
        assert set(scenario.place.drafts().values()) == {False}


@asynchronous
async def test_a_draft_of_ours_is_never_enqueued(story: Stories):
    async with story(Config(create_prs_for_testing_branches=True), poll_seconds=20) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.label(2)
        await scenario.say(2, "/merge")
        await scenario.a_minute_passes()
        assert scenario.picture == "main ← 1…"
        assert scenario.place.said(2)[1:] == []


@asynchronous
async def test_a_draft_whose_reply_was_lost_is_not_opened_twice(story: Stories):
    async with story(Config(create_prs_for_testing_branches=True)) as scenario:
        scenario.place.faults.plan(LosesReply(), scenario.place.paths.drafts, method="POST")
        scenario.open(1)
        await scenario.submit(1)
        await scenario.a_minute_passes()
        assert scenario.picture == "main ← 1…"
        assert list(scenario.place.drafts().values()) == [True]
