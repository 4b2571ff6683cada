"""Free slots go to what should be tested next."""

import pytest

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import DirectMergeMode, Speculation
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.reasons import Reason
from mergeyard.domain.required import Required
from mergeyard.domain.states import PrState, QueueState
from mergeyard.domain.targets import named
from tests.support.builders import Yard, a_config, a_parallel_yard, a_yard


def require(yard: Yard, required: Required) -> None:
    yard.host.required = required
    yard.tell(e.TargetSeen(tip=yard.host.tip, as_of=yard.queue.counters.turns, required=required))


def test_no_run_starts_while_all_slots_are_taken():
    yard = a_yard(prs=3, concurrency=2)
    assert yard.picture == "main ← 1… ← 2…"


def test_a_free_slot_goes_to_the_next_that_waits():
    yard = a_yard(prs=3, concurrency=2)
    yard.passes(1)
    assert yard.picture == "main ← 1✓ ← 2… ← 3…"


def test_a_free_slot_goes_first_to_those_in_the_line_that_have_no_run():
    yard = a_yard(prs=3, concurrency=2)
    yard.submit(4, priority=0)
    assert yard.picture == "main ← 4… ← 1… ← 2"
    yard.build()
    yard.passes(4)
    assert yard.picture == "main ← 4✓ ← 1… ← 2…"


def test_lowered_concurrency_lets_nothing_start_until_fewer_run():
    yard = a_yard(prs=4, concurrency=3)
    yard.tell(e.SettingsSaved(config=a_config(concurrency=2)))
    yard.passes(1)
    assert yard.picture == "main ← 1✓ ← 2… ← 3…"


@pytest.mark.parametrize("state", [QueueState.PAUSED])
def test_in_a_paused_queue_nothing_starts(state: QueueState):
    yard = a_yard(prs=2, concurrency=1)
    yard.tell(e.StateRequested(state=state))
    yard.passes(1)
    assert yard.picture == "main ← 1✓"


def test_in_a_draining_queue_those_that_were_admitted_start():
    yard = a_yard(prs=2, concurrency=1)
    yard.tell(e.StateRequested(state=QueueState.DRAINING))
    yard.passes(1)
    assert yard.picture == "main ← 1✓ ← 2…"


def test_without_a_target_branch_nothing_starts():
    yard = a_yard()
    yard.tell(e.TargetSeen(tip=None, as_of=yard.queue.counters.turns, required=yard.host.required))
    yard.submit(1)
    assert (yard.picture, yard.state(1)) == ("main", PrState.PENDING)


def test_a_red_run_is_run_again_as_often_as_the_settings_say():
    yard = a_yard(prs=1, test_retries=2)
    attempts = list[int]()
    for _ in range(3):
        attempts.append(yard.run_of(1).attempt)
        yard.fails(1)
        yard.build()
    assert (attempts, yard.state(1)) == ([0, 1, 2], PrState.FAILED)


def test_a_pr_is_in_test_while_its_red_run_is_run_again():
    yard = a_yard(prs=1, test_retries=1)
    yard.fails(1)
    assert yard.state(1) is PrState.TESTING


def test_a_red_run_waits_for_a_slot_to_be_run_again():
    yard = a_yard(prs=2, test_retries=1)
    yard.tell(e.SettingsSaved(config=a_config(test_retries=1, concurrency=1)))
    yard.fails(2)
    run = yard.run_of(2)
    assert (run.attempt, run.active) == (0, False)


def test_one_that_a_run_behind_cleared_is_not_run_again():
    yard = a_yard(prs=2, depth=1, test_retries=1)
    yard.passes(2)
    yard.fails(1)
    assert (yard.run_of(1).attempt, yard.picture) == (0, "main ← 1✓ ← 2✓")


def test_of_several_that_are_ripe_at_once_only_as_many_start_as_there_are_slots():
    yard = a_parallel_yard("x", "y", batch=2, concurrency=1)
    yard.submit(3, targets=named("x", "y"), no_batch=True)
    assert yard.picture == "main ← 1…"


def test_targets_uploaded_during_a_run_count_at_the_next_start():
    yard = a_parallel_yard("x", "y")
    yard.tell(e.TargetsUploaded(number=PrNumber(2), head=yard.head(2), targets=named("x")))
    assert yard.picture == "main ← 1… ∥ main ← 2…"
    yard.push_to_target({"other": "other"})
    yard.tell(e.TargetTouched())
    yard.perform(t.LookAtTarget)
    assert yard.picture == "main ← 1… ∥ 1 ← 2…"


# Whom nothing can test.


