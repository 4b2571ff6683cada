"""Pending tasks are derived from the state of the queue."""

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import DirectMergeMode, LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.states import CheckState
from mergeyard.engine.tasks import pending_tasks
from tests.support.builders import QueueWorld, a_parallel_world, a_queue, a_world


def test_a_queue_at_rest_asks_for_nothing():
    assert pending_tasks(a_queue()) == ()


def test_runs_in_progress_ask_for_nothing():
    assert pending_tasks(a_queue(prs=3)) == ()


def test_the_same_queue_gives_the_same_tasks():
    world = a_world()
    world.submit(1, 2)
    assert pending_tasks(world.queue) == pending_tasks(replace(world.queue))


# Runs.


def test_a_run_that_is_prepared_is_to_be_built():
    world = a_world(merge_method=MergeMethod.SQUASH)
    world.submit(1)
    run = world.run_of(1)
    assert pending_tasks(world.queue) == (
        t.BuildRun(
            run=run.id,
            onto=world.host.tip,
            base=world.host.tip,
            built_members=(),
            members=run.stack,
            merge_method=MergeMethod.SQUASH,
            forbidden_commits=frozenset(),
        ),
    )


def test_only_what_is_not_reused_is_to_be_built():
    world = a_world(prs=1)
    world.submit(2)
    (build,) = world.pending_tasks(t.BuildRun)
    assert isinstance(build, t.BuildRun)
    assert (build.onto, [member.number for member in build.members]) == (world.run_of(1).tip, [2])


def test_the_task_to_build_a_run_names_the_prs_ahead():
    world = a_world(prs=2)
    world.submit(3)
    (build,) = world.pending_tasks(t.BuildRun)
    assert isinstance(build, t.BuildRun)
    assert (build.built_members, build.members) == (world.run_of(2).stack, world.run_of(3).tested_members)


def test_a_run_that_continues_a_run_that_is_not_built_waits():
    world = a_world()
    world.submit(1, 2)
    assert [task.run for task in pending_tasks(world.queue) if isinstance(task, t.BuildRun)] == [world.run_of(1).id]


def test_commits_removed_from_the_target_are_forbidden():
    world = a_world()
    removed = frozenset({Sha("leaked")})
    seen = e.TargetBranchObserved(
        tip=world.host.tip,
        observed_at_revision=world.queue.counters.revision,
        required_statuses=world.host.required_statuses,
        removed_commits=removed,
    )
    world.apply(seen)
    world.submit(1)
    (build,) = world.pending_tasks(t.BuildRun)
    assert isinstance(build, t.BuildRun)
    assert build.forbidden_commits == removed


def test_the_branch_of_a_failed_run_is_to_be_deleted():
    world = a_world(prs=2)
    world.fails(2)
    assert pending_tasks(world.queue) == (t.DeleteBranch(run=world.run_of(2).id),)


def test_the_branch_of_a_run_that_was_stopped_is_to_be_deleted():
    world = a_world(prs=1)
    run = world.run_of(1)
    world.cancel(1)
    assert pending_tasks(world.queue) == (t.DeleteBranch(run=run.id),)


def test_the_branch_of_a_run_that_passed_is_kept_until_it_landed():
    world = a_world(prs=2)
    world.passes(2)
    assert pending_tasks(world.queue) == ()


def test_the_branch_of_a_run_that_landed_is_to_be_deleted():
    world = a_world(prs=1)
    run = world.run_of(1)
    world.passes(1)
    world.save_landing_intent()
    world.perform(t.Land)
    assert pending_tasks(world.queue) == (t.DeleteBranch(run=run.id),)


def test_the_checks_of_an_overdue_run_are_to_be_read():
    world = a_world(prs=1, testing_timeout_minutes=1)
    world.advance_time(60_000)
    assert pending_tasks(world.queue) == (t.ReadChecks(run=world.run_of(1).id),)


# Reads.


def test_a_dirty_pr_is_to_be_read():
    world = a_world(prs=1)
    world.apply(e.PullRequestDirty(number=PullRequestNumber(1)))
    assert pending_tasks(world.queue) == (t.ReadPullRequest(number=PullRequestNumber(1)),)


