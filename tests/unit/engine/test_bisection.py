"""The culprit of a failed batch is the last pull request of its shortest failed prefix."""

import pytest

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import MergeMethod, Mode, OptimizationMode
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.pull_requests import RequiredStatuses
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import CheckState, PullRequestState, QueueState, Reason
from tests.support.builders import (
    QueueWorld,
    a_config,
    a_failed_prefix_on_an_untested_tip,
    a_wait_reason,
    a_world,
    prs_ahead,
    prs_tested,
)


def a_failed_batch(count: int = 4, budget: int = 5, *, behind: bool = False, retries: int = 0) -> QueueWorld:
    """A batch of so many that just failed; with another behind it, so that nothing of it lands as tested."""
    world = a_world(prs=count, batch=count, bisection_concurrency=budget, test_retries=retries)
    if behind:
        world.submit(9, no_batch=True)
        world.build()
    for _ in range(retries + 1):
        world.fails(*range(1, count + 1))
        world.build()
    return world


def probes(world: QueueWorld) -> list[tuple[int, ...]]:
    (bisection,) = world.queue.bisections
    return sorted(prs_tested(world.queue.runs[run]) for run in bisection.runs if world.queue.runs[run].is_active)


# Which prefixes are tested.


def test_the_whole_batch_is_known_to_fail_and_is_not_run_again():
    assert (1, 2, 3, 4) not in probes(a_failed_batch())


@pytest.mark.parametrize(
    ("budget", "lengths"), [(1, [2]), (2, [2, 3]), (3, [1, 2, 3]), (9, [1, 2, 3])], ids=["1", "2", "3", "9"]
)
def test_prefixes_are_evenly_spaced_as_many_at_once_as_the_budget_allows(budget: int, lengths: list[int]):
    assert [len(probe) for probe in probes(a_failed_batch(4, budget))] == lengths


@pytest.mark.parametrize(("budget", "lengths"), [(1, [4]), (2, [3, 6]), (3, [2, 4, 6])], ids=["1", "2", "3"])
def test_prefixes_of_eight_are_evenly_spaced(budget: int, lengths: list[int]):
    assert [len(probe) for probe in probes(a_failed_batch(8, budget))] == lengths


def test_the_active_batches_go_on_without_the_batch():
    world = a_failed_batch(behind=True)
    assert world.queue_text == "main ← 9… ⋔ 1+2+3+4 : 1… 1+2… 1+2+3…"


def test_two_bisections_share_the_budget():
    world = a_world(prs=8, batch=4, bisection_concurrency=4)
    world.fails(1, 2, 3, 4)
    world.build()
    world.fails(5, 6, 7, 8)
    assert world.queue_text == "main ⋔ 1+2+3+4 : 1… 1+2… 1+2+3… ⋔ 5+6+7+8 : 5+6…"


def test_free_room_in_the_budget_is_used():
    world = a_failed_batch(8, budget=2)
    world.passes(1, 2, 3)
    assert probes(world) == [(1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 6)]


def test_a_probe_that_is_retried_shows_nothing_yet():
    world = a_failed_batch(2, retries=1)
    world.fails(1)
    assert (world.queue_text, world.run_of(1).attempt) == ("main ⋔ 1+2 : 1…", 1)


def test_a_probe_that_is_repeated_waits_for_room():
    world = a_failed_batch(4, budget=2, retries=1)
    world.apply(e.SettingsSaved(config=a_config(batch=4, bisection_concurrency=1, test_retries=1)))
    world.fails(1, 2)
    assert (probes(world), world.run_of(1, 2).attempt) == ([(1, 2, 3)], 0)


def test_in_a_paused_queue_a_bisection_does_not_continue():
    world = a_failed_batch(4, budget=1)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.passes(1, 2)
    assert (probes(world), world.state(1)) == ([], PullRequestState.PENDING_FAILURE)


def test_what_failed_while_the_queue_was_paused_is_probed_again():
    world = a_failed_batch(4, budget=1)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.fails(1, 2)
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    assert probes(world) == [(1, 2)]


def test_when_no_status_is_required_any_longer_the_bisection_ends():
    world = a_failed_batch(2)
    world.apply(
        e.TargetBranchObserved(
            tip=world.host.tip, observed_at_revision=world.queue.counters.revision, required_statuses=RequiredStatuses()
        )
    )
    assert (world.queue.bisections, world.reason(1)) == ((), Reason.NO_REQUIRED_STATUSES)


def test_when_no_status_is_required_any_longer_prs_without_a_slot_wait_too():
    world = a_failed_batch(2, behind=True)
    world.apply(
        e.SettingsSaved(config=a_config(batch=2, concurrency=1)),
        e.TargetBranchObserved(
            tip=world.host.tip, observed_at_revision=world.queue.counters.revision, required_statuses=RequiredStatuses()
        ),
    )
    assert (world.state(1), world.reason(1)) == (PullRequestState.NOT_READY, Reason.NO_REQUIRED_STATUSES)


