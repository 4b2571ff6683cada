"""Which pull requests share a batch, and when a batch stops waiting for more."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import SubmissionId
from mergeyard.domain.pull_requests import ALL_TARGETS, NO_TARGETS, Submission, impacted_targets_from_names
from mergeyard.domain.states import CheckState
from mergeyard.domain.timestamps import MINUTE
from mergeyard.engine import batching
from tests.support.builders import a_config, a_parallel_world, a_plain_queue, a_submission, a_world
from tests.support.world.world import START_TIME


def formed(*waiting: Submission, batch: int = 2) -> tuple[tuple[int, ...], ...]:
    """The batches that are to start now, of these in parallel mode."""
    queue = a_plain_queue(*waiting, config=a_config(mode=Mode.PARALLEL, batch=batch))
    return batching.form_batches(queue, START_TIME).ready


# Size and time.


def test_without_batching_every_pr_is_a_batch_of_one():
    world = a_world(prs=3)
    assert world.queue_text == "main ← 1… ← 2… ← 3…"


def test_a_full_batch_starts_at_once():
    world = a_world(prs=2, batch=2)
    assert world.queue_text == "main ← 1+2…"


def test_a_batch_that_is_not_full_waits():
    world = a_world(prs=1, batch=2)
    assert world.queue_text == "main"


def test_no_batch_is_larger_than_its_size():
    world = a_world(prs=5, batch=2)
    assert world.queue_text == "main ← 1+2… ← 3+4…"


def test_a_batch_that_is_not_full_starts_when_its_oldest_waited_long_enough():
    world = a_world(prs=1, batch=3, batching_max_wait_time_minutes=5)
    world.advance_time(4 * MINUTE)
    world.submit(2)
    world.advance_time(MINUTE)
    assert world.queue_text == "main ← 1+2…"


def test_a_batch_that_is_not_full_does_not_start_before():
    world = a_world(prs=1, batch=3, batching_max_wait_time_minutes=5)
    world.advance_time(5 * MINUTE - 1)
    assert world.queue_text == "main"


def test_the_wait_begins_when_a_pr_is_admitted():
    world = a_world(batch=2, batching_max_wait_time_minutes=5)
    world.open_pull_request(1)
    world.change(1, draft=True)
    world.submit(1)
    world.advance_time(5 * MINUTE)
    world.change(1, draft=False)
    world.apply(world.observe_pull_request(1))
    assert world.queue_text == "main"


def test_neighbors_in_the_order_share_a_batch():
    world = a_world(batch=2, concurrency=1)
    world.submit(1, 2)
    world.submit(3)
    world.submit(4, priority=50)
    world.submit(5, priority=50)
    world.build()
    world.fails(1, 2)
    assert world.queue_text == "main ← 4+5… ⋔ 1+2 : 1…"


def test_the_batch_that_is_due_first_sets_wake_at():
    world = a_parallel_world("x", batch=2, batching_max_wait_time_minutes=5)
    world.advance_time(MINUTE)
    world.submit(2, impacted_targets=impacted_targets_from_names("y"))
    assert batching.form_batches(world.queue, world.now).next_ready_at == world.now + 4 * MINUTE


# Alone.


def test_a_no_batch_pr_is_a_batch_of_one():
    world = a_world(batch=2)
    world.submit(1, no_batch=True)
    assert world.queue_text == "main ← 1…"


def test_a_no_batch_pr_closes_the_batch_before_it_which_then_starts():
    world = a_world(prs=1, batch=3)
    world.submit(2, no_batch=True)
    assert world.queue_text == "main ← 1… ← 2…"


def test_no_pr_joins_a_no_batch_pr():
    world = a_world(batch=2)
    world.submit(1, no_batch=True)
    world.submit(2)
    assert world.queue_text == "main ← 1…"


def test_a_no_batch_pr_closes_all_batches_that_share_a_target_with_it():
    world = a_parallel_world("x", "y", batch=2)
    world.submit(3, impacted_targets=impacted_targets_from_names("x", "y"), no_batch=True)
    assert world.queue_text == "main ← 1… ∥ main ← 2… ∥ 1, 2 ← 3…"


def test_batches_that_are_closed_at_the_same_time_start_in_their_order():
    alone = replace(a_submission(3, impacted_targets=impacted_targets_from_names("x", "y")), no_batch=True)
    assert formed(
        a_submission(1, impacted_targets=impacted_targets_from_names("x")),
        a_submission(2, impacted_targets=impacted_targets_from_names("y")),
        alone,
    ) == ((1,), (2,))


def test_a_no_batch_pr_does_not_close_batches_that_share_no_target_with_it():
    alone = replace(a_submission(3, impacted_targets=impacted_targets_from_names("y")), no_batch=True)
    assert formed(
        a_submission(1, impacted_targets=impacted_targets_from_names("x")),
        a_submission(2, impacted_targets=impacted_targets_from_names("y")),
        alone,
    ) == ((2,),)


# In a run before.


def test_a_pr_that_was_in_a_run_before_does_not_wait_for_a_full_batch():
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    world.build()
    world.fails(1)
    assert (world.queue_text, world.submission(2).was_in_run) == ("main ← 2…", True)


def test_new_prs_can_join_a_pr_that_was_in_a_run_before():
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    world.build()
    world.open_pull_request(3)
    world.apply(world.build_submission(3), world.observe_result(CheckState.FAILED, 1))
    assert world.queue_text == "main ← 2+3…"


def test_prs_that_are_kept_together_form_a_batch_without_new_prs():
    world = a_world(prs=4, batch=4, concurrency=1)
    world.submit(5, 6, 7, 8)
    world.fails(1, 2, 3, 4)
    world.build()
    world.submit(9)
    world.passes(1, 2)
    world.fails(5, 6, 7, 8)
    world.build()
    assert world.queue_text == "main ← 1+2… ⋔ 3+4 : 1+2+3… ⋔ 5+6+7+8 : 5… 5+6… 5+6+7…"


def test_prs_that_are_kept_together_close_the_batch_before_them():
    reunited = [replace(a_submission(number), keep_together=(SubmissionId(2), SubmissionId(3))) for number in (2, 3)]
    assert formed(a_submission(1), *reunited, batch=3) == ((1,),)


def test_prs_that_are_kept_together_do_not_wait_for_a_batch_of_new_prs():
    world = a_world(prs=3, batch=3)
    world.submit(9, no_batch=True)
    world.build()
    world.fails(1, 2, 3)
    world.build()
    world.submit(4, priority=50)
    world.passes(1, 2)
    assert world.queue_text == "main ← 9… ← 1+2… ⋔ 3"


def test_prs_that_are_kept_together_keep_the_order_that_they_were_in():
    reunited = [replace(a_submission(number), keep_together=(SubmissionId(2), SubmissionId(1))) for number in (1, 2)]
    assert formed(*reunited) == ((2, 1),)


def test_prs_that_are_kept_together_keep_their_order_when_age_would_change_it():
    world = a_world(prs=1, batch=3, batching_max_wait_time_minutes=10_080)
    world.advance_time(59 * MINUTE)
    world.submit(2, priority=95)
    world.submit(3, priority=96)
    world.submit(9, no_batch=True)
    world.build()
    world.advance_time(2 * MINUTE)
    world.fails(2, 3, 1)
    world.build()
    world.cancel(3)
    assert world.queue_text == "main ← 9… ← 2+1…"


# Lanes.


def test_in_parallel_mode_only_prs_that_share_a_target_share_a_batch():
    assert (
        formed(
            a_submission(1, impacted_targets=impacted_targets_from_names("x")),
            a_submission(2, impacted_targets=impacted_targets_from_names("y")),
        )
        == ()
    )


def test_in_parallel_mode_prs_that_share_a_target_share_a_batch():
    assert formed(
        a_submission(1, impacted_targets=impacted_targets_from_names("x")),
        a_submission(2, impacted_targets=impacted_targets_from_names("x", "y")),
    ) == ((1, 2),)


def test_a_pr_can_join_a_batch_that_is_further_back():
    waiting = [
        a_submission(1, impacted_targets=impacted_targets_from_names("x")),
        a_submission(2, impacted_targets=impacted_targets_from_names("y")),
        a_submission(3, impacted_targets=impacted_targets_from_names("y")),
    ]
    assert formed(*waiting) == ((2, 3),)


def test_a_pr_that_impacts_everything_joins_any_batch():
    assert formed(
        a_submission(1, impacted_targets=impacted_targets_from_names("x")),
        a_submission(2, impacted_targets=ALL_TARGETS),
    ) == ((1, 2),)


def test_any_pr_joins_a_batch_that_impacts_everything():
    assert formed(a_submission(1, impacted_targets=ALL_TARGETS), a_submission(2, impacted_targets=NO_TARGETS)) == (
        (1, 2),
    )


def test_prs_that_impact_nothing_do_not_share_a_batch():
    assert formed(a_submission(1, impacted_targets=NO_TARGETS), a_submission(2, impacted_targets=NO_TARGETS)) == ()


def test_a_pr_that_depends_on_two_forming_batches_joins_neither():
    waiting = [
        a_submission(1, impacted_targets=impacted_targets_from_names("x")),
        a_submission(2, impacted_targets=impacted_targets_from_names("y")),
        a_submission(3, impacted_targets=impacted_targets_from_names("x", "y")),
    ]
    assert formed(*waiting) == ()


def test_batches_never_wait_for_each_other_in_a_circle():
    """A[x] B[y] C[xy] D[xy]: never [A,C] with [B,D]."""
    world = a_parallel_world("x", "y", "xy", "xy", batch=2, batching_max_wait_time_minutes=5)
    world.advance_time(5 * MINUTE)
    assert world.queue_text == "main ← 1… ∥ main ← 2… ∥ 1, 2 ← 3+4…"


def test_a_batch_that_depends_on_a_forming_batch_starts_after_it():
    """3 and 4 are a full batch, but 3 depends on 1 and 2, whose batch still waits to fill."""
    world = a_parallel_world("x", "y", "xy", "xy", batch=2, batching_max_wait_time_minutes=5)
    assert world.queue_text == "main"


@pytest.mark.parametrize("behind", range(1, 4))
def test_only_neighbors_are_searched_for_a_partner(behind: int):
    """The partner of the first is within the next few batches' worth, or is no neighbor."""
    between = [
        a_submission(2 + at, impacted_targets=impacted_targets_from_names(f"lane{at}")) for at in range(2 * behind)
    ]
    first, partner = (
        a_submission(1, impacted_targets=impacted_targets_from_names("x")),
        a_submission(99, impacted_targets=impacted_targets_from_names("x")),
    )
    expected = ((1, 99),) if 2 + 2 * behind <= 2 * batching.MAX_BATCHES_SCANNED else ()
    assert formed(first, *between, partner) == expected
