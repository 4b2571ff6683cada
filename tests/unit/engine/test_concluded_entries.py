"""A pull request that leaves is removed from every part of the queue."""

import pytest

from mergeyard.domain import events as e
from mergeyard.domain.ids import PullRequestNumber, SubmissionId
from mergeyard.domain.states import IllegalTransition, PullRequestState, Reason
from mergeyard.engine import entries
from tests.support.builders import QueueWorld, a_plain_queue, a_submission, a_world
from tests.support.world.world import START_TIME

ONE = SubmissionId(1)


def test_a_pr_that_left_is_in_no_part_of_the_queue():
    queue = entries.conclude_submission(
        a_plain_queue(a_submission(1)), ONE, PullRequestState.CANCELLED, Reason.CANCELLED_BY_USER, START_TIME
    )
    assert (len(queue.submissions), len(queue.submission_by_number), queue.waiting) == (0, 0, {})


def test_a_pr_that_left_is_no_longer_read():
    world = a_world(prs=1)
    world.apply(e.PullRequestDirty(number=PullRequestNumber(1)))
    world.cancel(1)
    assert not world.queue.refresh_requested


def test_a_submission_ends_with_its_reason():
    queue = entries.conclude_submission(
        a_plain_queue(a_submission(1)),
        ONE,
        PullRequestState.FAILED,
        Reason.TEST_RUN_FAILED,
        START_TIME,
        stacked_on=(PullRequestNumber(7),),
        detail="it broke",
    )
    (gone,) = queue.output.concluded_submissions.values()
    assert (gone.state, gone.reason, gone.stacked_on, gone.detail) == (
        *(PullRequestState.FAILED, Reason.TEST_RUN_FAILED),
        *((7,), "it broke"),
    )


def test_the_journal_names_the_prs_that_the_failed_pr_was_stacked_on():
    queue = entries.conclude_submission(
        a_plain_queue(a_submission(1)),
        ONE,
        PullRequestState.FAILED,
        Reason.TEST_RUN_FAILED,
        START_TIME,
        stacked_on=(PullRequestNumber(7),),
    )
    (entry,) = queue.output.journal.values()
    assert (entry.reason, getattr(entry, "stacked_on", None)) == (Reason.TEST_RUN_FAILED, (7,))


def test_no_pr_leaves_for_a_reason_that_is_not_in_the_table():
    with pytest.raises(IllegalTransition):
        entries.conclude_submission(
            a_plain_queue(a_submission(1)), ONE, PullRequestState.MERGED, Reason.MERGED_BY_QUEUE, START_TIME
        )


def a_bisection_world(budget: int = 1) -> QueueWorld:
    """A bisection of 1, 2, 3 and 4, with 9 in an active batch, so that nothing lands as tested."""
    world = a_world(prs=4, batch=4, bisection_concurrency=budget)
    world.submit(9, no_batch=True)
    world.build()
    world.fails(1, 2, 3, 4)
    world.build()
    return world


def test_when_a_member_leaves_the_rest_is_tested_again_together():
    world = a_bisection_world()
    world.cancel(3)
    assert (world.reason(1), world.queue_text) == (Reason.BATCHMATE_REMOVED, "main ← 9… ← 1+2+4…")


def test_when_a_pr_of_the_passed_prefix_leaves_without_merging_the_bisection_is_aborted():
    world = a_bisection_world()
    world.passes(1, 2)
    world.build()
    world.cancel(1)
    assert world.queue.bisections == ()


def test_when_a_pr_of_the_passed_prefix_merges_the_bisection_goes_on():
    world = a_bisection_world()
    world.passes(1, 2)
    world.build()
    world.change(1, is_open=False, merged_into="main")
    world.apply(world.observe_pull_request(1))
    (bisection,) = world.queue.bisections
    assert bisection.merged_submission_ids == {SubmissionId(1)}


def test_when_a_pr_that_is_not_in_the_passed_prefix_is_merged_by_hand_the_bisection_is_aborted():
    world = a_bisection_world()
    world.change(4, is_open=False, merged_into="main")
    world.apply(world.observe_pull_request(4))
    assert (world.state(4), world.queue.bisections) == (PullRequestState.MERGED, ())


def test_when_a_pr_from_behind_the_failed_prefix_leaves_the_bisection_goes_on():
    world = a_bisection_world()
    world.fails(1, 2)
    world.cancel(4)
    assert len(world.queue.bisections) == 1


def test_when_the_suspect_leaves_the_bisection_is_over():
    world = a_bisection_world()
    world.passes(1, 2)
    world.build()
    world.fails(1, 2, 3)
    world.cancel(3)
    assert world.queue.bisections == ()


def test_only_members_are_found_in_a_bisection():
    world = a_bisection_world()
    world.passes(1, 2)
    found = [entries.bisection_of(world.queue, world.submission_id(number)) is not None for number in (1, 2, 3, 4, 9)]
    assert found == [False, False, True, True, False]


def test_an_update_that_changes_nothing_returns_the_same_queue():
    queue = a_bisection_world().queue
    assert entries.update_bisection(queue, queue.bisections[0]) is queue
