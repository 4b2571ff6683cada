"""What people may ask of a pull request: submit, cancel, restart, say what it impacts."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.journal import PrChanged
from mergeyard.domain.reasons import Reason, Refusal
from mergeyard.domain.states import Mergeability, PrState, QueueState, RunStatus
from mergeyard.domain.targets import named
from tests.support.builders import Yard, a_parallel_yard, a_yard


def a_full_yard(*waiting: int) -> Yard:
    """The only slot is taken by pull request 9, and these wait."""
    yard = a_yard(concurrency=1)
    yard.submit(9)
    yard.build()
    yard.submit(*waiting)
    return yard


def an_intended_yard() -> Yard:
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.intend()
    return yard


def buckets(yard: Yard) -> dict[int, list[int]]:
    return {priority: list(bucket) for priority, bucket in yard.queue.waiting.items()}


# Submitting.


def test_what_was_not_given_takes_the_default():
    yard = a_full_yard(1)
    stay = yard.stay(1)
    assert (stay.priority, stay.priority_is_default, stay.no_batch, stay.forced, stay.pinned) == (
        *(100, True),
        *(False, False, False),
    )


def test_a_priority_that_was_given_is_no_default():
    yard = a_full_yard()
    yard.submit(1, priority=100)
    assert not yard.stay(1).priority_is_default


def test_tickets_are_drawn_in_the_order_of_submission():
    yard = a_full_yard(5, 3)
    assert (yard.ticket(5), yard.ticket(3)) == (2, 3)


def test_the_journal_names_who_submitted():
    yard = a_yard()
    yard.open(1)
    entry = yard.tell(replace(yard.submission(1), actor="ann")).journal[0]
    assert isinstance(entry, PrChanged)
    assert (entry.source, entry.actor) == (None, "ann")


def test_submitting_again_keeps_the_stay():
    yard = a_full_yard(1)
    ticket = yard.ticket(1)
    yard.submit(1, priority=7)
    assert yard.ticket(1) == ticket


def test_submitting_again_changes_only_what_was_given():
    yard = a_full_yard()
    yard.submit(1, priority=7, no_batch=True, forced=True)
    yard.submit(1)
    stay = yard.stay(1)
    assert (stay.priority, stay.no_batch, stay.forced) == (7, True, True)


def test_submitting_again_changes_what_was_given():
    yard = a_full_yard()
    yard.submit(1, priority=7, no_batch=True, forced=True)
    yard.submit(1, priority=8, no_batch=False, forced=False)
    stay = yard.stay(1)
    assert (stay.priority, stay.no_batch, stay.forced) == (8, False, False)


def test_submitting_again_by_force_admits():
    yard = a_full_yard()
    yard.open(1)
    yard.change(1, mergeability=Mergeability.UNKNOWN)
    yard.submit(1)
    yard.submit(1, forced=True)
    assert yard.state(1) is PrState.PENDING


def test_a_head_once_named_stays_named():
    yard = a_full_yard(1)
    yard.tell(replace(yard.submission(1), pinned=True))
    yard.submit(1)
    assert yard.stay(1).pinned


def test_submitting_with_a_new_head_begins_a_new_stay():
    yard = a_yard(prs=1)
    yard.change(1, head=yard.repository.commit((yard.head(1),), {"more": "more"}, "a push"))
    yard.submit(1)
    assert [(each.number, each.state, each.reason) for each in yard.ended.values()] == [
        (1, PrState.CANCELLED, Reason.PR_PUSHED)
    ]
    assert (yard.ticket(1), yard.state(1)) == (2, PrState.PENDING)


def looks_at_the_first(yard: Yard) -> bool:
    return yard.outstanding(t.LookAtPull) == (t.LookAtPull(number=PrNumber(1)),)


@pytest.mark.parametrize("complete", [True, False])
def test_whoever_was_only_glanced_at_is_looked_at(complete: bool):
    yard = a_full_yard()
    yard.open(1)
    yard.tell(replace(yard.submission(1), complete=complete))
    assert looks_at_the_first(yard) is not complete


def test_whoever_was_only_glanced_at_when_submitted_again_is_looked_at():
    yard = a_full_yard(1)
    yard.tell(replace(yard.submission(1), complete=False))
    assert looks_at_the_first(yard)


def test_one_of_which_nobody_has_said_what_it_impacts_is_looked_at_where_there_are_lanes():
    yard = a_parallel_yard()
    yard.submit(1)
    assert looks_at_the_first(yard)


def test_one_of_which_somebody_has_said_what_it_impacts_is_not_looked_at():
    yard = a_parallel_yard("x")
    assert not looks_at_the_first(yard)


CLOSED: list[tuple[dict[str, object], Refusal]] = [
    ({"is_open": False}, Refusal.PR_CLOSED),
    ({"is_open": False, "merged_into": "main"}, Refusal.PR_ALREADY_MERGED),
    ({"is_open": False, "merged_into": "elsewhere"}, Refusal.PR_ALREADY_MERGED),
    ({"contained": True}, Refusal.PR_ALREADY_MERGED),
]


@pytest.mark.parametrize(("change", "refusal"), CLOSED)
def test_one_that_is_closed_or_merged_cannot_be_submitted(change: dict[str, object], refusal: Refusal):
    yard = a_yard()
    yard.open(1)
    submission = yard.submission(1)
    decision = yard.tell(replace(submission, pull=replace(submission.pull, **change)))
    assert (decision.refusals, yard.queue.submission_of(PrNumber(1))) == ({0: refusal}, None)


@pytest.mark.parametrize(
    ("change", "end"),
    [
        ({"is_open": False}, (PrState.CANCELLED, Reason.PR_CLOSED)),
        ({"is_open": False, "merged_into": "main"}, (PrState.MERGED, Reason.MERGED_MANUALLY)),
        ({"contained": True}, (PrState.MERGED, Reason.MERGED_MANUALLY)),
    ],
)
def test_submitting_again_one_that_is_closed_or_merged_ends_its_stay_and_begins_no_other(
    change: dict[str, object], end: tuple[PrState, Reason]
):
    yard = a_yard(prs=1)
    submission = yard.submission(1)
    decision = yard.tell(replace(submission, pull=replace(submission.pull, **change)))
    assert (decision.refusals, yard.queue.submission_of(PrNumber(1))) == ({}, None)
    assert (yard.state(1), yard.reason(1)) == end


def test_submitting_with_an_outdated_look_keeps_what_is_known():
    yard = a_yard()
    yard.open(1)
    yard.change(1, mergeability=Mergeability.UNKNOWN)
    outdated = yard.submission(1)
    yard.submit(1)
    yard.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    yard.tell(yard.pull_seen(1))
    yard.tell(replace(outdated, priority=7))
    stay = yard.stay(1)
    assert (stay.pull.mergeability, stay.priority) == (Mergeability.NOT_MERGEABLE, 7)


def test_targets_given_with_a_submission_count():
    yard = a_parallel_yard()
    yard.submit(1, targets=named("x"))
    assert yard.stay(1).targets == named("x")


def test_targets_given_when_submitting_again_count():
    yard = a_parallel_yard()
    yard.submit(1)
    yard.submit(1, targets=named("x"))
    assert (yard.stay(1).targets, yard.state(1)) == (named("x"), PrState.PENDING)


def an_outdated_submission_with_targets(yard: Yard) -> e.PrSubmitted:
    """Its look at the pull request began before the last one was recorded."""
    yard.open(1)
    yard.change(1, mergeability=Mergeability.UNKNOWN)
    outdated = yard.submission(1, targets=named("x"))
    yard.submit(1)
    return outdated


def test_targets_given_with_an_outdated_look_at_the_same_head_count():
    yard = a_parallel_yard()
    outdated = an_outdated_submission_with_targets(yard)
    yard.change(1, mergeability=Mergeability.MERGEABLE)
    yard.tell(yard.pull_seen(1))
    yard.tell(outdated)
    assert yard.stay(1).targets == named("x")


def test_targets_given_with_an_outdated_look_at_another_head_do_not_count():
    yard = a_parallel_yard()
    outdated = an_outdated_submission_with_targets(yard)
    yard.change(1, head=yard.repository.commit((yard.head(1),), {"more": "more"}, "a push"))
    yard.tell(yard.pull_seen(1))
    yard.tell(outdated)
    assert yard.stay(1).targets is None


def test_from_intent_to_outcome_submitting_again_changes_nothing():
    yard = an_intended_yard()
    before = yard.stay(1)
    yard.submit(1, priority=0, no_batch=True)
    assert yard.stay(1) == before


# Priorities.


def test_a_new_priority_moves_one_that_waits():
    yard = a_full_yard(1, 2)
    yard.submit(2, priority=50)
    assert buckets(yard) == {100: [yard.ticket(1)], 50: [yard.ticket(2)]}


def test_a_new_priority_leaves_the_line_as_it_is():
    yard = a_yard(prs=3)
    yard.submit(3, priority=1)
    assert yard.picture == "main ← 1… ← 2… ← 3…"


def test_a_new_priority_of_one_in_the_line_counts_when_it_waits_again():
    yard = a_yard(prs=2, batch=2, concurrency=1)
    yard.submit(2, priority=7)
    yard.submit(3, no_batch=True)
    yard.fails(1, 2)
    yard.build()
    yard.fails(1)
    assert yard.ticket(2) in buckets(yard)[7]


def test_a_new_priority_of_one_that_is_not_ready_counts_when_it_is():
    yard = a_full_yard()
    yard.open(1)
    yard.change(1, draft=True)
    yard.submit(1)
    yard.submit(1, priority=7)
    yard.change(1, draft=False)
    yard.tell(yard.pull_seen(1))
    assert buckets(yard) == {7: [yard.ticket(1)]}


def test_a_priority_is_changed_without_submitting_again():
    yard = a_full_yard(1, 2)
    yard.prioritise(2, 50)
    assert buckets(yard) == {100: [yard.ticket(1)], 50: [yard.ticket(2)]}
    assert not yard.stay(2).priority_is_default


def test_asking_for_a_priority_submits_nobody():
    yard = a_yard(prs=1)
    yard.cancel(1)
    assert yard.prioritise(1, 50).refusals == {0: Refusal.PR_NOT_SUBMITTED}
    assert yard.picture == "main"


def test_from_intent_to_outcome_nobody_gets_another_priority():
    yard = an_intended_yard()
    assert yard.prioritise(1, 0).refusals == {0: Refusal.MERGE_IN_PROGRESS}


def test_one_that_becomes_urgent_passes_the_line():
    yard, other = a_yard(prs=3), a_yard(prs=3)
    yard.prioritise(3, 0)
    other.submit(3, priority=0)
    assert yard.picture == other.picture != "main ← 1… ← 2… ← 3…"


# Cancelling.


def test_a_pr_that_is_not_here_cannot_be_cancelled():
    assert a_yard().cancel(1).refusals == {0: Refusal.PR_NOT_SUBMITTED}


def test_a_cancelled_pr_leaves():
    yard = a_yard(prs=1)
    yard.cancel(1)
    assert (yard.state(1), yard.reason(1), yard.picture) == (PrState.CANCELLED, Reason.CANCELLED_BY_USER, "main")


def test_the_journal_names_who_cancelled():
    (entry,) = a_yard(prs=1).cancel(1).journal
    assert entry.actor == "ann"


def test_a_landing_without_intent_does_not_hinder_cancelling():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.cancel(1)
    assert (yard.state(1), yard.queue.landing) == (PrState.CANCELLED, None)


def test_from_intent_to_outcome_nobody_is_cancelled():
    yard = an_intended_yard()
    assert yard.cancel(1).refusals == {0: Refusal.MERGE_IN_PROGRESS}


def test_one_behind_an_intended_landing_can_be_cancelled():
    yard = a_yard(prs=2)
    yard.passes(1)
    yard.intend()
    yard.cancel(2)
    assert yard.state(2) is PrState.CANCELLED


# Restarting.


def test_a_pr_that_is_not_here_cannot_be_restarted():
    assert a_yard().restart(1).refusals == {0: Refusal.PR_NOT_SUBMITTED}


def test_a_pr_that_waits_cannot_be_restarted():
    assert a_full_yard(1).restart(1).refusals == {0: Refusal.TESTS_NOT_RUNNING}


def test_a_pr_that_passed_cannot_be_restarted():
    yard = a_yard(prs=2)
    yard.passes(2)
    assert yard.restart(2).refusals == {0: Refusal.TESTS_NOT_RUNNING}


def test_a_restarted_pr_gets_a_new_run():
    yard = a_yard(prs=1)
    before = yard.run_of(1)
    yard.restart(1)
    yard.build()
    assert (yard.run_of(1).id != before.id, yard.state(1)) == (True, PrState.TESTING)


def test_the_run_before_a_restart_is_cancelled():
    yard = a_yard(prs=1)
    before = yard.run_of(1)
    yard.restart(1)
    assert yard.queue.runs[before.id].status is RunStatus.CANCELLED


def test_the_timeline_tells_of_the_restart():
    yard = a_yard(prs=1)
    yard.restart(1)
    assert yard.timeline(1)[-1] == (PrState.PENDING, Reason.TESTS_RESTARTED)


def test_a_restart_does_not_disturb_the_runs_behind():
    yard = a_yard(prs=2)
    behind = yard.run_of(2)
    yard.restart(1)
    yard.build()
    assert yard.run_of(2) == behind


def test_a_restarted_pr_and_those_behind_merge():
    yard = a_yard(prs=2)
    yard.restart(1)
    yard.build()
    yard.passes(2)
    yard.passes(1)
    yard.perform_all()
    assert (yard.state(1), yard.state(2)) == (PrState.MERGED, PrState.MERGED)


def test_those_that_go_on_from_a_run_that_is_restarted_before_it_is_built_go_on_from_the_next():
    yard = a_yard(prs=1, test_retries=1)
    yard.fails(1)
    yard.submit(2)
    yard.restart(1)
    yard.build()
    assert (yard.state(2), yard.run_of(2).chain[0]) == (PrState.TESTING, yard.run_of(1).chain[0])


def test_a_red_pr_that_waits_for_those_ahead_can_be_restarted():
    yard = a_yard(prs=2)
    yard.fails(2)
    yard.restart(2)
    yard.build()
    assert yard.picture == "main ← 1… ← 2…"


def test_a_restart_begins_the_count_of_retries_anew():
    yard = a_yard(prs=1, test_retries=1)
    yard.fails(1)
    yard.build()
    yard.restart(1)
    yard.build()
    assert yard.run_of(1).attempt == 0


def test_a_restart_in_a_paused_queue_waits_for_its_slot():
    yard = a_yard(prs=1)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.restart(1)
    assert yard.picture == "main ← 1"


def test_a_restart_in_a_bisection_tests_its_members_again_together():
    yard = a_yard(prs=2, batch=2)
    yard.fails(1, 2)
    yard.restart(1)
    yard.build()
    assert yard.picture == "main ← 1+2…"


def test_the_journal_names_who_restarted():
    (entry, *_) = a_yard(prs=1).restart(1).journal
    assert (entry.reason, entry.actor) == (Reason.TESTS_RESTARTED, "ann")


def test_the_journal_names_who_restarted_in_a_bisection():
    yard = a_yard(prs=2, batch=2)
    yard.fails(1, 2)
    (entry, *_) = yard.restart(1).journal
    assert (entry.reason, entry.actor) == (Reason.TESTS_RESTARTED, "ann")


# Targets.


def test_uploaded_targets_admit():
    yard = a_parallel_yard()
    yard.submit(1)
    yard.tell(e.TargetsUploaded(number=PrNumber(1), head=yard.head(1), targets=named("x")))
    assert yard.state(1) is PrState.PENDING


@pytest.mark.parametrize(("number", "head"), [(1, "another head"), (2, "head2")])
def test_targets_of_another_head_or_another_pr_are_not_for_us(number: int, head: str):
    yard = a_parallel_yard()
    yard.submit(1)
    before = yard.queue
    yard.tell(e.TargetsUploaded(number=PrNumber(number), head=Sha(head), targets=named("x")))
    assert yard.queue is before


def test_whoever_began_to_look_before_targets_were_uploaded_looks_again():
    yard = a_parallel_yard("x")
    begun_before = replace(yard.pull_seen(1), targets=named("x"))
    yard.tell(e.TargetsUploaded(number=PrNumber(1), head=yard.head(1), targets=named("y")))
    yard.tell(begun_before)
    assert yard.stay(1).targets == named("y")
    assert looks_at_the_first(yard)


def test_the_same_targets_once_more_change_nothing():
    yard = a_parallel_yard("x")
    before = yard.queue
    yard.tell(e.TargetsUploaded(number=PrNumber(1), head=yard.head(1), targets=named("x")))
    assert yard.queue is before


def test_targets_uploaded_during_a_run_count_at_the_next_start():
    yard = a_parallel_yard("x", "y")
    yard.tell(e.TargetsUploaded(number=PrNumber(2), head=yard.head(2), targets=named("x")))
    assert (yard.queue.mode, yard.picture) == (Mode.PARALLEL, "main ← 1… ∥ main ← 2…")


def test_what_was_read_before_targets_were_uploaded_does_not_replace_them():
    yard = a_parallel_yard("x")
    outdated = yard.submission(1, targets=named("x"))
    yard.tell(e.TargetsUploaded(number=PrNumber(1), head=yard.head(1), targets=named("y")))
    yard.tell(outdated)
    assert yard.stay(1).targets == named("y")