def test_without_required_statuses_those_that_would_start_fail():
    yard = a_yard()
    require(yard, Required())
    yard.submit(1)
    assert (yard.state(1), yard.reason(1)) == (PrState.FAILED, Reason.NO_REQUIRED_STATUSES)


def test_with_a_broken_configuration_those_that_would_start_fail_with_its_words():
    yard = a_yard()
    require(yard, Required(config_error="line 3: no"))
    yard.submit(1)
    assert (yard.reason(1), yard.stay(1).words) == (Reason.CONFIG_INVALID, "line 3: no")


def test_without_required_statuses_those_in_the_line_that_have_no_run_fail():
    yard = a_yard(prs=1, concurrency=1)
    yard.submit(2, priority=0)
    yard.build()
    require(yard, Required())
    yard.passes(2)
    assert (yard.state(1), yard.reason(1)) == (PrState.FAILED, Reason.NO_REQUIRED_STATUSES)


def test_without_required_statuses_those_under_test_go_on():
    yard = a_yard(prs=1)
    require(yard, Required())
    assert yard.state(1) is PrState.TESTING


def test_without_required_statuses_the_one_that_is_being_merged_directly_is_not_touched():
    yard = Yard(a_config(direct_merge_mode=DirectMergeMode.ALWAYS, required_statuses=("unit",)))
    require(yard, Required())
    yard.open(1)
    yard.checks.report(yard.head(1), ("unit",))
    yard.submit(1)
    yard.perform(t.ExamineHead)
    yard.intend()
    yard.tell(e.SettingsSaved(config=a_config(direct_merge_mode=DirectMergeMode.ALWAYS)))
    yard.perform(t.Land)
    assert (yard.state(1), yard.reason(1)) == (PrState.MERGED, Reason.MERGED_DIRECTLY)


def test_without_required_statuses_one_that_a_run_behind_cleared_is_not_turned_away():
    """1 and 2 went red and green in a paused queue, and 1 has no slot to be tested again."""
    yard = a_yard(prs=3, depth=2, concurrency=3)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.fails(1)
    yard.passes(2)
    yard.tell(e.SettingsSaved(config=a_config(depth=2, concurrency=1)), e.StateRequested(state=QueueState.RUNNING))
    require(yard, Required())
    yard.passes(3)
    assert yard.state(1) is PrState.TESTS_PASSED


# Who starts first what others wait for.


def test_a_base_in_question_is_tested_before_anybody_else():
    yard = a_yard(prs=1, proven=False, concurrency=1)
    yard.submit(2)
    yard.fails(1)
    assert yard.picture == "main ← 1✗ ?"


def test_a_base_in_question_waits_for_a_slot():
    yard = a_yard(prs=2, proven=False)
    yard.tell(e.SettingsSaved(config=a_config(concurrency=1)))
    yard.fails(1)
    assert yard.picture == "main ← 1✗ ← 2…"


def test_a_red_bare_run_is_run_again_as_often_as_the_settings_say():
    yard = a_yard(prs=1, proven=False, test_retries=2)
    for _ in range(3):
        yard.fails(1)
        yard.build()
    attempts = list[int]()
    for _ in range(3):
        attempts.append(yard.run_of().attempt)
        yard.fails()
        yard.build()
    assert (attempts, yard.reason(1)) == ([0, 1, 2], Reason.BASE_BROKEN)


def test_with_optimistic_merging_those_behind_start_before_anyone_is_judged():
    yard = a_yard(prs=2, depth=1, concurrency=1)
    yard.fails(1)
    assert yard.picture == "main ← 1✗ ← 2…"


def test_without_depth_nobody_waits_for_those_behind():
    yard = a_yard(prs=2, depth=0, concurrency=1)
    yard.fails(1)
    assert yard.picture == "main ← 2…"


def test_while_a_head_is_examined_nobody_starts():
    yard = a_yard(prs=2, direct_merge_mode=DirectMergeMode.ALWAYS)
    assert yard.picture == "main"


@pytest.mark.parametrize("speculation", Speculation)
def test_all_that_stand_without_a_run_are_in_their_new_lanes_before_any_starts(speculation: Speculation):
    yard = a_parallel_yard("x", "y", speculation=speculation)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.push_to_target({"other": "other"})
    yard.tell(e.TargetTouched())
    yard.perform(t.LookAtTarget)
    for number in 1, 2:
        yard.tell(e.TargetsUploaded(number=PrNumber(number), head=yard.head(number), targets=named("z")))
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    assert yard.picture == "main ← 1… ∥ 1 ← 2…"
