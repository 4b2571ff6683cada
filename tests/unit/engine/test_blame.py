"""Which pull requests a failed run blames: those in its stack for which no other cause is left."""

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.ids import Sha, SubmissionId
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import PullRequestState, QueueState, RunStatus
from mergeyard.engine import blame, run_lifecycle
from mergeyard.engine.blame import BASE_ALONE, BaseHealth, Blame
from tests.support.builders import (
    ROOT,
    QueueWorld,
    a_config,
    a_failed_prefix_on_an_untested_tip,
    a_parallel_world,
    a_plain_queue,
    a_run,
    a_world,
)


def blame_of(world: QueueWorld, place: int = 0) -> Blame | None:
    return blame.blame_for(world.queue, world.queue.active.batches[place])


def awaited(world: QueueWorld) -> list[tuple[int, ...]]:
    """The submissions of the batches that the first waits for."""
    return [batch.submission_ids for batch in blame.awaited_successors(world.queue, world.queue.active.batches[0])]


def test_a_failed_batch_with_nothing_ahead_is_blamed():
    world = a_world(prs=1, base_passed=False)
    failed_run = world.run_of(1)
    world.fails(1)
    found = blame_of(world)
    assert found is not None
    assert (found.run.id, found.submission_ids) == (failed_run.id, (world.submission_id(1),))


def test_a_batch_under_test_is_not_blamed():
    assert blame_of(a_world(prs=1)) is None


def test_while_something_is_ahead_no_pr_is_blamed():
    world = a_world(prs=2)
    world.fails(2)
    assert blame_of(world, place=1) is None


def test_in_parallel_mode_only_what_is_ahead_in_the_lane_counts():
    world = a_parallel_world("x", "y", base_passed=False)
    world.fails(2)
    assert blame_of(world, place=1) is not None


def test_a_run_that_is_to_be_repeated_blames_no_pr():
    world = a_world(prs=2, test_retries=1)
    world.apply(e.SettingsSaved(config=a_config(test_retries=1, concurrency=1)))
    world.fails(1)
    assert blame_of(world) is None


def test_a_cleared_pr_is_not_blamed():
    world = a_world(prs=2, depth=1)
    world.passes(2)
    world.fails(1)
    assert blame_of(world) is None


def test_a_pr_whose_successors_are_under_test_is_not_blamed_yet():
    world = a_world(prs=2, depth=1)
    world.fails(1)
    assert (blame_of(world), awaited(world)) == (None, [(2,)])


def test_successors_beyond_the_depth_are_not_awaited():
    world = a_world(prs=3, depth=1, base_passed=False)
    world.fails(2)
    world.fails(1)
    assert blame_of(world) is not None


def test_successors_within_the_depth_are_awaited():
    world = a_world(prs=3, depth=2)
    world.fails(2)
    world.fails(1)
    assert blame_of(world) is None


def test_only_those_within_the_depth_are_awaited():
    world = a_world(prs=4, depth=2)
    world.fails(1)
    assert awaited(world) == [(2,), (3,)]


def test_of_the_prs_within_the_depth_only_those_under_test_are_awaited():
    world = a_world(prs=3, depth=2)
    world.fails(2)
    world.fails(1)
    assert awaited(world) == [(3,)]


def test_without_optimistic_merging_successors_are_not_awaited():
    world = a_world(prs=2, base_passed=False)
    world.fails(1)
    assert blame_of(world) is not None


def test_an_untested_base_of_a_blame_is_in_question():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    assert list(blame.untested_bases(world.queue)) == [world.host.tip]


def test_a_tested_base_of_a_blame_is_not_in_question():
    world = a_parallel_world("x", "y", base_passed=False)
    world.passes(2)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.fails(1)
    assert blame.untested_bases(world.queue) == {}


def test_a_base_run_is_not_needed_while_a_run_of_others_can_show_that_the_base_passes():
    world = a_parallel_world("x", "y", base_passed=False)
    world.fails(1)
    assert world.queue_text == "main ← 1✗ ∥ main ← 2…"


def test_a_base_run_is_needed_when_the_runs_of_others_did_not_show_that_the_base_passes():
    world = a_parallel_world("x", "y", base_passed=False)
    world.fails(1)
    world.fails(2)
    assert world.queue_text == "main ← 1✗ ∥ main ← 2✗ ?"


def test_a_pr_can_be_blamed_on_a_base_that_a_run_of_others_showed_to_pass():
    world = a_parallel_world("x", "y", base_passed=False)
    world.fails(1)
    world.passes(2)
    assert (world.queue_text, set(world.concluded_submissions)) == ("main ← 2✓", {1})


def test_an_untested_base_of_a_confirming_run_is_in_question():
    """1 merged, a user pushed while the queue was paused, and 2 fails again on that untested commit."""
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    world.build()
    world.passes(1)
    world.save_landing_intent()
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.perform(t.Land)
    world.push_to_target_branch({"other": "other"})
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    world.build()
    world.fails(2)
    assert list(blame.untested_bases(world.queue)) == [world.host.tip]


def test_a_pr_that_failed_alone_in_a_bisection_is_blamed():
    world = a_failed_prefix_on_an_untested_tip()
    assert [each.submission_ids for each in blame.all_blames(world.queue)] == [(world.submission_id(3),)]


def test_an_untested_base_of_a_failed_prefix_is_in_question():
    world = a_failed_prefix_on_an_untested_tip()
    assert list(blame.untested_bases(world.queue)) == [world.host.tip]


def test_a_suspect_that_failed_with_others_is_not_blamed():
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    world.build()
    world.passes(1)
    assert list(blame.all_blames(world.queue)) == []