# The base of probes.


def test_a_probe_is_based_on_the_base_of_the_failed_run():
    world = a_world(prs=2, batch=2)
    base = world.host.tip
    world.push_to_target_branch({"other": "other"})
    world.fails(1, 2)
    assert world.run_of(1).base == base


def test_a_probe_keeps_its_base_when_the_target_branch_moves():
    world = a_failed_batch(2)
    probe = world.run_of(1)
    world.push_to_target_branch({"other": "other"})
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    assert world.run_of(1) == probe


def test_a_probe_reuses_the_commits_of_the_failed_run_but_its_tip():
    world = a_world(prs=4, batch=4)
    failed = world.run_of(1, 2, 3, 4)
    world.fails(1, 2, 3, 4)
    assert world.run_of(1, 2, 3).chain == failed.chain[:2]


def test_a_probe_with_another_merge_method_reuses_nothing():
    world = a_world(prs=4, batch=4)
    world.apply(e.SettingsSaved(config=a_config(batch=4, merge_method=MergeMethod.REBASE)))
    world.fails(1, 2, 3, 4)
    assert world.run_of(1, 2, 3).chain == ()


def test_a_batch_that_failed_on_top_of_others_is_bisected_on_top_of_them():
    world = a_world(prs=4, batch=2)
    under = world.run_of(1, 2).tip
    world.fails(3, 4)
    world.passes(1, 2)
    world.perform_pending_tasks()
    assert world.run_of(3).base == under == world.host.tip


def test_a_probe_is_a_run_of_a_bisection():
    assert a_failed_batch(2).run_of(1).kind is RunKind.BISECTION


def test_a_batch_in_a_bisection_shows_nothing_about_its_base():
    world = a_failed_prefix_on_an_untested_tip()
    assert world.host.tip not in world.queue.target_branch.passed_bases


def test_when_a_probe_cannot_be_built_the_bisection_is_over_and_all_are_tested_again_together():
    world = a_world(prs=3, batch=3)
    world.apply(e.SettingsSaved(config=a_config(batch=3, merge_method=MergeMethod.REBASE)))
    world.fails(1, 2, 3)
    probe = world.run_of(1, 2)
    world.apply(
        e.RunBuildRefused(
            run=probe.id, submission_id=world.submission_id(2), refusal=e.BuildRefusal.CONFLICTS_WITH_STACK
        )
    )
    assert (world.queue_text, world.reason(2)) == ("main ← 1+2+3…", Reason.TEST_BRANCH_NOT_BUILT)


def test_a_probe_that_cannot_be_built_is_ignored_when_the_bisection_ended_in_the_same_decision():
    world = a_world(prs=3, batch=3)
    world.apply(e.SettingsSaved(config=a_config(batch=3, merge_method=MergeMethod.REBASE)))
    world.fails(1, 2, 3)
    probe = world.run_of(1, 2)
    refused = e.RunBuildRefused(
        run=probe.id, submission_id=world.submission_id(2), refusal=e.BuildRefusal.CONFLICTS_WITH_STACK
    )
    world.apply(e.RestartRequested(number=PullRequestNumber(1)), refused)
    assert (world.queue_text, world.reason(2)) == ("main ← 1+2+3…", Reason.TESTS_RESTARTED)


# What it finds.


def test_the_prs_of_a_passed_prefix_wait_again_together():
    world = a_failed_batch(4, behind=True)
    world.passes(1, 2)
    assert (world.reason(1), world.reason(2), world.queue_text) == (
        *(Reason.BISECTION_PASSED, Reason.BISECTION_PASSED),
        "main ← 9… ← 1+2… ⋔ 3+4 : 1+2+3…",
    )


def test_prs_behind_a_failed_prefix_wait_again():
    world = a_failed_batch(4, budget=1, behind=True)
    world.fails(1, 2)
    assert (world.reason(3), world.reason(4), world.queue_text) == (
        *(Reason.BISECTION_LEFT_OUT, Reason.BISECTION_LEFT_OUT),
        "main ← 9… ← 3+4… ⋔ 1+2 : 1…",
    )


def test_probes_that_can_show_nothing_new_are_stopped():
    world = a_failed_batch(4, behind=True)
    world.passes(1, 2)
    assert probes(world) == [(1, 2, 3)]


def test_results_may_come_in_any_order():
    world = a_failed_batch(4, behind=True)
    world.fails(1, 2, 3)
    world.passes(1, 2)
    (bisection,) = world.queue.bisections
    assert bisection.suspect == world.submission_id(3)


