"""Every pull request names what it waits for; positions, shown runs and the text picture."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.queue import Obstacle
from mergeyard.domain.states import CheckState, Mergeability, PullRequestState, QueueState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import views
from mergeyard.engine.views import wait_reason
from tests.support.builders import (
    QueueWorld,
    a_config,
    a_failed_prefix_on_an_untested_tip,
    a_parallel_world,
    a_plain_queue,
    a_pull_request,
    a_submission,
    a_wait_reason,
    a_world,
)
from tests.support.world.world import START_TIME

PAUSED, DRAINING, RUNNING = QueueState.PAUSED, QueueState.DRAINING, QueueState.RUNNING


def a_world_with_a_pr_not_ready(**change: object) -> QueueWorld:
    world = a_world()
    world.open_pull_request(1)
    world.change(1, **change)
    world.submit(1)
    return world


def request_state(world: QueueWorld, state: QueueState) -> None:
    world.apply(e.StateRequested(state=state))


def switch(world: QueueWorld) -> None:
    world.apply(e.SettingsSaved(config=replace(world.queue.config, mode=Mode.PARALLEL)))


# Not ready.


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"base_branch": "elsewhere"}, Reason.BASE_BRANCH_MISMATCH),
        ({"draft": True}, Reason.DRAFT),
        ({"mergeability": Mergeability.NOT_MERGEABLE}, Reason.NOT_MERGEABLE),
        ({"mergeability": Mergeability.UNKNOWN}, Reason.MERGEABILITY_UNKNOWN),
        ({"mergeability": Mergeability.CHECKING}, Reason.MERGEABILITY_UNKNOWN),
    ],
)
def test_a_pr_that_is_not_ready_names_what_it_lacks(change: dict[str, object], reason: Reason):
    assert a_world_with_a_pr_not_ready(**change).wait_reason(1) == a_wait_reason(reason)


def test_a_pr_that_waits_for_a_maintainer_names_the_guarded_paths():
    waits = a_world_with_a_pr_not_ready(fork=True, guarded_paths=("ci.yml", "Makefile")).wait_reason(1)
    assert (waits.reason, waits.paths) == (Reason.WAITING_FOR_MAINTAINER, ("ci.yml", "Makefile"))


def test_a_pr_without_impacted_targets_has_that_wait_reason():
    world = a_parallel_world()
    world.submit(1)
    assert world.wait_reason(1) == a_wait_reason(Reason.MISSING_IMPACTED_TARGETS)


@pytest.mark.parametrize(("state", "reason"), [(PAUSED, Reason.QUEUE_PAUSED), (DRAINING, Reason.QUEUE_DRAINING)])
def test_a_ready_pr_names_why_it_is_not_admitted(state: QueueState, reason: Reason):
    world = a_world()
    request_state(world, state)
    world.submit(1)
    assert world.wait_reason(1) == a_wait_reason(reason)


def test_a_ready_pr_names_that_modes_switch():
    world = a_world(prs=1)
    switch(world)
    world.submit(2)
    world.apply(
        e.ImpactedTargetsUploaded(
            number=PullRequestNumber(2),
            head=world.head(2),
            impacted_targets=world.queue.active.batches[0].impacted_targets,
        )
    )
    assert world.wait_reason(2) == a_wait_reason(Reason.SWITCHING_MODES)


def test_what_a_pr_lacks_comes_before_the_state_of_the_queue():
    world = a_world_with_a_pr_not_ready(draft=True)
    request_state(world, PAUSED)
    assert world.wait_reason(1) == a_wait_reason(Reason.DRAFT)


def test_a_pr_that_lacks_nothing_is_ready():
    submission = a_submission(1, state=PullRequestState.NOT_READY)
    assert wait_reason(a_plain_queue(submission), submission, submission.submitted_at) == a_wait_reason(Reason.READY)


# Held.


def test_a_held_pr_names_the_reason_and_its_blockers():
    world = a_world_with_a_pr_not_ready(draft=True)
    world.submit(2, stacked_on=1)
    assert world.wait_reason(2) == a_wait_reason(Reason.WAITING_FOR_PRS_AHEAD, 1)


def test_blockers_that_left_are_not_named():
    world = a_world(prs=1)
    world.open_pull_request(2, {"file1": "otherwise"})
    world.submit(2)
    world.build()
    gone = replace(world.queue, submissions=world.queue.submissions.drop(world.submission_id(1)))
    assert wait_reason(gone, world.submission(2), world.now) == a_wait_reason(Reason.CONFLICTS_WITH_PR_AHEAD)


# No target branch or host.


def test_without_a_target_branch_every_pr_has_that_wait_reason():
    world = a_world(prs=1)
    world.apply(
        e.TargetBranchObserved(
            tip=None, observed_at_revision=world.queue.counters.revision, required_statuses=world.host.required_statuses
        )
    )
    assert world.wait_reason(1) == a_wait_reason(Reason.TARGET_BRANCH_MISSING)


def test_while_the_host_refuses_every_pr_has_that_wait_reason_with_its_text():
    world = a_world(prs=1)
    world.apply(e.HostRefusing(detail="403: no access"))
    assert world.wait_reason(1) == a_wait_reason(Reason.PROVIDER_REFUSED, detail="403: no access")
    world.apply(e.ServerFailing())
    assert world.wait_reason(1) == a_wait_reason(Reason.SERVER_FAILURE)


def test_a_pr_whose_read_alone_is_refused_is_the_only_one_with_that_reason():
    world = a_world(prs=2)
    world.apply(e.HostRefusing(detail="403", number=PullRequestNumber(2)))
    assert world.wait_reason(1).reason is Reason.WAITING_FOR_CHECKS
    assert world.wait_reason(2).reason is Reason.PROVIDER_REFUSED


def test_a_pr_that_the_queue_cannot_read_says_why_instead_of_that_no_action_is_needed():
    unread = a_pull_request(1, mergeability=Mergeability.CHECKING)
    submission = a_submission(1, state=PullRequestState.NOT_READY, pull_request=unread)
    obstacle = Obstacle(reason=Reason.PROVIDER_REFUSED, since=submission.submitted_at, detail="403")
    queue = replace(a_plain_queue(submission), obstacle=obstacle)
    shown = wait_reason(queue, submission, submission.submitted_at)
    assert shown == a_wait_reason(Reason.PROVIDER_REFUSED, detail="403")


def test_while_the_host_refuses_a_branch_that_was_never_read_does_not_count_as_missing():
    world = a_world(prs=1)
    world.queue = replace(world.queue, target_branch=replace(world.queue.target_branch, tip=None))
    world.apply(e.HostRefusing(detail="403"))
    assert world.wait_reason(1).reason is Reason.PROVIDER_REFUSED


def test_while_the_host_is_unreachable_every_pr_has_that_wait_reason():
    world = a_world(prs=1)
    world.apply(e.HostUnreachable())
    assert world.wait_reason(1) == a_wait_reason(Reason.PROVIDER_UNAVAILABLE)


def test_while_the_host_limits_requests_every_pr_has_that_wait_reason_with_the_time():
    world = a_world(prs=1)
    world.apply(e.HostLimiting(until=Instant(7)))
    assert world.wait_reason(1) == a_wait_reason(Reason.RATE_LIMITED, until=Instant(7))


def test_while_only_reads_wait_for_the_host_what_was_read_has_its_own_wait_reason():
    unread = a_pull_request(2, mergeability=Mergeability.CHECKING)
    submission = a_submission(2, state=PullRequestState.NOT_READY, pull_request=unread)
    obstacle = Obstacle(reason=Reason.RATE_LIMITED, since=submission.submitted_at, until=Instant(7), only_waiting=True)
    queue = replace(a_plain_queue(submission), obstacle=obstacle)
    shown = wait_reason(queue, submission, submission.submitted_at)
    assert shown == a_wait_reason(Reason.RATE_LIMITED, until=Instant(7))
    world = a_world(prs=1)
    world.apply(e.HostLimiting(until=Instant(7), only_waiting=True))
    assert world.wait_reason(1).reason is Reason.WAITING_FOR_CHECKS


# Among the waiting.


def test_a_pr_that_waits_for_a_slot_has_that_wait_reason():
    assert a_world(prs=2, concurrency=1).wait_reason(2) == a_wait_reason(Reason.WAITING_FOR_SLOT)


def test_a_pr_that_waits_for_its_batch_to_fill_has_that_wait_reason():
    assert a_world(prs=1, batch=2).wait_reason(1) == a_wait_reason(Reason.WAITING_FOR_BATCH)


def test_a_pr_that_waits_in_a_paused_queue_has_that_wait_reason():
    world = a_world(prs=2, concurrency=1)
    request_state(world, PAUSED)
    assert world.wait_reason(2) == a_wait_reason(Reason.QUEUE_PAUSED)


def test_a_pr_that_waits_while_modes_switch_has_that_wait_reason():
    world = a_world(prs=2, concurrency=1)
    switch(world)
    assert world.wait_reason(2) == a_wait_reason(Reason.SWITCHING_MODES)


# In an active batch.


def test_a_pr_under_test_names_the_statuses_that_have_not_reported():
    world = a_world(prs=1, required_statuses=("lint", "unit", "e2e"))
    world.apply(world.observe_checks(world.run_of(1), {"lint": CheckState.PASSED, "unit": CheckState.PENDING}))
    assert world.wait_reason(1) == a_wait_reason(Reason.WAITING_FOR_CHECKS, checks=("unit", "e2e"))


def test_a_pr_whose_run_is_being_built_waits_for_all_its_statuses():
    world = a_world()
    world.submit(1)
    assert world.wait_reason(1) == a_wait_reason(Reason.WAITING_FOR_CHECKS, checks=("unit",))


def test_a_pr_in_an_active_batch_without_a_run_waits_for_a_slot():
    world = a_world(prs=1, concurrency=1)
    world.submit(2, priority=0)
    assert world.wait_reason(1) == a_wait_reason(Reason.WAITING_FOR_SLOT)


def test_a_pr_whose_failed_run_is_to_be_repeated_waits_for_a_slot():
    world = a_world(prs=2, test_retries=1)
    world.apply(e.SettingsSaved(config=a_config(test_retries=1, concurrency=1)))
    world.fails(2)
    assert world.wait_reason(2) == a_wait_reason(Reason.WAITING_FOR_SLOT)


def test_a_pr_in_an_active_batch_of_a_paused_queue_has_that_wait_reason():
    world = a_world(prs=1)
    request_state(world, PAUSED)
    world.fails(1)
    assert world.wait_reason(1) == a_wait_reason(Reason.QUEUE_PAUSED)


def test_a_pr_that_failed_behind_others_names_them():
    world = a_world(prs=3)
    world.fails(3)
    assert world.wait_reason(3) == a_wait_reason(Reason.WAITING_FOR_PRS_AHEAD, 1, 2)


def test_a_failed_pr_ahead_of_others_under_test_names_them():
    world = a_world(prs=2, depth=1)
    world.fails(1)
    assert world.wait_reason(1) == a_wait_reason(Reason.WAITING_FOR_PRS_BEHIND, 2)


def test_a_failed_pr_names_only_the_prs_within_the_depth():
    world = a_world(prs=3, depth=1)
    world.fails(1)
    assert world.wait_reason(1) == a_wait_reason(Reason.WAITING_FOR_PRS_BEHIND, 2)


def test_a_pr_that_failed_on_an_untested_base_waits_for_the_base_run():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    assert world.wait_reason(1) == a_wait_reason(Reason.WAITING_FOR_BASE)


# Passed.


def test_a_pr_that_passed_behind_others_names_them():
    world = a_world(prs=2)
    world.passes(2)
    assert world.wait_reason(2) == a_wait_reason(Reason.WAITING_FOR_PRS_AHEAD, 1)


def test_a_pr_that_is_about_to_land_says_how_it_passed():
    world = a_world(prs=1)
    world.passes(1)
    assert world.wait_reason(1) == a_wait_reason(Reason.TEST_RUN_PASSED)


def test_a_pr_that_was_cleared_and_is_about_to_land_says_how_it_passed():
    world = a_world(prs=2, depth=0)
    world.passes(2)
    assert world.wait_reason(1) == a_wait_reason(Reason.SUCCESSOR_PASSED)


def test_a_pr_that_passed_in_a_paused_queue_has_that_wait_reason():
    world = a_world(prs=1)
    request_state(world, PAUSED)
    world.passes(1)
    assert world.wait_reason(1) == a_wait_reason(Reason.QUEUE_PAUSED)


def test_a_pr_that_passed_while_another_lane_lands_waits_for_that():
    world = a_parallel_world("x", "y")
    world.passes(1)
    world.passes(2)
    assert world.wait_reason(2) == a_wait_reason(Reason.WAITING_FOR_PRS_AHEAD, 1)


def test_a_pr_that_passed_while_the_target_branch_is_read_says_how_it_passed():
    world = a_world(prs=1)
    world.apply(e.TargetBranchDirty())
    world.passes(1)
    assert world.wait_reason(1) == a_wait_reason(Reason.TEST_RUN_PASSED)


# In a bisection.


def a_bisection_world(budget: int = 1) -> QueueWorld:
    world = a_world(prs=4, batch=4, bisection_concurrency=budget)
    world.fails(1, 2, 3, 4)
    world.build()
    return world


def a_world_with_a_suspect(*, retries: int = 0) -> QueueWorld:
    """2 failed on top of 1, which is about to land."""
    world = a_world(prs=2, batch=2, test_retries=retries)
    for _ in range(retries + 1):
        world.fails(1, 2)
        world.build()
    world.passes(1)
    return world


def test_a_pr_that_is_probed_waits_for_its_checks():
    assert a_bisection_world().wait_reason(1) == a_wait_reason(Reason.WAITING_FOR_CHECKS, checks=("unit",))


def test_a_pr_that_is_not_probed_now_names_the_prs_that_are():
    assert a_bisection_world().wait_reason(4) == a_wait_reason(Reason.BISECTION, 1, 2)


def test_a_pr_whose_bisection_has_no_room_waits_for_a_slot():
    world = a_world(prs=4, batch=2, bisection_concurrency=1)
    world.fails(1, 2)
    world.build()
    world.fails(3, 4)
    assert world.wait_reason(3) == a_wait_reason(Reason.WAITING_FOR_SLOT)


def test_a_pr_in_a_bisection_of_a_paused_queue_has_that_wait_reason():
    world = a_bisection_world()
    request_state(world, PAUSED)
    assert world.wait_reason(4) == a_wait_reason(Reason.QUEUE_PAUSED)


def test_a_suspect_names_the_prs_that_have_not_merged():
    assert a_world_with_a_suspect().wait_reason(2) == a_wait_reason(Reason.WAITING_FOR_PRS_AHEAD, 1)


def test_a_suspect_in_its_confirming_run_waits_for_its_checks():
    world = a_world_with_a_suspect()
    world.perform_pending_tasks()
    assert world.wait_reason(2) == a_wait_reason(Reason.WAITING_FOR_CHECKS, checks=("unit",))


def test_a_suspect_whose_confirming_run_has_no_room_waits_for_a_slot():
    world = a_world(prs=4, batch=2, bisection_concurrency=1)
    world.fails(1, 2)
    world.build()
    world.fails(3, 4)
    world.passes(1)
    world.build()
    world.passes(1)
    world.perform_pending_tasks()
    assert world.wait_reason(2) == a_wait_reason(Reason.WAITING_FOR_SLOT)


def test_a_suspect_whose_confirming_run_is_to_be_repeated_waits_for_a_slot():
    world = a_world(prs=4, batch=2, bisection_concurrency=2, test_retries=1)
    for _ in range(2):
        world.fails(1, 2)
        world.build()
    world.passes(1)
    for _ in range(2):
        world.fails(3, 4)
        world.build()
    world.passes(1)
    world.perform_pending_tasks()
    world.apply(e.SettingsSaved(config=a_config(batch=2, bisection_concurrency=1, test_retries=1)))
    world.fails(2)
    assert world.wait_reason(2) == a_wait_reason(Reason.WAITING_FOR_SLOT)


def test_a_suspect_that_failed_on_an_untested_base_waits_for_the_base_run():
    world = a_world_with_a_suspect()
    world.save_landing_intent()
    request_state(world, PAUSED)
    world.perform(t.Land)
    world.push_to_target_branch({"other": "other"})
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    request_state(world, RUNNING)
    world.build()
    world.fails(2)
    assert world.wait_reason(2) == a_wait_reason(Reason.WAITING_FOR_BASE)


PRIORITIES = st.sampled_from([1, 5, 50, 95, 100])
WAITING = st.lists(st.tuples(PRIORITIES, st.integers(0, 400)), max_size=25)
"""A priority and how many minutes ago it was submitted."""

modestly = settings(deadline=None, max_examples=80, derandomize=True)


@pytest.fixture(scope="module")
def world() -> QueueWorld:
    """3 and 4 in active batches, 1 and 2 in a bisection, 8 and 7 waiting, 6 held behind 5, and 5 not ready."""
    world = a_world(prs=2, batch=2, concurrency=1)
    world.fails(1, 2)
    world.open_pull_request(5)
    world.change(5, draft=True)
    world.submit(5)
    world.submit(6, stacked_on=5, no_batch=True)
    world.submit(3, 4)
    world.submit(7)
    world.submit(8, priority=50)
    world.build()
    return world


def test_the_order_is_active_batches_bisections_waiting_held_not_ready(world: QueueWorld):
    assert [each.number for each in views.enqueued_submissions(world.queue, world.now)] == [3, 4, 1, 2, 8, 7, 6, 5]


def test_a_position_counts_the_prs_before(world: QueueWorld):
    admitted = [
        each
        for each in views.enqueued_submissions(world.queue, world.now)
        if each.state is not PullRequestState.NOT_READY
    ]
    assert [views.position(world.queue, each, world.now) for each in admitted] == [1, 2, 3, 4, 5, 6, 7]


def test_a_pr_that_is_not_ready_has_no_position(world: QueueWorld):
    assert views.position(world.queue, world.submission(5), world.now) is None


@modestly
@given(WAITING)
def test_a_position_among_the_waiting_is_the_place_in_their_order(waiting: list[tuple[int, int]]):
    oldest_first = sorted(waiting, key=lambda entry: -entry[1])
    queue = a_plain_queue(
        *(
            a_submission(number, priority=priority, minutes_ago=minutes)
            for number, (priority, minutes) in enumerate(oldest_first, 1)
        )
    )
    submissions = list(views.enqueued_submissions(queue, START_TIME))
    assert [views.position(queue, each, START_TIME) for each in submissions] == list(range(1, len(submissions) + 1))


def test_a_pull_request_shows_its_own_run(world: QueueWorld):
    assert views.displayed_run(world.queue, world.submission(3)) == world.run_of(3, 4).id


def test_a_pr_that_was_never_in_a_run_shows_none(world: QueueWorld):
    assert views.displayed_run(world.queue, world.submission(7)) is None


def test_a_pr_that_waits_for_the_base_shows_the_base_run():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    world.build()
    assert views.displayed_run(world.queue, world.submission(1)) == world.run_of().id


def test_every_pr_that_waits_for_the_base_shows_the_base_run():
    world = a_parallel_world("x", "y", base_passed=False)
    world.fails(1)
    world.fails(2)
    world.build()
    assert [views.displayed_run(world.queue, world.submission(number)) for number in (1, 2)] == [world.run_of().id] * 2


def test_a_pr_that_failed_alone_in_a_bisection_shows_the_base_run():
    world = a_failed_prefix_on_an_untested_tip()
    assert views.displayed_run(world.queue, world.submission(3)) == world.run_of().id


def test_a_pr_that_does_not_wait_for_the_base_shows_its_own_run():
    world = a_world(prs=2, base_passed=False)
    world.fails(1)
    world.build()
    assert views.displayed_run(world.queue, world.submission(2)) == world.run_of(2).id


def test_a_base_run_that_is_not_built_yet_is_not_shown():
    world = a_world(prs=1, base_passed=False)
    failed_run = world.run_of(1)
    world.fails(1)
    assert views.displayed_run(world.queue, world.submission(1)) == failed_run.id


def test_a_pr_that_failed_behind_others_shows_its_own_run():
    world = a_world(prs=2)
    world.fails(2)
    assert views.displayed_run(world.queue, world.submission(2)) == world.run_of(2).id


def test_an_empty_queue_shows_only_its_target_branch():
    assert (a_world().queue_text, a_parallel_world().queue_text) == ("main", "main")


def test_a_batch_under_test_has_dots():
    assert a_world(prs=2, batch=2).queue_text == "main ← 1+2…"


def test_a_batch_whose_run_is_being_built_has_dots():
    world = a_world()
    world.submit(1)
    assert world.queue_text == "main ← 1…"


def test_a_batch_that_passed_has_a_tick():
    world = a_world(prs=2)
    world.passes(2)
    assert world.queue_text == "main ← 1… ← 2✓"


def test_a_batch_that_a_run_behind_cleared_has_a_tick():
    world = a_world(prs=2, depth=0)
    world.passes(2)
    assert world.queue_text == "main ← 1✓ ← 2✓"


def test_a_batch_in_pending_failure_has_a_cross():
    world = a_world(prs=2)
    world.fails(2)
    assert world.queue_text == "main ← 1… ← 2✗"


def test_a_batch_without_a_run_has_no_mark():
    world = a_world(prs=1, concurrency=1)
    world.submit(2, priority=0)
    assert world.queue_text == "main ← 2… ← 1"


def test_a_batch_that_is_to_be_restarted_has_no_mark():
    world = a_world(prs=1)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.restart(1)
    assert world.queue_text == "main ← 1"


def test_a_failed_batch_that_is_to_be_repeated_has_dots():
    world = a_world(prs=2, test_retries=1)
    world.apply(e.SettingsSaved(config=a_config(test_retries=1, concurrency=1)))
    world.fails(2)
    assert world.queue_text == "main ← 1… ← 2…"


def test_in_parallel_mode_every_batch_names_what_it_depends_on():
    assert a_parallel_world("x", "y", "xy").queue_text == "main ← 1… ∥ main ← 2… ∥ 1, 2 ← 3…"


def test_a_base_run_has_a_question_mark():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    assert world.queue_text == "main ← 1✗ ?"


def test_a_bisection_shows_the_prefixes_that_it_tests():
    world = a_world(prs=4, batch=4, bisection_concurrency=2)
    world.fails(1, 2, 3, 4)
    assert world.queue_text == "main ⋔ 1+2+3+4 : 1+2… 1+2+3…"


def test_a_bisection_does_not_show_probes_that_failed():
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    world.build()
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.fails(1)
    assert world.queue_text == "main ⋔ 1+2"


def test_a_suspect_is_shown_alone():
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    world.build()
    world.passes(1)
    assert world.queue_text == "main ← 1✓ ⋔ 2"