def test_a_dirty_target_branch_is_to_be_read():
    world = a_world(prs=1)
    world.apply(e.TargetBranchDirty())
    assert pending_tasks(world.queue) == (t.ReadTargetBranch(known_tip=world.host.tip),)


def test_from_intent_to_outcome_reads_wait():
    world = a_world(prs=2)
    world.passes(1)
    world.save_landing_intent()
    world.apply(
        e.TargetBranchDirty(),
        e.PullRequestDirty(number=PullRequestNumber(1)),
        e.PullRequestDirty(number=PullRequestNumber(2)),
    )
    assert world.pending_tasks(t.ReadPullRequest, t.ReadTargetBranch) == (
        t.ReadPullRequest(number=PullRequestNumber(2)),
    )


# Landings.


def test_a_chosen_landing_is_to_be_read():
    world = a_world(prs=2)
    world.apply(world.observe_result(CheckState.PASSED, 1), world.observe_result(CheckState.PASSED, 2))
    assert pending_tasks(world.queue) == (
        t.ReadPullRequests(landing=1, numbers=(PullRequestNumber(1), PullRequestNumber(2))),
    )


def test_an_intended_landing_is_to_be_landed():
    world = a_world(prs=1)
    run = world.run_of(1)
    world.passes(1)
    world.save_landing_intent()
    assert pending_tasks(world.queue) == (
        t.Land(
            landing=1,
            run=run.id,
            landing_method=LandingMethod.TESTED_COMMIT,
            expected_tip=world.host.tip,
            members=run.stack,
            steps=run.chain,
            test_branch_tip=run.tip,
        ),
    )


def test_a_landing_whose_tip_moved_is_to_be_rebased():
    world = a_parallel_world("x", "y")
    run, base = world.run_of(2), world.host.tip
    world.passes(1)
    world.perform_pending_tasks()
    world.passes(2)
    assert pending_tasks(world.queue) == (
        t.RebaseLanding(landing=2, base=base, onto=world.host.tip, members=run.stack, tested_steps=run.chain),
    )


# The checks of a head.


def reads_head_checks(world: QueueWorld) -> list[bool]:
    return [task.read_head_checks for task in world.pending_tasks(t.BuildRun) if isinstance(task, t.BuildRun)]


def test_the_checks_of_the_head_of_a_pr_alone_on_the_target_branch_are_to_be_read():
    world = a_world(direct_merge_mode=DirectMergeMode.ALWAYS)
    world.submit(1)
    assert reads_head_checks(world) == [True]


def test_without_the_setting_no_checks_of_a_head_are_to_be_read():
    world = a_world()
    world.submit(1)
    assert reads_head_checks(world) == [False]


def test_the_checks_of_the_head_of_a_pr_behind_another_are_not_to_be_read():
    world = a_world(prs=1, direct_merge_mode=DirectMergeMode.ALWAYS)
    world.submit(2)
    assert reads_head_checks(world) == [False]


def test_the_checks_of_heads_in_a_batch_of_several_are_not_to_be_read():
    world = a_world(batch=2, direct_merge_mode=DirectMergeMode.ALWAYS)
    world.submit(1, 2)
    assert reads_head_checks(world) == [False]


def test_a_repeated_run_is_tested_for_real():
    world = a_world(prs=1, test_retries=1, direct_merge_mode=DirectMergeMode.ALWAYS)
    world.fails(1)
    assert reads_head_checks(world) == [False]


def test_a_restarted_run_is_tested_for_real():
    world = a_world(prs=1, direct_merge_mode=DirectMergeMode.ALWAYS)
    world.restart(1)
    assert reads_head_checks(world) == [False]


def test_a_run_of_a_bisection_is_tested_for_real():
    world = a_world(prs=2, batch=2, direct_merge_mode=DirectMergeMode.ALWAYS)
    world.fails(1, 2)
    assert reads_head_checks(world) == [False]