def test_results_may_come_all_at_once():
    world = a_failed_batch(4, behind=True)
    world.apply(
        world.observe_result(CheckState.PASSED, 1),
        world.observe_result(CheckState.PASSED, 1, 2),
        world.observe_result(CheckState.FAILED, 1, 2, 3),
    )
    (bisection,) = world.queue.bisections
    assert (bisection.members, world.submission(1).keep_together) == ((world.submission_id(3),), ())


def test_the_first_pr_of_a_batch_can_be_the_culprit():
    world = a_failed_batch(2)
    world.fails(1)
    assert (world.state(1), world.submission(1).stacked_on, world.queue_text) == (
        PullRequestState.FAILED,
        (),
        "main ← 2…",
    )


def test_the_bisection_goes_on_until_a_failed_prefix_directly_follows_a_passed_one():
    world = a_failed_batch(4, budget=1, behind=True)
    world.passes(1, 2)
    world.build()
    world.passes(1, 2, 3)
    (bisection,) = world.queue.bisections
    assert (bisection.is_searching, bisection.suspect) == (False, world.submission_id(4))


# A passed prefix that lands as it was tested.


def test_a_passed_prefix_lands_as_tested_when_nothing_else_is_under_test():
    world = a_failed_batch(4)
    run = world.run_of(1, 2)
    world.passes(1, 2)
    world.perform_pending_tasks()
    assert (world.state(1), world.state(2), world.submission(2).verified_by) == (
        PullRequestState.MERGED,
        PullRequestState.MERGED,
        run.id,
    )


def test_a_passed_prefix_does_not_land_as_tested_when_something_else_is_under_test():
    world = a_failed_batch(2, behind=True)
    world.passes(1)
    assert world.queue.landing is None


def test_a_passed_prefix_does_not_land_as_tested_when_the_target_moved():
    world = a_failed_batch(2)
    world.push_to_target_branch({"other": "other"})
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    world.passes(1)
    assert (world.queue.landing, world.run_of(1).base) == (None, world.host.tip)


def test_a_passed_prefix_does_not_land_as_tested_on_top_of_a_pr_that_was_returned_before():
    world = a_failed_batch(8, budget=1, behind=True)
    world.passes(1, 2, 3, 4)
    world.cancel(9)
    for number in 1, 2, 3, 4:
        world.cancel(number)
    assert world.queue.landing is None


def test_a_passed_prefix_does_not_land_as_tested_while_there_is_another_bisection():
    world = a_world(prs=4, batch=2)
    world.fails(1, 2)
    world.build()
    world.fails(3, 4)
    world.build()
    world.passes(1)
    assert world.queue.landing is None


def test_while_modes_switch_a_passed_prefix_waits_again():
    world = a_failed_batch(2)
    world.apply(e.SettingsSaved(config=a_config(mode=Mode.PARALLEL, batch=2)))
    world.passes(1)
    assert (world.state(1), world.queue.bisections) == (PullRequestState.PENDING, ())


SKIP = OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS


def a_world_with_a_suspect(*, skip: bool = False, retries: int = 0, budget: int = 5) -> QueueWorld:
    """2 fails on top of 1, which is about to be merged."""
    world = a_world(
        prs=2,
        batch=2,
        test_retries=retries,
        bisection_concurrency=budget,
        optimization_mode=SKIP if skip else OptimizationMode.OFF,
    )
    for _ in range(retries + 1):
        world.fails(1, 2)
        world.build()
    world.passes(1)
    return world


def a_world_with_a_confirming_run(*, retries: int = 0) -> QueueWorld:
    """1 has merged, and 2 is tested once more on top of it."""
    world = a_world_with_a_suspect(retries=retries)
    world.perform_pending_tasks()
    return world


def after_an_untested_push() -> QueueWorld:
    """1 has merged, a user pushed while the queue was paused, and 2 is tested once more on top of that."""
    world = a_world_with_a_suspect()
    world.save_landing_intent()
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.perform(t.Land)
    world.push_to_target_branch({"other": "other"})
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    world.build()
    return world


# Waiting.


def test_the_suspect_waits_until_the_others_have_merged():
    world = a_world_with_a_suspect()
    assert (world.state(2), world.queue_text) == (PullRequestState.PENDING_FAILURE, "main ← 1✓ ⋔ 2")


def test_the_suspect_waits_again_when_one_of_the_others_leaves_without_merging():
    world = a_world_with_a_suspect()
    world.cancel(1)
    assert (world.reason(2), world.queue_text) == (Reason.BATCHMATE_REMOVED, "main ← 2…")


# Without one more run.


def test_with_the_optimization_the_suspect_fails_when_the_others_have_merged():
    world = a_world_with_a_suspect(skip=True)
    world.perform_pending_tasks()
    assert (world.state(2), world.reason(2)) == (PullRequestState.FAILED, Reason.FAILED_BY_OPTIMIZATION)


