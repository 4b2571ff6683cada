"""A reason has exactly one cause, and names the pull requests and people behind it."""

from mergeyard.domain import events as e
from mergeyard.domain.config import URGENT, Mode, Speculation
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.journal import Cause, PullRequestUpdated
from mergeyard.domain.queue import Decision, Queue
from mergeyard.domain.states import Reason
from tests.support.story import Story

THREE = PullRequestNumber(3)


def test_a_pr_that_becomes_urgent_is_not_told_that_an_urgent_one_overtook_it():
    story = Story(batch=2)
    story.submit(1, 2, 3, 4)
    story.set_priority(3, URGENT, actor="grace")
    assert story.queue_text().startswith("main ← 3…")
    assert "made_urgent" in story.reasons(3)
    assert "skip_the_line_interrupted" not in story.reasons(3)


def test_those_that_an_urgent_pr_overtook_know_which_it_was_and_who_hurried_it():
    story = Story(batch=2)
    story.submit(1, 2, 3, 4)
    story.set_priority(3, URGENT, actor="grace")
    for overtaken in (1, 2):
        causes = story.causes(overtaken, "skip_the_line_interrupted")
        assert causes == (Cause(THREE, Reason.MADE_URGENT, "grace"),)
    assert story.causes(4, "batchmate_removed") == (Cause(THREE, Reason.MADE_URGENT, "grace"),)


def test_an_urgent_pr_that_the_run_left_out_did_not_overtake_it():
    story = Story.on_an_untested_base(speculation=Speculation.BEST_FIRST, concurrency=5)
    story.submit(2, priority=URGENT)
    story.submit(4)
    story.submit(1)
    story.tests_fail(2)
    story.tests_fail(stack=(2, 4))
    story.tests_fail(stack=(2, 4, 1))
    story.cancel(4)
    assert story.runs() == ((1,),)
    story.submit(3, priority=URGENT, actor="grace")
    assert story.causes(1, "skip_the_line_interrupted") == (Cause(THREE, Reason.MADE_URGENT, "grace"),)


def test_a_pr_behind_one_that_becomes_urgent_was_not_overtaken():
    story = Story(concurrency=4)
    story.submit(1, 2, 3, 4)
    story.submit(3, priority=URGENT, actor="grace")
    assert story.queue_text() == "main ← 3… ← 1… ← 2… ← 4…"
    assert story.causes(4, "order_changed") == (Cause(THREE, Reason.MADE_URGENT, "grace"),)
    assert "skip_the_line_interrupted" not in story.reasons(4)
    assert "prerequisite_removed" not in story.reasons(4)


def test_new_dependencies_are_not_an_urgent_pr():
    story = Story(mode=Mode.PARALLEL, batch=2)
    for number, target in ((1, "x"), (2, "x"), (3, "y"), (4, "y")):
        story.impacts(number, target)
    story.submit(1, 2)
    story.submit(3, 4)
    story.upload_targets(1, "x", "y")
    story.cancel(2)
    assert story.queue_text() == "main ← 1… ∥ 1 ← 3+4…"
    assert "dependencies_changed" in story.reasons(3)
    assert "skip_the_line_interrupted" not in story.reasons(3)


def test_a_pr_that_stayed_is_not_named_among_those_that_left():
    story = Story(mode=Mode.PARALLEL, batch=2)
    for number, targets in ((1, "x"), (2, "y"), (3, "y"), (4, "y")):
        story.impacts(number, targets)
    story.impacts(1, "x", "y")
    story.submit(1, 2)
    story.submit(3, 4)
    story.upload_targets(1, "x")
    story.cancel(2, actor="ada")
    assert story.queue_text() == "main ← 1… ∥ main ← 3+4…"
    assert story.causes(3, "prerequisite_removed") == (Cause(PullRequestNumber(2), Reason.CANCELLED_BY_USER, "ada"),)


def test_the_first_pr_is_not_told_that_one_ahead_left():
    story = Story(concurrency=3, can_optimistically_merge=True, pending_failure_depth=2)
    story.submit(1, 2, 3)
    story.withhold_landings()
    story.tests_fail(1)
    story.tests_pass(2)
    assert story.reason(1) == "successor_passed"
    story.cancel(2)
    assert "clearance_withdrawn" in story.reasons(1)
    assert "prerequisite_removed" not in story.reasons(1)


def test_turning_optimistic_merging_off_is_a_reason_of_its_own():
    story = Story(concurrency=3, can_optimistically_merge=True, pending_failure_depth=2)
    story.submit(1, 2, 3)
    story.withhold_landings()
    story.tests_fail(1)
    story.tests_pass(2)
    story.settings(can_optimistically_merge=False)
    assert "optimistic_merging_off" in story.reasons(1)


def test_those_behind_a_removed_pr_know_which_it_was_and_who_removed_it():
    story = Story(concurrency=3)
    story.submit(1, 2, 3)
    story.cancel(1, actor="ada")
    cause = Cause(PullRequestNumber(1), Reason.CANCELLED_BY_USER, "ada")
    assert [story.causes(number, "prerequisite_removed") for number in (2, 3)] == [(cause,), (cause,)]