ONE, TWO = SubmissionId(1), SubmissionId(2)
FAILED_RUN = a_run(1, status=RunStatus.FAILED)
UNTESTED = a_plain_queue()


def passes_of(queue: Queue) -> tuple[frozenset[SubmissionId], ...]:
    return queue.target_branch.passed_bases.get(ROOT, ())


def test_an_untested_base_is_unknown():
    assert blame.base_health(UNTESTED, FAILED_RUN, (ONE,)) is BaseHealth.UNKNOWN


def test_a_base_whose_base_run_passed_is_known_to_pass():
    assert (
        blame.base_health(blame.record_passed_base(UNTESTED, ROOT, BASE_ALONE), FAILED_RUN, (ONE,))
        is BaseHealth.PASSING
    )


def test_a_base_on_which_others_passed_is_known_to_pass():
    queue = blame.record_passed_base(UNTESTED, ROOT, frozenset({TWO}))
    assert blame.base_health(queue, FAILED_RUN, (ONE,)) is BaseHealth.PASSING


def test_a_base_on_which_the_blamed_pr_passed_with_others_is_not_known_to_pass_without_it():
    queue = blame.record_passed_base(UNTESTED, ROOT, frozenset({ONE, TWO}))
    assert blame.base_health(queue, FAILED_RUN, (ONE,)) is BaseHealth.UNKNOWN


def test_merged_prs_ahead_of_the_blamed_pr_count_as_part_of_the_base():
    queue = blame.record_passed_base(UNTESTED, Sha("1"), BASE_ALONE)
    assert blame.base_health(queue, a_run(1, 2, status=RunStatus.FAILED), (TWO,)) is BaseHealth.PASSING


def test_a_base_whose_base_run_failed_is_broken():
    assert blame.base_health(blame.record_broken_base(UNTESTED, ROOT), FAILED_RUN, (ONE,)) is BaseHealth.BROKEN


def test_a_base_whose_base_runs_passed_and_failed_is_known_to_pass():
    queue = blame.record_broken_base(blame.record_passed_base(UNTESTED, ROOT, BASE_ALONE), ROOT)
    assert blame.base_health(queue, FAILED_RUN, (ONE,)) is BaseHealth.PASSING


def test_a_base_whose_base_run_failed_is_broken_even_when_others_passed_on_it():
    queue = blame.record_broken_base(blame.record_passed_base(UNTESTED, ROOT, frozenset({TWO})), ROOT)
    assert blame.base_health(queue, FAILED_RUN, (ONE,)) is BaseHealth.BROKEN


def test_a_passed_run_shows_that_its_base_passes():
    queue = blame.record_passed_run(UNTESTED, a_run(1, 2, status=RunStatus.SUCCEEDED))
    assert passes_of(queue) == ({ONE, TWO},)


def test_a_pass_with_fewer_prs_replaces_passes_with_more():
    queue = blame.record_passed_base(
        blame.record_passed_base(UNTESTED, ROOT, frozenset({ONE, TWO})), ROOT, frozenset({ONE})
    )
    assert passes_of(queue) == ({ONE},)


def test_passes_with_different_prs_are_all_kept():
    queue = blame.record_passed_base(blame.record_passed_base(UNTESTED, ROOT, frozenset({ONE})), ROOT, frozenset({TWO}))
    assert passes_of(queue) == ({ONE}, {TWO})


def test_a_pass_with_more_prs_adds_nothing():
    queue = blame.record_passed_base(UNTESTED, ROOT, frozenset({ONE}))
    assert blame.record_passed_base(queue, ROOT, frozenset({ONE, TWO})) is queue


def test_an_active_run_without_the_blamed_pr_can_show_that_the_base_passes():
    queue = run_lifecycle.put_run(UNTESTED, a_run(2))
    assert blame.is_base_under_test(queue, ROOT, (ONE,))


def test_an_active_run_with_the_blamed_pr_cannot_show_that_the_base_passes():
    queue = run_lifecycle.put_run(UNTESTED, a_run(1, 2))
    assert not blame.is_base_under_test(queue, ROOT, (ONE,))


def test_a_decided_run_can_no_longer_show_that_the_base_passes():
    queue = run_lifecycle.put_run(UNTESTED, a_run(2, status=RunStatus.FAILED))
    assert not blame.is_base_under_test(queue, ROOT, (ONE,))


def test_an_active_run_on_another_base_shows_nothing_about_this_one():
    queue = run_lifecycle.put_run(UNTESTED, a_run(2, base="elsewhere"))
    assert not blame.is_base_under_test(queue, ROOT, (ONE,))


def test_of_several_base_runs_of_a_commit_the_latest_counts():
    world = a_world(prs=1, base_passed=False, test_retries=1)
    for _ in range(2):
        world.fails(1)
        world.build()
    world.fails()
    latest = blame.base_runs(world.queue)[world.host.tip]
    assert (latest.kind, latest.attempt) == (RunKind.BASE, 1)


def test_a_tip_that_landed_as_tested_is_known_to_pass():
    world = a_world(prs=1)
    world.passes(1)
    world.perform_pending_tasks()
    assert world.queue.target_branch.passed_bases[world.host.tip] == (BASE_ALONE,)


def test_a_pr_that_failed_on_an_untested_base_waits_for_a_base_run():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    assert (world.state(1), world.queue_text) == (PullRequestState.PENDING_FAILURE, "main ← 1✗ ?")


def test_a_pr_that_failed_on_a_base_whose_base_run_passed_fails():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    world.build()
    world.passes()
    assert world.state(1) is PullRequestState.FAILED
