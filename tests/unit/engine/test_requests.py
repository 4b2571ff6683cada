"""What users can request for a pull request: submit, cancel, restart, set impacted targets."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.journal import PullRequestChanged
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.domain.states import Mergeability, PullRequestState, QueueState, Reason, Refusal, RunStatus
from mergeyard.engine.decide import decide
from tests.support.builders import QueueWorld, a_config, a_parallel_world, a_world


def a_full_world(*waiting: int) -> QueueWorld:
    """The only slot is taken by pull request 9, and these wait."""
    world = a_world(concurrency=1)
    world.submit(9)
    world.build()
    world.submit(*waiting)
    return world


def a_world_with_an_intended_landing() -> QueueWorld:
    world = a_world(prs=1)
    world.passes(1)
    world.save_landing_intent()
    return world


def buckets(world: QueueWorld) -> dict[int, list[int]]:
    return {priority: list(bucket) for priority, bucket in world.queue.waiting.items()}


# Submitting.


def test_what_was_not_given_takes_the_default():
    world = a_full_world(1)
    submission = world.submission(1)
    assert (
        submission.priority,
        submission.priority_is_default,
        submission.no_batch,
        submission.forced,
        submission.head_pinned,
    ) == (
        *(100, True),
        *(False, False, False),
    )


def test_a_priority_that_was_given_is_no_default():
    world = a_full_world()
    world.submit(1, priority=100)
    assert not world.submission(1).priority_is_default


def test_submission_ids_follow_the_order_of_submission():
    world = a_full_world(5, 3)
    assert (world.submission_id(5), world.submission_id(3)) == (2, 3)


def test_the_journal_names_who_submitted():
    world = a_world()
    world.open_pull_request(1)
    entry = world.apply(replace(world.build_submission(1), actor="ann")).journal[0]
    assert isinstance(entry, PullRequestChanged)
    assert (entry.source, entry.actor) == (None, "ann")


def test_submitting_again_keeps_the_submission():
    world = a_full_world(1)
    submission_id = world.submission_id(1)
    world.submit(1, priority=7)
    assert world.submission_id(1) == submission_id


def test_submitting_again_changes_only_what_was_given():
    world = a_full_world()
    world.submit(1, priority=7, no_batch=True, forced=True)
    world.submit(1)
    submission = world.submission(1)
    assert (submission.priority, submission.no_batch, submission.forced) == (7, True, True)


def test_submitting_again_changes_what_was_given():
    world = a_full_world()
    world.submit(1, priority=7, no_batch=True, forced=True)
    world.submit(1, priority=8, no_batch=False, forced=False)
    submission = world.submission(1)
    assert (submission.priority, submission.no_batch, submission.forced) == (8, False, False)


def test_submitting_again_by_force_admits():
    world = a_full_world()
    world.open_pull_request(1)
    world.change(1, mergeability=Mergeability.UNKNOWN)
    world.submit(1)
    world.submit(1, forced=True)
    assert world.state(1) is PullRequestState.PENDING


def test_force_and_an_approval_of_a_maintainer_are_for_the_head_that_was_read():
    """The queue can know a newer head when the request arrives."""
    world = a_full_world()
    world.open_pull_request(1)
    world.change(1, mergeability=Mergeability.UNKNOWN)
    world.submit(1)
    late = replace(world.build_submission(1), forced=True, by_maintainer=True)
    world.change(1, head=world.repository.commit((world.head(1),), {"more": "more"}, "a push"))
    world.apply(world.observe_pull_request(1))
    world.apply(late)
    submission = world.submission(1)
    assert submission.pull_request.head == world.head(1)
    assert (submission.forced, submission.by_maintainer) == (False, False)
    assert reads_the_first(world)


def test_a_pinned_head_stays_pinned():
    world = a_full_world(1)
    world.apply(replace(world.build_submission(1), head_pinned=True))
    world.submit(1)
    assert world.submission(1).head_pinned


def test_submitting_with_a_new_head_starts_a_new_submission():
    world = a_world(prs=1)
    world.change(1, head=world.repository.commit((world.head(1),), {"more": "more"}, "a push"))
    world.submit(1)
    assert [(each.number, each.state, each.reason) for each in world.concluded_submissions.values()] == [
        (1, PullRequestState.CANCELLED, Reason.PR_PUSHED)
    ]
    assert (world.submission_id(1), world.state(1)) == (2, PullRequestState.PENDING)


def reads_the_first(world: QueueWorld) -> bool:
    return world.pending_tasks(t.ReadPullRequest) == (t.ReadPullRequest(number=PullRequestNumber(1)),)


@pytest.mark.parametrize("complete", [True, False])
def test_a_pr_that_was_submitted_without_a_merge_check_is_read(complete: bool):
    world = a_full_world()
    world.open_pull_request(1)
    world.apply(replace(world.build_submission(1), merge_checked=complete))
    assert reads_the_first(world) is not complete


def test_a_pr_that_was_submitted_again_without_a_merge_check_is_read():
    world = a_full_world(1)
    world.apply(replace(world.build_submission(1), merge_checked=False))
    assert reads_the_first(world)


def test_in_parallel_mode_a_pr_without_impacted_targets_is_read():
    world = a_parallel_world()
    world.submit(1)
    assert reads_the_first(world)


def test_in_parallel_mode_a_pr_with_impacted_targets_is_not_read():
    world = a_parallel_world("x")
    assert not reads_the_first(world)


CLOSED: list[tuple[dict[str, object], Refusal]] = [
    ({"is_open": False}, Refusal.PR_CLOSED),
    ({"is_open": False, "merged_into": "main"}, Refusal.PR_ALREADY_MERGED),
    ({"is_open": False, "merged_into": "elsewhere"}, Refusal.PR_ALREADY_MERGED),
    ({"is_in_target_branch": True}, Refusal.PR_ALREADY_MERGED),
]


@pytest.mark.parametrize(("change", "refusal"), CLOSED)
def test_a_closed_or_merged_pr_cannot_be_submitted(change: dict[str, object], refusal: Refusal):
    world = a_world()
    world.open_pull_request(1)
    submission = world.build_submission(1)
    decision = world.apply(replace(submission, pull_request=replace(submission.pull_request, **change)))
    assert (decision.refusals, world.queue.submission_of(PullRequestNumber(1))) == ({0: refusal}, None)


@pytest.mark.parametrize(
    ("change", "end"),
    [
        ({"is_open": False}, (PullRequestState.CANCELLED, Reason.PR_CLOSED)),
        ({"is_open": False, "merged_into": "main"}, (PullRequestState.MERGED, Reason.MERGED_MANUALLY)),
        ({"is_in_target_branch": True}, (PullRequestState.MERGED, Reason.MERGED_MANUALLY)),
    ],
)
def test_submitting_again_a_closed_or_merged_pr_ends_its_submission_and_starts_no_other(
    change: dict[str, object], end: tuple[PullRequestState, Reason]
):
    world = a_world(prs=1)
    submission = world.build_submission(1)
    decision = world.apply(replace(submission, pull_request=replace(submission.pull_request, **change)))
    assert (decision.refusals, world.queue.submission_of(PullRequestNumber(1))) == ({}, None)
    assert (world.state(1), world.reason(1)) == end


def test_submitting_with_an_outdated_observation_keeps_what_is_known():
    world = a_world()
    world.open_pull_request(1)
    world.change(1, mergeability=Mergeability.UNKNOWN)
    outdated = world.build_submission(1)
    world.submit(1)
    world.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    world.apply(world.observe_pull_request(1))
    world.apply(replace(outdated, priority=7))
    submission = world.submission(1)
    assert (submission.pull_request.mergeability, submission.priority) == (Mergeability.NOT_MERGEABLE, 7)


def test_impacted_targets_given_with_a_submission_count():
    world = a_parallel_world()
    world.submit(1, impacted_targets=impacted_targets_from_names("x"))
    assert world.submission(1).impacted_targets == impacted_targets_from_names("x")


def test_impacted_targets_given_when_submitting_again_count():
    world = a_parallel_world()
    world.submit(1)
    world.submit(1, impacted_targets=impacted_targets_from_names("x"))
    assert (world.submission(1).impacted_targets, world.state(1)) == (
        impacted_targets_from_names("x"),
        PullRequestState.PENDING,
    )


def an_outdated_submission_with_targets(world: QueueWorld) -> e.PullRequestSubmitted:
    """Its observation of the pull request began before the last one was recorded."""
    world.open_pull_request(1)
    world.change(1, mergeability=Mergeability.UNKNOWN)
    outdated = world.build_submission(1, impacted_targets=impacted_targets_from_names("x"))
    world.submit(1)
    return outdated


def test_impacted_targets_given_with_an_outdated_observation_of_the_same_head_count():
    world = a_parallel_world()
    outdated = an_outdated_submission_with_targets(world)
    world.change(1, mergeability=Mergeability.MERGEABLE)
    world.apply(world.observe_pull_request(1))
    world.apply(outdated)
    assert world.submission(1).impacted_targets == impacted_targets_from_names("x")


def test_impacted_targets_given_with_an_outdated_observation_of_another_head_do_not_count():
    world = a_parallel_world()
    outdated = an_outdated_submission_with_targets(world)
    world.change(1, head=world.repository.commit((world.head(1),), {"more": "more"}, "a push"))
    world.apply(world.observe_pull_request(1))
    world.apply(outdated)
    assert world.submission(1).impacted_targets is None


def test_from_intent_to_outcome_submitting_again_changes_nothing():
    world = a_world_with_an_intended_landing()
    before = world.submission(1)
    world.submit(1, priority=0, no_batch=True)
    assert world.submission(1) == before


# Priorities.


def test_a_new_priority_moves_a_waiting_pr():
    world = a_full_world(1, 2)
    world.submit(2, priority=50)
    assert buckets(world) == {100: [world.submission_id(1)], 50: [world.submission_id(2)]}


def test_a_new_priority_does_not_change_the_active_batches():
    world = a_world(prs=3)
    world.submit(3, priority=1)
    assert world.queue_text == "main ← 1… ← 2… ← 3…"


def test_a_new_priority_of_a_pr_in_an_active_batch_counts_when_it_waits_again():
    world = a_world(prs=2, batch=2, concurrency=1)
    world.submit(2, priority=7)
    world.apply(e.SettingsSaved(config=a_config(batch=2, concurrency=1, mode=Mode.PARALLEL)))
    world.fails(1, 2)
    assert world.queue_text == "main ← 2+1…"


def test_a_new_priority_of_a_pr_that_is_not_ready_counts_when_it_is():
    world = a_full_world()
    world.open_pull_request(1)
    world.change(1, draft=True)
    world.submit(1)
    world.submit(1, priority=7)
    world.change(1, draft=False)
    world.apply(world.observe_pull_request(1))
    assert buckets(world) == {7: [world.submission_id(1)]}


def test_a_priority_is_changed_without_submitting_again():
    world = a_full_world(1, 2)
    world.prioritize(2, 50)
    assert buckets(world) == {100: [world.submission_id(1)], 50: [world.submission_id(2)]}
    assert not world.submission(2).priority_is_default


def test_requesting_a_priority_submits_no_pr():
    world = a_world(prs=1)
    world.cancel(1)
    assert world.prioritize(1, 50).refusals == {0: Refusal.PR_NOT_SUBMITTED}
    assert world.queue_text == "main"


def test_from_intent_to_outcome_no_pr_gets_another_priority():
    world = a_world_with_an_intended_landing()
    assert world.prioritize(1, 0).refusals == {0: Refusal.MERGE_IN_PROGRESS}


def test_a_pr_that_becomes_urgent_preempts_the_active_batches():
    world, other = a_world(prs=3), a_world(prs=3)
    world.prioritize(3, 0)
    other.submit(3, priority=0)
    assert world.queue_text == other.queue_text != "main ← 1… ← 2… ← 3…"


# Cancelling.


def test_a_pr_that_is_not_queued_cannot_be_cancelled():
    assert a_world().cancel(1).refusals == {0: Refusal.PR_NOT_SUBMITTED}


def test_a_cancelled_pr_leaves():
    world = a_world(prs=1)
    world.cancel(1)
    assert (world.state(1), world.reason(1), world.queue_text) == (
        PullRequestState.CANCELLED,
        Reason.CANCELLED_BY_USER,
        "main",
    )


def test_the_journal_names_who_cancelled():
    (entry,) = a_world(prs=1).cancel(1).journal
    assert entry.actor == "ann"


def test_a_landing_without_intent_does_not_hinder_cancelling():
    world = a_world(prs=1)
    world.passes(1)
    world.cancel(1)
    assert (world.state(1), world.queue.landing) == (PullRequestState.CANCELLED, None)


def test_from_intent_to_outcome_no_pr_is_cancelled():
    world = a_world_with_an_intended_landing()
    assert world.cancel(1).refusals == {0: Refusal.MERGE_IN_PROGRESS}


def test_a_pr_behind_an_intended_landing_can_be_cancelled():
    world = a_world(prs=2)
    world.passes(1)
    world.save_landing_intent()
    world.cancel(2)
    assert world.state(2) is PullRequestState.CANCELLED


# Restarting.


def test_a_pr_that_is_not_queued_cannot_be_restarted():
    assert a_world().restart(1).refusals == {0: Refusal.PR_NOT_SUBMITTED}


def test_a_restart_of_a_pr_that_waits_changes_nothing():
    world = a_full_world(1)
    before = world.queue
    assert world.restart(1).refusals == {}
    assert world.queue == before


def test_a_pr_that_passed_is_tested_again_after_a_restart():
    world = a_world(prs=2)
    world.passes(2)
    assert world.restart(2).refusals == {}
    assert world.state(2) is PullRequestState.PENDING


def test_a_restarted_pr_gets_a_new_run():
    world = a_world(prs=1)
    before = world.run_of(1)
    world.restart(1)
    world.build()
    assert (world.run_of(1).id != before.id, world.state(1)) == (True, PullRequestState.TESTING)


def test_a_restarted_pr_that_a_run_behind_clears_gets_a_new_run():
    world = a_world(prs=2, depth=0)
    before = world.run_of(1)
    world.passes(2)
    world.restart(1)
    assert (world.run_of(1).id != before.id, world.run_of(1).status) == (True, RunStatus.PREPARING)


def test_the_run_before_a_restart_is_cancelled():
    world = a_world(prs=1)
    before = world.run_of(1)
    world.restart(1)
    assert world.queue.runs[before.id].status is RunStatus.CANCELLED


def test_the_timeline_shows_the_restart():
    world = a_world(prs=1)
    world.restart(1)
    assert world.timeline(1)[-1] == (PullRequestState.PENDING, Reason.TESTS_RESTARTED)


def test_a_restart_does_not_disturb_the_runs_behind():
    world = a_world(prs=2)
    behind = world.run_of(2)
    world.restart(1)
    world.build()
    assert world.run_of(2) == behind


def test_a_restarted_pr_and_the_prs_behind_it_merge():
    world = a_world(prs=2)
    world.restart(1)
    world.build()
    world.passes(2)
    world.passes(1)
    world.perform_pending_tasks()
    assert (world.state(1), world.state(2)) == (PullRequestState.MERGED, PullRequestState.MERGED)


def test_runs_that_continue_a_run_that_is_restarted_before_it_is_built_continue_the_next_one():
    world = a_world(prs=1, test_retries=1)
    world.fails(1)
    world.submit(2)
    world.restart(1)
    world.build()
    assert (world.state(2), world.run_of(2).chain[0]) == (PullRequestState.TESTING, world.run_of(1).chain[0])


def test_a_failed_pr_that_waits_for_the_prs_ahead_can_be_restarted():
    world = a_world(prs=2)
    world.fails(2)
    world.restart(2)
    world.build()
    assert world.queue_text == "main ← 1… ← 2…"


def test_a_restart_resets_the_count_of_retries():
    world = a_world(prs=1, test_retries=1)
    world.fails(1)
    world.build()
    world.restart(1)
    world.build()
    assert world.run_of(1).attempt == 0


def test_a_restart_in_a_paused_queue_waits_for_its_slot():
    world = a_world(prs=1)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.restart(1)
    assert world.queue_text == "main ← 1"


def test_a_restart_in_a_bisection_tests_its_members_again_together():
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    world.restart(1)
    world.build()
    assert world.queue_text == "main ← 1+2…"


def test_the_journal_names_who_restarted():
    (entry, *_) = a_world(prs=1).restart(1).journal
    assert (entry.reason, entry.actor) == (Reason.TESTS_RESTARTED, "ann")


def test_the_journal_names_who_restarted_in_a_bisection():
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    (entry, *_) = world.restart(1).journal
    assert (entry.reason, entry.actor) == (Reason.TESTS_RESTARTED, "ann")


# Targets.


def test_uploaded_impacted_targets_admit_a_pr():
    world = a_parallel_world()
    world.submit(1)
    world.apply(
        e.ImpactedTargetsUploaded(
            number=PullRequestNumber(1), head=world.head(1), impacted_targets=impacted_targets_from_names("x")
        )
    )
    assert world.state(1) is PullRequestState.PENDING


@pytest.mark.parametrize(("number", "head"), [(1, "another head"), (2, "head2")])
def test_impacted_targets_of_another_head_or_another_pr_are_ignored(number: int, head: str):
    world = a_parallel_world()
    world.submit(1)
    before = world.queue
    world.apply(
        e.ImpactedTargetsUploaded(
            number=PullRequestNumber(number), head=Sha(head), impacted_targets=impacted_targets_from_names("x")
        )
    )
    assert world.queue is before


def test_a_pr_whose_read_began_before_an_upload_of_targets_is_read_again():
    world = a_parallel_world("x")
    begun_before = replace(world.observe_pull_request(1), impacted_targets=impacted_targets_from_names("x"))
    world.apply(
        e.ImpactedTargetsUploaded(
            number=PullRequestNumber(1), head=world.head(1), impacted_targets=impacted_targets_from_names("y")
        )
    )
    world.apply(begun_before)
    assert world.submission(1).impacted_targets == impacted_targets_from_names("y")
    assert reads_the_first(world)


def test_the_same_targets_once_more_change_nothing():
    world = a_parallel_world("x")
    before = world.queue
    world.apply(
        e.ImpactedTargetsUploaded(
            number=PullRequestNumber(1), head=world.head(1), impacted_targets=impacted_targets_from_names("x")
        )
    )
    assert world.queue is before


def test_targets_uploaded_during_a_run_count_when_the_next_run_starts():
    world = a_parallel_world("x", "y")
    world.apply(
        e.ImpactedTargetsUploaded(
            number=PullRequestNumber(2), head=world.head(2), impacted_targets=impacted_targets_from_names("x")
        )
    )
    assert (world.queue.mode, world.queue_text) == (Mode.PARALLEL, "main ← 1… ∥ main ← 2…")


def test_an_observation_from_before_an_upload_of_targets_does_not_replace_them():
    world = a_parallel_world("x")
    outdated = world.build_submission(1, impacted_targets=impacted_targets_from_names("x"))
    world.apply(
        e.ImpactedTargetsUploaded(
            number=PullRequestNumber(1), head=world.head(1), impacted_targets=impacted_targets_from_names("y")
        )
    )
    world.apply(outdated)
    assert world.submission(1).impacted_targets == impacted_targets_from_names("y")


def test_the_priority_that_it_has_already_is_no_change_of_a_person():
    world = a_full_world(1)
    world.submit(1, priority=7)
    before = world.submission(1)
    submitted = e.PullRequestSubmitted(
        pull_request=before.pull_request,
        observed_at_revision=world.queue.counters.revision,
        merge_checked=True,
        priority=7,
        actor="grace",
    )
    decision = decide(world.queue, [submitted], world.now)
    assert decision.journal == ()
    assert decision.queue.submissions[before.id].priority_set_by == before.priority_set_by
