"""What must be done outside is read off the facts."""

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import DirectMergeMode, LandingMethod, MergeMethod
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.states import CheckState
from mergeyard.engine.work import work
from tests.support.builders import a_parallel_yard, a_queue, a_yard


def test_a_queue_at_rest_asks_for_nothing():
    assert work(a_queue()) == ()


def test_runs_in_progress_ask_for_nothing():
    assert work(a_queue(prs=3)) == ()


def test_the_same_facts_give_the_same_work():
    yard = a_yard()
    yard.submit(1, 2)
    assert work(yard.queue) == work(replace(yard.queue))


# Runs.


def test_a_run_that_is_prepared_is_to_be_built():
    yard = a_yard(merge_method=MergeMethod.SQUASH)
    yard.submit(1)
    run = yard.run_of(1)
    assert work(yard.queue) == (
        t.BuildRun(
            run=run.id,
            onto=yard.host.tip,
            base=yard.host.tip,
            beneath=(),
            members=run.stack,
            method=MergeMethod.SQUASH,
            forbidden=frozenset(),
        ),
    )


def test_only_what_is_not_reused_is_to_be_built():
    yard = a_yard(prs=1)
    yard.submit(2)
    (build,) = yard.outstanding(t.BuildRun)
    assert isinstance(build, t.BuildRun)
    assert (build.onto, [member.number for member in build.members]) == (yard.run_of(1).tip, [2])


def test_whoever_builds_a_run_is_told_who_lies_beneath():
    yard = a_yard(prs=2)
    yard.submit(3)
    (build,) = yard.outstanding(t.BuildRun)
    assert isinstance(build, t.BuildRun)
    assert (build.beneath, build.members) == (yard.run_of(2).stack, yard.run_of(3).tested)


def test_a_run_that_goes_on_from_one_that_is_not_built_waits():
    yard = a_yard()
    yard.submit(1, 2)
    assert [task.run for task in work(yard.queue) if isinstance(task, t.BuildRun)] == [yard.run_of(1).id]


def test_commits_removed_from_the_target_are_forbidden():
    yard = a_yard()
    removed = frozenset({Sha("leaked")})
    seen = e.TargetSeen(
        tip=yard.host.tip, as_of=yard.queue.counters.turns, required=yard.host.required, removed=removed
    )
    yard.tell(seen)
    yard.submit(1)
    (build,) = yard.outstanding(t.BuildRun)
    assert isinstance(build, t.BuildRun)
    assert build.forbidden == removed


def test_the_branch_of_a_red_run_is_to_be_deleted():
    yard = a_yard(prs=2)
    yard.fails(2)
    assert work(yard.queue) == (t.DeleteBranch(run=yard.run_of(2).id),)


def test_the_branch_of_a_run_that_was_stopped_is_to_be_deleted():
    yard = a_yard(prs=1)
    run = yard.run_of(1)
    yard.cancel(1)
    assert work(yard.queue) == (t.DeleteBranch(run=run.id),)


def test_the_branch_of_a_run_that_passed_is_kept_until_it_landed():
    yard = a_yard(prs=2)
    yard.passes(2)
    assert work(yard.queue) == ()


def test_the_branch_of_a_run_that_landed_is_to_be_deleted():
    yard = a_yard(prs=1)
    run = yard.run_of(1)
    yard.passes(1)
    yard.intend()
    yard.perform(t.Land)
    assert work(yard.queue) == (t.DeleteBranch(run=run.id),)


def test_an_overdue_run_is_to_be_looked_at():
    yard = a_yard(prs=1, testing_timeout_minutes=1)
    yard.pass_time(60_000)
    assert work(yard.queue) == (t.LookAtChecks(run=yard.run_of(1).id),)


# Looks.


def test_a_touched_pr_is_to_be_looked_at():
    yard = a_yard(prs=1)
    yard.tell(e.PullTouched(number=PrNumber(1)))
    assert work(yard.queue) == (t.LookAtPull(number=PrNumber(1)),)


def test_a_touched_target_is_to_be_looked_at():
    yard = a_yard(prs=1)
    yard.tell(e.TargetTouched())
    assert work(yard.queue) == (t.LookAtTarget(known_tip=yard.host.tip, removed=frozenset()),)


def test_from_intent_to_outcome_looks_wait():
    yard = a_yard(prs=2)
    yard.passes(1)
    yard.intend()
    yard.tell(e.TargetTouched(), e.PullTouched(number=PrNumber(1)), e.PullTouched(number=PrNumber(2)))
    assert yard.outstanding(t.LookAtPull, t.LookAtTarget) == (t.LookAtPull(number=PrNumber(2)),)


# Landings.


def test_a_chosen_landing_is_to_be_read():
    yard = a_yard(prs=2)
    yard.tell(yard.verdict(CheckState.PASSED, 1), yard.verdict(CheckState.PASSED, 2))
    assert work(yard.queue) == (t.ReadPulls(landing=1, numbers=(PrNumber(1), PrNumber(2))),)


def test_an_intended_landing_is_to_be_landed():
    yard = a_yard(prs=1)
    run = yard.run_of(1)
    yard.passes(1)
    yard.intend()
    assert work(yard.queue) == (
        t.Land(
            landing=1,
            run=run.id,
            method=LandingMethod.TESTED_COMMIT,
            expected=yard.host.tip,
            members=run.stack,
            steps=run.chain,
            tested_tip=run.tip,
        ),
    )


def test_a_landing_beside_a_tip_that_moved_is_to_be_composed():
    yard = a_parallel_yard("x", "y")
    run, base = yard.run_of(2), yard.host.tip
    yard.passes(1)
    yard.perform_all()
    yard.passes(2)
    assert work(yard.queue) == (
        t.ComposeLanding(landing=2, base=base, onto=yard.host.tip, members=run.stack, tested=run.chain),
    )


# Heads.


def test_the_head_of_one_that_may_merge_directly_is_to_be_examined():
    yard = a_yard(direct_merge_mode=DirectMergeMode.ALWAYS)
    yard.submit(1)
    assert work(yard.queue) == (
        t.ExamineHead(
            ticket=yard.ticket(1),
            number=PrNumber(1),
            head=yard.head(1),
            tip=yard.host.tip,
            forbidden=frozenset(),
        ),
    )


def test_whoever_examines_a_head_is_told_which_commits_were_removed():
    yard = a_yard(direct_merge_mode=DirectMergeMode.ALWAYS)
    removed = frozenset({Sha("leaked")})
    seen = e.TargetSeen(
        tip=yard.host.tip, as_of=yard.queue.counters.turns, required=yard.host.required, removed=removed
    )
    yard.tell(seen)
    yard.submit(1)
    (examine,) = yard.outstanding(t.ExamineHead)
    assert isinstance(examine, t.ExamineHead)
    assert examine.forbidden == removed


def test_a_head_that_was_examined_is_not_examined_again():
    yard = a_yard(direct_merge_mode=DirectMergeMode.ALWAYS)
    yard.open(1)
    yard.checks.report(yard.head(1), ("unit",))
    yard.submit(1)
    yard.perform(t.ExamineHead)
    assert yard.outstanding(t.ExamineHead) == ()