def test_a_suspect_that_fails_names_the_prs_that_it_failed_with():
    world = a_world_with_a_suspect(skip=True)
    world.perform_pending_tasks()
    assert world.submission(2).stacked_on == (1,)


# With one more run.


def test_without_the_optimization_the_suspect_is_tested_once_more_on_top_of_the_others():
    world = a_world_with_a_confirming_run()
    run = world.run_of(2)
    assert (world.state(2), run.base, prs_ahead(run)) == (PullRequestState.TESTING, world.host.tip, ())


def test_a_suspect_that_fails_its_confirming_run_fails():
    world = a_world_with_a_confirming_run()
    world.fails(2)
    assert (world.state(2), world.reason(2), world.submission(2).stacked_on) == (
        PullRequestState.FAILED,
        Reason.TEST_RUN_FAILED,
        (1,),
    )


def test_when_the_suspect_failed_the_bisection_is_over():
    world = a_world_with_a_confirming_run()
    world.fails(2)
    assert world.queue.bisections == ()


def test_a_suspect_that_passes_its_confirming_run_waits_again():
    world = a_world_with_a_confirming_run()
    world.passes(2)
    assert (world.reason(2), world.queue_text) == (Reason.BISECTION_PASSED, "main ← 2…")


def test_a_confirming_run_is_repeated_for_its_retries():
    world = a_world_with_a_confirming_run(retries=1)
    world.fails(2)
    world.build()
    assert (world.state(2), world.run_of(2).attempt) == (PullRequestState.TESTING, 1)


def test_a_confirming_run_that_failed_while_the_queue_was_paused_is_run_again():
    world = a_world_with_a_confirming_run()
    failed_run = world.run_of(2)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.fails(2)
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    world.build()
    assert (world.state(2), world.run_of(2).id != failed_run.id) == (PullRequestState.TESTING, True)


def test_a_confirming_run_waits_for_room():
    """The only room is taken by the bisection of 3 and 4."""
    world = a_world(prs=4, batch=2, bisection_concurrency=1)
    world.fails(1, 2)
    world.build()
    world.fails(3, 4)
    world.passes(1)
    world.build()
    world.passes(1)
    world.perform_pending_tasks()
    assert (world.state(1), world.queue_text) == (PullRequestState.MERGED, "main ⋔ 2 ⋔ 3+4 : 3…")


def test_a_confirming_run_that_is_repeated_waits_for_room():
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
    assert (world.run_of(2).is_active, world.queue_text) == (False, "main ⋔ 2 ⋔ 3+4 : 3…")


def test_without_a_target_branch_nothing_is_confirmed():
    world = a_world_with_a_suspect()
    world.save_landing_intent()
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.perform(t.Land)
    gone = e.TargetBranchObserved(
        tip=None, observed_at_revision=world.queue.counters.revision, required_statuses=world.host.required_statuses
    )
    world.apply(gone, e.StateRequested(state=QueueState.RUNNING))
    assert world.queue_text == "main ⋔ 2"


# On an untested base.


def test_a_suspect_that_failed_on_an_untested_base_waits_for_a_base_run():
    world = after_an_untested_push()
    world.fails(2)
    assert (world.state(2), world.queue_text) == (PullRequestState.PENDING_FAILURE, "main ? ⋔ 2")


def test_a_suspect_that_failed_on_a_base_that_passes_fails():
    world = after_an_untested_push()
    world.fails(2)
    world.build()
    world.passes()
    assert (world.state(2), world.reason(2)) == (PullRequestState.FAILED, Reason.TEST_RUN_FAILED)


def test_a_suspect_that_failed_on_a_base_that_failed_too_is_held():
    world = after_an_untested_push()
    world.fails(2)
    world.build()
    world.fails()
    assert (world.state(2), world.reason(2), world.queue.bisections) == (
        PullRequestState.PENDING,
        Reason.BASE_BROKEN,
        (),
    )


# Failed alone.


def test_a_pr_that_failed_alone_on_an_untested_base_waits_for_a_base_run():
    world = a_failed_prefix_on_an_untested_tip()
    assert (world.state(3), world.queue_text) == (PullRequestState.PENDING_FAILURE, "main ← 4… ? ⋔ 3")


def test_a_pr_that_failed_alone_on_a_base_that_passes_fails():
    world = a_failed_prefix_on_an_untested_tip()
    world.passes()
    assert (world.state(3), world.reason(3), world.submission(3).stacked_on) == (
        PullRequestState.FAILED,
        Reason.TEST_RUN_FAILED,
        (),
    )


def test_a_pr_that_failed_alone_on_a_base_that_failed_too_is_held():
    world = a_failed_prefix_on_an_untested_tip()
    world.fails()
    assert (world.state(3), world.wait_reason(3), world.queue.bisections) == (
        PullRequestState.PENDING,
        a_wait_reason(Reason.BASE_BROKEN),
        (),
    )
