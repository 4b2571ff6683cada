"""Nothing waits in silence: every pull request says what it waits for."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import DirectMergeMode, Mode
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import CheckState, Mergeability, PrState, QueueState
from mergeyard.engine.explaining import explain
from tests.support.builders import (
    Yard,
    a_config,
    a_parallel_yard,
    a_plain_queue,
    a_submission,
    a_wait,
    a_yard,
)

PAUSED, DRAINING, RUNNING = QueueState.PAUSED, QueueState.DRAINING, QueueState.RUNNING


def one_that_is_not_ready(**change: object) -> Yard:
    yard = a_yard()
    yard.open(1)
    yard.change(1, **change)
    yard.submit(1)
    return yard


def order(yard: Yard, state: QueueState) -> None:
    yard.tell(e.StateRequested(state=state))


def switch(yard: Yard) -> None:
    yard.tell(e.SettingsSaved(config=replace(yard.queue.config, mode=Mode.PARALLEL)))


# Not ready.


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"base": "elsewhere"}, Reason.BASE_BRANCH_MISMATCH),
        ({"draft": True}, Reason.DRAFT),
        ({"mergeability": Mergeability.NOT_MERGEABLE}, Reason.NOT_MERGEABLE),
        ({"mergeability": Mergeability.UNKNOWN}, Reason.MERGEABILITY_UNKNOWN),
        ({"mergeability": Mergeability.CHECKING}, Reason.MERGEABILITY_UNKNOWN),
    ],
)
def test_one_that_is_not_ready_says_what_it_lacks(change: dict[str, object], reason: Reason):
    assert one_that_is_not_ready(**change).waits(1) == a_wait(reason)


def test_one_that_waits_for_a_maintainer_names_the_guarded_paths():
    waits = one_that_is_not_ready(fork=True, guarded=("ci.yml", "Makefile")).waits(1)
    assert (waits.reason, waits.paths) == (Reason.WAITING_FOR_MAINTAINER, ("ci.yml", "Makefile"))


def test_one_without_targets_says_so():
    yard = a_parallel_yard()
    yard.submit(1)
    assert yard.waits(1) == a_wait(Reason.MISSING_IMPACTED_TARGETS)


@pytest.mark.parametrize(("state", "reason"), [(PAUSED, Reason.QUEUE_PAUSED), (DRAINING, Reason.QUEUE_DRAINING)])
def test_one_that_is_ready_says_why_it_may_not_come_in(state: QueueState, reason: Reason):
    yard = a_yard()
    order(yard, state)
    yard.submit(1)
    assert yard.waits(1) == a_wait(reason)


def test_one_that_is_ready_says_that_modes_switch():
    yard = a_yard(prs=1)
    switch(yard)
    yard.submit(2)
    yard.tell(e.TargetsUploaded(number=PrNumber(2), head=yard.head(2), targets=yard.queue.line.batches[0].targets))
    assert yard.waits(2) == a_wait(Reason.SWITCHING_MODES)


def test_what_it_lacks_comes_before_what_the_queue_does():
    yard = one_that_is_not_ready(draft=True)
    order(yard, PAUSED)
    assert yard.waits(1) == a_wait(Reason.DRAFT)


def test_one_that_lacks_nothing_is_ready():
    stay = a_submission(1, state=PrState.NOT_READY)
    assert explain(a_plain_queue(stay), stay) == a_wait(Reason.READY)


# Held back.


def test_one_that_is_held_back_names_the_reason_and_its_blockers():
    yard = one_that_is_not_ready(draft=True)
    yard.submit(2, upon=1)
    assert yard.waits(2) == a_wait(Reason.WAITING_FOR_PRS_AHEAD, 1)


def test_blockers_that_left_are_not_named():
    yard = a_yard(prs=1)
    yard.open(2, {"file1": "otherwise"})
    yard.submit(2)
    yard.build()
    gone = replace(yard.queue, submissions=yard.queue.submissions.drop(yard.ticket(1)))
    assert explain(gone, yard.stay(2)) == a_wait(Reason.CONFLICTS_WITH_PR_AHEAD)


# Nothing works.


def test_without_a_target_branch_everybody_says_so():
    yard = a_yard(prs=1)
    yard.tell(e.TargetSeen(tip=None, as_of=yard.queue.counters.turns, required=yard.host.required))
    assert yard.waits(1) == a_wait(Reason.TARGET_BRANCH_MISSING)


def test_while_the_host_is_silent_everybody_says_so():
    yard = a_yard(prs=1)
    yard.tell(e.HostLost())
    assert yard.waits(1) == a_wait(Reason.PROVIDER_UNAVAILABLE)


# Among the waiting.


def test_one_that_waits_for_a_slot_says_so():
    assert a_yard(prs=2, concurrency=1).waits(2) == a_wait(Reason.WAITING_FOR_SLOT)


def test_one_that_waits_for_its_batch_to_fill_says_so():
    assert a_yard(prs=1, batch=2).waits(1) == a_wait(Reason.WAITING_FOR_BATCH)


def test_one_that_waits_in_a_paused_queue_says_so():
    yard = a_yard(prs=2, concurrency=1)
    order(yard, PAUSED)
    assert yard.waits(2) == a_wait(Reason.QUEUE_PAUSED)


def test_one_that_waits_while_modes_switch_says_so():
    yard = a_yard(prs=2, concurrency=1)
    switch(yard)
    assert yard.waits(2) == a_wait(Reason.SWITCHING_MODES)


def test_one_whose_head_is_examined_waits_for_its_checks():
    yard = a_yard(prs=2, direct_merge_mode=DirectMergeMode.ALWAYS)
    assert yard.waits(1) == a_wait(Reason.WAITING_FOR_CHECKS)


def test_those_behind_one_whose_head_is_examined_wait_for_it():
    yard = a_yard(prs=2, direct_merge_mode=DirectMergeMode.ALWAYS)
    assert yard.waits(2) == a_wait(Reason.WAITING_FOR_PRS_AHEAD, 1)


# In the line.


def test_one_under_test_names_the_statuses_that_have_not_reported():
    yard = a_yard(prs=1, required_statuses=("lint", "unit", "e2e"))
    yard.tell(yard.checks_seen(yard.run_of(1), {"lint": CheckState.PASSED, "unit": CheckState.PENDING}))
    assert yard.waits(1) == a_wait(Reason.WAITING_FOR_CHECKS, checks=("unit", "e2e"))


def test_one_whose_run_is_being_built_waits_for_all_its_statuses():
    yard = a_yard()
    yard.submit(1)
    assert yard.waits(1) == a_wait(Reason.WAITING_FOR_CHECKS, checks=("unit",))


def test_one_in_the_line_without_a_run_waits_for_a_slot():
    yard = a_yard(prs=1, concurrency=1)
    yard.submit(2, priority=0)
    assert yard.waits(1) == a_wait(Reason.WAITING_FOR_SLOT)


def test_one_whose_red_run_is_to_be_repeated_waits_for_a_slot():
    yard = a_yard(prs=2, test_retries=1)
    yard.tell(e.SettingsSaved(config=a_config(test_retries=1, concurrency=1)))
    yard.fails(2)
    assert yard.waits(2) == a_wait(Reason.WAITING_FOR_SLOT)


def test_one_in_the_line_of_a_paused_queue_says_so():
    yard = a_yard(prs=1)
    order(yard, PAUSED)
    yard.fails(1)
    assert yard.waits(1) == a_wait(Reason.QUEUE_PAUSED)


def test_one_that_is_red_behind_others_names_them():
    yard = a_yard(prs=3)
    yard.fails(3)
    assert yard.waits(3) == a_wait(Reason.WAITING_FOR_PRS_AHEAD, 1, 2)


def test_one_that_is_red_ahead_of_others_under_test_names_them():
    yard = a_yard(prs=2, depth=1)
    yard.fails(1)
    assert yard.waits(1) == a_wait(Reason.WAITING_FOR_PRS_BEHIND, 2)


def test_one_that_is_red_names_only_those_within_the_depth():
    yard = a_yard(prs=3, depth=1)
    yard.fails(1)
    assert yard.waits(1) == a_wait(Reason.WAITING_FOR_PRS_BEHIND, 2)


def test_one_that_is_red_upon_an_unseen_base_waits_for_that():
    yard = a_yard(prs=1, proven=False)
    yard.fails(1)
    assert yard.waits(1) == a_wait(Reason.WAITING_FOR_BASE)


# Passed.


def test_one_that_passed_behind_others_names_them():
    yard = a_yard(prs=2)
    yard.passes(2)
    assert yard.waits(2) == a_wait(Reason.WAITING_FOR_PRS_AHEAD, 1)


def test_one_that_is_about_to_land_says_how_it_passed():
    yard = a_yard(prs=1)
    yard.passes(1)
    assert yard.waits(1) == a_wait(Reason.TEST_RUN_PASSED)


def test_one_that_was_cleared_and_is_about_to_land_says_how_it_passed():
    yard = a_yard(prs=2, depth=0)
    yard.passes(2)
    assert yard.waits(1) == a_wait(Reason.SUCCESSOR_PASSED)


def test_one_that_passed_in_a_paused_queue_says_so():
    yard = a_yard(prs=1)
    order(yard, PAUSED)
    yard.passes(1)
    assert yard.waits(1) == a_wait(Reason.QUEUE_PAUSED)


def test_one_that_passed_while_another_lane_lands_waits_for_that():
    yard = a_parallel_yard("x", "y")
    yard.passes(1)
    yard.passes(2)
    assert yard.waits(2) == a_wait(Reason.WAITING_FOR_PRS_AHEAD, 1)


def test_one_that_passed_while_the_target_is_looked_at_says_how_it_passed():
    yard = a_yard(prs=1)
    yard.tell(e.TargetTouched())
    yard.passes(1)
    assert yard.waits(1) == a_wait(Reason.TEST_RUN_PASSED)


# In a bisection.


def a_search(budget: int = 1) -> Yard:
    yard = a_yard(prs=4, batch=4, bisection_concurrency=budget)
    yard.fails(1, 2, 3, 4)
    yard.build()
    return yard


def a_suspect(*, retries: int = 0) -> Yard:
    """2 was red upon 1, which is about to land."""
    yard = a_yard(prs=2, batch=2, test_retries=retries)
    for _ in range(retries + 1):
        yard.fails(1, 2)
        yard.build()
    yard.passes(1)
    return yard


def test_one_that_is_probed_waits_for_its_checks():
    assert a_search().waits(1) == a_wait(Reason.WAITING_FOR_CHECKS, checks=("unit",))


def test_one_that_is_not_probed_now_names_those_that_are():
    assert a_search().waits(4) == a_wait(Reason.BISECTION, 1, 2)


def test_one_whose_bisection_has_no_room_waits_for_a_slot():
    yard = a_yard(prs=4, batch=2, bisection_concurrency=1)
    yard.fails(1, 2)
    yard.build()
    yard.fails(3, 4)
    assert yard.waits(3) == a_wait(Reason.WAITING_FOR_SLOT)


def test_one_in_a_bisection_of_a_paused_queue_says_so():
    yard = a_search()
    order(yard, PAUSED)
    assert yard.waits(4) == a_wait(Reason.QUEUE_PAUSED)


def test_a_suspect_names_those_that_have_not_merged():
    assert a_suspect().waits(2) == a_wait(Reason.WAITING_FOR_PRS_AHEAD, 1)


def test_a_suspect_that_is_confirmed_waits_for_its_checks():
    yard = a_suspect()
    yard.perform_all()
    assert yard.waits(2) == a_wait(Reason.WAITING_FOR_CHECKS, checks=("unit",))


def test_a_suspect_whose_confirmation_has_no_room_waits_for_a_slot():
    yard = a_yard(prs=4, batch=2, bisection_concurrency=1)
    yard.fails(1, 2)
    yard.build()
    yard.fails(3, 4)
    yard.passes(1)
    yard.build()
    yard.passes(1)
    yard.perform_all()
    assert yard.waits(2) == a_wait(Reason.WAITING_FOR_SLOT)


def test_a_suspect_whose_confirmation_is_to_be_repeated_waits_for_a_slot():
    yard = a_yard(prs=4, batch=2, bisection_concurrency=2, test_retries=1)
    for _ in range(2):
        yard.fails(1, 2)
        yard.build()
    yard.passes(1)
    for _ in range(2):
        yard.fails(3, 4)
        yard.build()
    yard.passes(1)
    yard.perform_all()
    yard.tell(e.SettingsSaved(config=a_config(batch=2, bisection_concurrency=1, test_retries=1)))
    yard.fails(2)
    assert yard.waits(2) == a_wait(Reason.WAITING_FOR_SLOT)


def test_a_suspect_that_is_red_upon_an_unseen_base_waits_for_that():
    yard = a_suspect()
    yard.intend()
    order(yard, PAUSED)
    yard.perform(t.Land)
    yard.push_to_target({"other": "other"})
    yard.tell(e.TargetTouched())
    yard.perform(t.LookAtTarget)
    order(yard, RUNNING)
    yard.build()
    yard.fails(2)
    assert yard.waits(2) == a_wait(Reason.WAITING_FOR_BASE)
