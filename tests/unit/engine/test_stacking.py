"""What a run stands upon: the present tip, all ahead in its lane, and the commits of the runs ahead."""

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import Mode
from mergeyard.domain.states import CheckState, PrState
from mergeyard.domain.targets import named
from tests.support.builders import a_config, a_parallel_yard, a_yard, prs_beneath, prs_tested


def test_a_run_stands_on_the_present_tip():
    yard = a_yard(prs=1)
    assert yard.run_of(1).base == yard.host.tip


def test_a_run_stands_upon_all_ahead():
    yard = a_yard(prs=3)
    run = yard.run_of(3)
    assert (prs_beneath(run), prs_tested(run)) == ((1, 2), (3,))


def test_a_run_tests_its_whole_batch():
    yard = a_yard(prs=4, batch=2)
    run = yard.run_of(3, 4)
    assert (prs_beneath(run), prs_tested(run)) == ((1, 2), (3, 4))


def test_in_parallel_mode_a_run_stands_upon_what_it_depends_on():
    yard = a_parallel_yard("x", "y", "x")
    assert prs_beneath(yard.run_of(3)) == (1,)


def test_a_run_reuses_the_commits_of_the_run_ahead():
    yard = a_yard(prs=2)
    assert yard.run_of(2).chain[:1] == yard.run_of(1).chain


def test_only_the_batchs_own_commits_are_new():
    yard = a_yard(prs=2)
    (first,), (_, second) = yard.run_of(1).chain, yard.run_of(2).chain
    assert second.parent == first.commit


def test_a_run_whose_predecessor_is_not_built_goes_on_from_that_one_later():
    yard = a_yard()
    yard.submit(1, 2)
    assert (yard.run_of(2).extends, yard.run_of(2).chain) == (yard.run_of(1).id, ())


def test_a_run_started_later_reuses_what_is_built():
    yard = a_yard(prs=1)
    yard.submit(2)
    run = yard.run_of(2)
    assert (run.extends, run.chain) == (None, yard.run_of(1).chain)


def test_a_run_that_starts_after_some_ahead_landed_reuses_the_rest():
    yard = a_yard(prs=2)
    yard.passes(1)
    yard.perform_all()
    yard.submit(3)
    yard.build()
    run = yard.run_of(3)
    assert (run.base, prs_beneath(run), run.chain[0]) == (yard.host.tip, (2,), yard.run_of(2).chain[1])


def test_upon_two_lanes_a_run_reuses_the_commits_of_the_first():
    yard = a_parallel_yard("x", "y", "xy")
    run = yard.run_of(3)
    assert (prs_beneath(run), run.chain[0], run.chain[1].parent) == (
        *((1, 2), yard.run_of(1).chain[0]),
        yard.run_of(1).tip,
    )


def test_a_run_does_not_reuse_a_lane_whose_tip_it_does_not_stand_on():
    """1 landed, so 2 stands beside the tip, and a run upon 2 begins on the tip."""
    yard = a_parallel_yard("x", "y")
    yard.passes(1)
    yard.perform_all()
    yard.submit(3, targets=yard.stay(2).targets)
    yard.build()
    run = yard.run_of(3)
    assert (run.base, prs_beneath(run), run.chain[0].parent) == (yard.host.tip, (2,), yard.host.tip)


def test_a_run_does_not_reuse_a_run_that_was_cancelled():
    """3 speaks for 2, whose own run was stopped for a restart: it is not run again, and nobody builds upon it."""
    yard = a_parallel_yard("y", "x", "x", depth=0)
    yard.tell(e.SettingsSaved(config=a_config(mode=Mode.PARALLEL, depth=0, concurrency=1)))
    yard.restart(2)
    yard.tell(yard.verdict(CheckState.PASSED, 1), yard.verdict(CheckState.PASSED, 3), e.TargetTouched())
    yard.submit(4, targets=named("x", "y"))
    assert (prs_beneath(yard.run_of(4)), yard.run_of(4).chain) == ((1, 2, 3), yard.run_of(1).chain)


def test_a_run_that_waits_to_be_built_begins_anew_when_one_beneath_it_landed():
    yard = a_parallel_yard("x", "y")
    yard.submit(3, targets=named("x", "y"))
    yard.passes(2)
    yard.intend()
    yard.perform(t.Land)
    run = yard.run_of(3)
    assert (run.base, prs_beneath(run)) == (yard.host.tip, (1,))


def test_a_chain_whose_predecessors_landed_as_tested_stays_a_fast_forward():
    yard = a_yard(prs=2)
    run = yard.run_of(2)
    yard.passes(1)
    yard.perform_all()
    yard.passes(2)
    yard.perform_all()
    assert (yard.host.tip, yard.state(2)) == (run.tip, PrState.MERGED)
