"""What people do at the host is seen within two seconds, without a word from the host."""

from functools import partial
from pathlib import Path

import pytest

from mergeyard.domain.config import Config, MergeMethod, Mode
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.targets import named
from mergeyard.ports.forge import PullNews
from mergeyard.service.errors import Code, Refused
from tests.support.asynchronous import asynchronous
from tests.support.scenario import REPO, SECOND, Scenario, a_scenario

TWO_SECONDS = 2 * SECOND


@asynchronous
async def test_a_push_takes_a_pull_request_out(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        scenario.push(1, {"more": "m"})
        await scenario.time_passes(TWO_SECONDS)
        assert await scenario.state(1) == "cancelled: pr_pushed"
        assert scenario.picture == "main ← 2…"
        assert scenario.test_branches() == [scenario.branch_of(2)]


async def push_and_tell(scenario: Scenario) -> None:
    scenario.push(1, {"more": "m"})
    scenario.service.news.look_into([PullNews(REPO, PrNumber(1))])
    await scenario.rest()


@asynchronous
async def test_news_of_one_that_is_on_its_way_into_the_queue_is_not_lost(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.cancel(1)
        scenario.store.meanwhile = partial(push_and_tell, scenario)
        await scenario.submit(1)
        assert await scenario.state(1) == "cancelled: pr_pushed"


@asynchronous
async def test_a_push_to_one_that_was_on_its_way_is_told_as_soon_as_it_can_be_stored(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.cancel(1)

        async def a_push_before_the_store_fails() -> None:
            await push_and_tell(scenario)
            scenario.store.successes = scenario.store.failures = 1

        scenario.store.meanwhile = a_push_before_the_store_fails
        await scenario.submit(1)
        await scenario.time_passes(2 * SECOND)
        assert await scenario.state(1) == "cancelled: pr_pushed"


@asynchronous
async def test_what_is_said_of_one_that_is_on_its_way_into_the_queue_is_not_lost(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.cancel(1)

        async def somebody_says_what_it_impacts() -> None:
            await scenario.set_targets(1, named("fe"))

        scenario.store.afterwards = somebody_says_what_it_impacts
        await scenario.submit(1)
        assert (await scenario.stay(1)).targets == named("fe")


@asynchronous
async def test_a_push_to_one_that_is_not_ready_is_just_taken(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.set_pull(1, draft=True)
        await scenario.submit(1)
        scenario.push(1, {"more": "m"})
        await scenario.time_passes(TWO_SECONDS)
        assert await scenario.state(1) == "not_ready: draft"
        assert (await scenario.stay(1)).pull.head == scenario.origin.tip("feature1")


@asynchronous
async def test_a_push_to_one_that_was_submitted_with_its_head_takes_it_out_even_before_it_is_ready(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.set_pull(1, draft=True)
        await scenario.submit(1, head=scenario.origin.tip("feature1"))
        scenario.push(1, {"more": "m"})
        await scenario.time_passes(TWO_SECONDS)
        assert await scenario.state(1) == "cancelled: pr_pushed"


@asynchronous
async def test_closing_takes_a_pull_request_out_and_reopening_lets_it_be_submitted_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.set_pull(1, state="closed")
        await scenario.time_passes(TWO_SECONDS)
        assert await scenario.state(1) == "cancelled: pr_closed"
        with pytest.raises(Refused) as refused:
            await scenario.submit(1)
        assert refused.value.code is Code.PR_CLOSED
        scenario.set_pull(1, state="open")
        await scenario.submit(1)
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_a_pull_request_that_the_host_knows_no_more_is_closed(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.origin.remove("refs/pull/1/head")
        scenario.origin.remove("refs/pull/1/meta")
        await scenario.time_passes(TWO_SECONDS)
        assert await scenario.state(1) == "cancelled: pr_closed"


@asynchronous
async def test_a_draft_waits_until_it_is_ready_and_is_taken_out_when_it_becomes_one_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.set_pull(1, draft=True)
        await scenario.submit(1)
        assert await scenario.state(1) == "not_ready: draft"
        scenario.set_pull(1, draft=False)
        await scenario.time_passes(TWO_SECONDS)
        assert scenario.picture == "main ← 1…"
        scenario.set_pull(1, draft=True)
        await scenario.time_passes(TWO_SECONDS)
        assert await scenario.state(1) == "cancelled: pr_converted_to_draft"


@asynchronous
async def test_another_base_branch_takes_a_pull_request_out(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.set_pull(1, base="stable")
        await scenario.time_passes(TWO_SECONDS)
        assert await scenario.state(1) == "cancelled: pr_base_changed"


@asynchronous
async def test_one_that_points_elsewhere_enters_when_it_points_here(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.set_pull(1, base="stable")
        await scenario.submit(1)
        assert await scenario.state(1) == "not_ready: base_branch_mismatch"
        scenario.set_pull(1, base="main")
        await scenario.time_passes(TWO_SECONDS)
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_a_new_title_disturbs_nobody_and_is_shown(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        run = scenario.run_of(1)
        scenario.set_pull(1, title="A better name")
        await scenario.time_passes(TWO_SECONDS)
        assert (await scenario.stay(1)).pull.title == "A better name"
        assert scenario.run_of(1) == run


@asynchronous
async def test_one_that_somebody_merged_by_hand_is_merged(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        scenario.origin.commit("main", {"file1": "1\n"}, merging="feature1")
        await scenario.time_passes(TWO_SECONDS)
        assert await scenario.state(1) == "merged: merged_manually"
        assert scenario.picture == "main ← 2…"
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_one_that_the_host_shows_as_merged_is_merged(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.set_pull(1, state="merged")
        await scenario.time_passes(TWO_SECONDS)
        assert await scenario.state(1) == "merged: merged_manually"


@asynchronous
async def test_a_push_of_others_to_the_target_blames_nobody_and_all_are_tested_again_upon_it(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        stale = [run.tip for run in scenario.runs()]
        foreign = scenario.origin.commit("main", {"foreign": "f"})
        await scenario.time_passes(TWO_SECONDS)
        assert scenario.picture == "main ← 1… ← 2…"
        assert scenario.run_of(1).base == foreign
        assert not {run.tip for run in scenario.runs()} & set(stale)
        assert len(scenario.test_branches()) == 2


@asynchronous
async def test_a_status_on_a_run_that_the_target_left_behind_counts_for_nothing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        stale = scenario.run_of(1).tip
        foreign = scenario.origin.commit("main", {"foreign": "f"})
        await scenario.time_passes(TWO_SECONDS)
        await scenario.hear(stale)
        await scenario.rest()
        assert await scenario.state(1) == "testing: waiting_for_checks"
        assert scenario.origin.tip("main") == foreign


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_what_was_taken_off_the_target_does_not_come_back(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        clean = scenario.origin.tip("main")
        scenario.origin.commit("main", {"secret": "leaked"})
        await scenario.time_passes(TWO_SECONDS)
        scenario.open(1)
        scenario.origin.set("main", clean)
        await scenario.time_passes(TWO_SECONDS)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: contains_removed_commit"
        assert "secret" not in scenario.origin.files("main")


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_a_pull_request_that_was_taken_off_does_not_come_back_with_another(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        clean = scenario.origin.tip("main")
        scenario.open(1, files={"secret": "leaked"})
        scenario.open(2, 3, upon="feature1")
        await scenario.submit(1)
        await scenario.passes(1)
        landed = scenario.origin.tip("main")
        scenario.origin.set("main", clean)
        await scenario.time_passes(TWO_SECONDS)
        await scenario.submit(2)
        assert await scenario.state(2) == "failed: contains_removed_commit"
        assert "secret" not in scenario.origin.files("main")
        scenario.origin.set("main", landed)
        await scenario.time_passes(TWO_SECONDS)
        await scenario.submit(3)
        assert scenario.picture == "main ← 3…"


@asynchronous
async def test_what_was_taken_off_with_the_whole_target_does_not_come_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        clean = scenario.origin.tip("main")
        scenario.origin.commit("main", {"secret": "leaked"})
        await scenario.time_passes(TWO_SECONDS)
        scenario.open(1)
        scenario.origin.remove("main")
        await scenario.time_passes(TWO_SECONDS)
        scenario.origin.set("main", clean)
        await scenario.time_passes(TWO_SECONDS)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: contains_removed_commit"


@asynchronous
async def test_a_rewind_while_it_is_tested_takes_out_the_one_that_holds_what_was_removed(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        clean = scenario.origin.tip("main")
        scenario.origin.commit("main", {"secret": "leaked"})
        await scenario.time_passes(TWO_SECONDS)
        scenario.open(1)
        scenario.open(2, upon=clean)
        await scenario.submit(1, 2)
        scenario.origin.set("main", clean)
        await scenario.time_passes(TWO_SECONDS)
        assert await scenario.state(1) == "failed: contains_removed_commit"
        assert scenario.picture == "main ← 2…"
        await scenario.passes(2)
        assert "secret" not in scenario.origin.files("main")


@asynchronous
async def test_a_target_that_was_rewound_and_put_back_is_forgiven(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        clean = scenario.origin.tip("main")
        later = scenario.origin.commit("main", {"fine": "after all"})
        await scenario.time_passes(TWO_SECONDS)
        scenario.open(1)
        scenario.origin.set("main", clean)
        await scenario.time_passes(TWO_SECONDS)
        scenario.origin.set("main", later)
        await scenario.time_passes(TWO_SECONDS)
        await scenario.submit(1)
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_a_target_that_is_deleted_is_missed_and_all_goes_on_when_it_is_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        tip = scenario.origin.tip("main")
        scenario.origin.remove("main")
        await scenario.time_passes(TWO_SECONDS)
        assert await scenario.state(1) == "pending: target_branch_missing"
        scenario.origin.set("main", tip)
        await scenario.time_passes(TWO_SECONDS)
        assert scenario.picture == "main ← 1…"
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_one_that_could_not_be_merged_enters_when_others_moved_the_target_out_of_its_way(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, files={"README": "hello from 1\n"})
        scenario.origin.commit("main", {"README": "hello from main\n"})
        await scenario.time_passes(TWO_SECONDS)
        await scenario.submit(1)
        assert await scenario.state(1) == "not_ready: not_mergeable"
        scenario.origin.commit("main", {"README": "hello\n"})
        await scenario.time_passes(TWO_SECONDS)
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_one_that_could_not_be_merged_enters_when_a_landing_moved_the_target_out_of_its_way(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, files={"README": "hello from 1\n"})
        scenario.origin.commit("main", {"README": "hello from main\n"})
        await scenario.time_passes(TWO_SECONDS)
        scenario.open(2, files={"README": "hello\n"})
        await scenario.submit(1, 2)
        assert scenario.picture == "main ← 2…"
        await scenario.passes(2)
        await scenario.time_passes(TWO_SECONDS)
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_what_happened_while_nobody_watched_is_seen_at_the_start(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        await scenario.service.stop()
        scenario.push(1, {"more": "m"})
        scenario.set_pull(2, state="closed")
        foreign = scenario.origin.commit("main", {"foreign": "f"})
        await scenario.starts()
        await scenario.time_passes(TWO_SECONDS)
        assert await scenario.state(1) == "cancelled: pr_pushed"
        assert await scenario.state(2) == "cancelled: pr_closed"
        assert scenario.run_of(3).base == foreign