def test_members_of_a_bisection_know_who_removed_one_of_them():
    story = Story(batch=3)
    story.submit(1, 2, 3)
    story.tests_fail(1, 2, 3)
    story.cancel(2, actor="ada")
    assert story.causes(1, "batchmate_removed") == (Cause(PullRequestNumber(2), Reason.CANCELLED_BY_USER, "ada"),)


def test_a_deleted_target_branch_did_not_move():
    story = Story()
    story.submit(1)
    story.delete_target_branch()
    assert story.reasons(1)[-1] == "target_branch_missing"


def test_a_raised_number_of_retries_is_not_a_restart_by_a_user():
    story = Story(concurrency=2)
    story.submit(1, 2)
    story.tests_fail(2)
    story.settings(test_retries=1)
    assert "run_replaced" in story.reasons(2)
    assert "tests_restarted" not in story.reasons(2)


def test_a_moved_test_branch_is_not_a_moved_target_branch():
    story = Story()
    story.submit(1)
    story.withhold_landings()
    story.tests_pass(1)
    landing = story.queue.landing
    assert landing is not None
    story.world.apply(
        e.LandingPullRequestsRead(
            landing=landing.number,
            pull_requests=(story.world.host.read_pull_request(PullRequestNumber(1)),),
            observed_at_revision=story.queue.counters.revision,
        )
    )
    story.world.apply(e.LandingMissed(landing=landing.number, test_branch_moved=True))
    assert "test_branch_moved" in story.reasons(1)
    assert "target_branch_moved" not in story.reasons(1)


def test_a_pr_that_waits_behind_another_one_does_not_wait_for_a_batch():
    story = Story.on_an_untested_base(mode=Mode.PARALLEL, concurrency=2)
    for number in (1, 2, 3):
        story.impacts(number, "x")
    story.submit(1, 2, 3)
    assert "waiting_for_batch" not in [story.wait_reason(number) for number in (1, 2, 3)]


def test_the_priority_that_it_has_already_is_not_a_change():
    story = Story(concurrency=1)
    story.submit(1, 2)
    story.set_priority(2, 10, actor="grace")
    story.set_priority(2, 10, actor="linus")
    assert story.submission(2).priority_set_by == "grace"


def test_another_user_who_forces_and_unbatches_a_queued_pr_is_named():
    story = Story(concurrency=1)
    story.submit(1, 2)
    updates = list[tuple[str, str]]()

    def note_updates(_before: Queue, _events: object, decision: Decision) -> None:
        entries = [entry for entry in decision.journal if isinstance(entry, PullRequestUpdated)]
        updates.extend((entry.reason, entry.actor) for entry in entries)

    story.world.listeners.append(note_updates)
    story.submit(2, forced=True, no_batch=True, actor="linus")
    story.submit(2, forced=False, no_batch=False, actor="grace")
    assert updates == [
        *(("forced", "linus"), ("unbatched", "linus")),
        *(("force_withdrawn", "grace"), ("batching_allowed", "grace")),
    ]


def test_a_maintainer_who_approves_guarded_paths_of_a_queued_fork_is_named():
    story = Story()
    story.open(1)
    story.change_without_event(1, fork=True, guarded_paths=("ci.yml",))
    story.submit(1)
    assert story.wait_reason(1) == "waiting_for_maintainer"
    event = story.world.build_submission(1, by_maintainer=True, actor="grace")
    (entry, *_) = story.world.apply(event).journal
    assert isinstance(entry, PullRequestUpdated)
    assert (entry.reason, entry.actor) == ("guarded_paths_approved", "grace")


def test_an_urgent_pr_that_comes_back_ahead_of_a_run_that_left_it_out_is_named():
    story = Story.on_an_untested_base(speculation=Speculation.BEST_FIRST, concurrency=5)
    story.submit(3)
    story.submit(1, 2)
    story.tests_fail(3)
    story.tests_pass(stack=(1, 2))
    story.tests_fail()
    assert (story.wait_reason(3), story.state(2)) == ("base_broken", "tests_passed")
    story.set_priority(3, URGENT, actor="grace")
    story.restart(3)
    story.tests_pass()
    assert story.queue_text() == "main ← 3… ← 1… ← 2…"
    assert story.causes(2, "skip_the_line_interrupted") == (Cause(THREE, Reason.MADE_URGENT, "grace"),)


def test_a_pr_that_lost_a_batchmate_and_one_ahead_at_once_names_the_batchmate():
    story = Story(batch=2)
    story.submit(1, 2, 3, 4)
    one, four = PullRequestNumber(1), PullRequestNumber(4)
    story.world.apply(e.CancelRequested(number=one, actor="ada"), e.CancelRequested(number=four, actor="grace"))
    assert story.causes(3, "batchmate_removed") == (Cause(four, Reason.CANCELLED_BY_USER, "grace"),)
