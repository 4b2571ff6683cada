"""Runs begin with the settings of the moment, are repeated with a new tip, and end when nobody needs them."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import RunId
from mergeyard.domain.instants import MINUTE
from mergeyard.domain.states import QueueState, RunStatus
from mergeyard.domain.transitions import IllegalTransition
from mergeyard.engine import running
from mergeyard.sim.world import START
from tests.support.builders import a_config, a_queue, a_yard


def test_a_run_keeps_the_settings_that_it_started_with():
    yard = a_yard(
        prs=1,
        required_statuses=("lint",),
        merge_method=MergeMethod.SQUASH,
        landing=LandingMethod.PROVIDER_MERGE,
        testing_timeout_minutes=7,
    )
    yard.tell(e.SettingsSaved(config=a_config(required_statuses=("lint",))))
    run = yard.run_of(1)
    assert (run.required, run.method, run.landing, run.timeout) == (
        *(("lint",), MergeMethod.SQUASH),
        *(LandingMethod.PROVIDER_MERGE, 7 * MINUTE),
    )


def test_every_run_has_a_name_of_its_own():
    yard = a_yard(prs=2)
    assert len({run.id for run in yard.queue.runs.values()}) == 2


# Repeating.


def test_a_repeated_run_keeps_all_commits_but_its_tip():
    yard = a_yard(prs=2, batch=2, test_retries=1)
    red = yard.run_of(1, 2)
    yard.fails(1, 2)
    assert yard.run_of(1, 2).chain == red.chain[:1]


def test_a_repeated_run_has_a_tip_of_its_own():
    yard = a_yard(prs=1, test_retries=1)
    red = yard.run_of(1)
    yard.fails(1)
    yard.build()
    again = yard.run_of(1)
    assert (again.tip != red.tip, again.chain[-1].interchangeable_with(red.chain[-1])) == (True, True)


def test_a_run_repeated_with_another_merge_method_makes_the_commits_of_its_batch_anew():
    yard = a_yard(prs=3, batch=2, batching_max_wait_time_minutes=0, test_retries=1)
    red = yard.run_of(3)
    yard.tell(e.SettingsSaved(config=replace(yard.queue.config, merge_method=MergeMethod.REBASE)))
    yard.fails(3)
    again = yard.run_of(3)
    assert (again.method, again.chain) == (MergeMethod.REBASE, red.chain[:2])


def test_a_bare_run_is_repeated_on_the_same_base():
    yard = a_yard(prs=1, proven=False, test_retries=1)
    for _ in range(2):
        yard.fails(1)
        yard.build()
    yard.fails()
    run = yard.run_of()
    assert (run.attempt, run.base, run.chain) == (1, yard.host.tip, ())


# Slots.


def test_active_runs_of_the_line_take_slots():
    assert running.free_slots(a_queue(prs=2, concurrency=5)) == 3


def test_a_run_that_is_over_takes_no_slot():
    yard = a_yard(prs=2, concurrency=5)
    yard.passes(1)
    assert running.free_slots(yard.queue) == 4


def test_a_bare_run_takes_a_slot():
    yard = a_yard(prs=1, proven=False, concurrency=5)
    yard.fails(1)
    assert running.free_slots(yard.queue) == 4


def test_a_bisection_takes_no_slot_of_the_line():
    yard = a_yard(prs=4, batch=4, concurrency=5)
    yard.fails(1, 2, 3, 4)
    assert running.free_slots(yard.queue) == 5


def test_a_bisection_takes_from_its_own_budget():
    yard = a_yard(prs=4, batch=4, bisection_concurrency=5)
    yard.fails(1, 2, 3, 4)
    assert running.bisection_room(yard.queue) == 2


def test_the_line_takes_nothing_from_the_budget_of_bisections():
    assert running.bisection_room(a_queue(prs=2, bisection_concurrency=5)) == 5


def test_more_active_runs_than_slots_leave_none_free():
    queue = replace(a_queue(prs=3), config=a_config(concurrency=1))
    assert running.free_slots(queue) == 0


def test_more_active_probes_than_the_budget_leave_no_room():
    yard = a_yard(prs=4, batch=4)
    yard.fails(1, 2, 3, 4)
    queue = replace(yard.queue, config=a_config(batch=4, bisection_concurrency=1))
    assert running.bisection_room(queue) == 0


def test_a_paused_queue_has_no_slots():
    queue = replace(a_queue(), ordered_state=QueueState.PAUSED)
    assert (running.free_slots(queue), running.bisection_room(queue)) == (0, 0)


# The end.


def test_a_run_that_nobody_needs_is_cancelled():
    yard = a_yard(prs=1)
    run = yard.run_of(1)
    yard.cancel(1)
    assert yard.queue.runs[run.id].status is RunStatus.CANCELLED


def test_a_run_that_nobody_needs_is_kept_until_its_branch_is_gone():
    yard = a_yard(prs=1)
    run = yard.run_of(1)
    yard.cancel(1)
    yard.perform(t.DeleteBranch)
    assert run.id not in yard.queue.runs


def test_a_run_that_is_stopped_while_it_is_being_built_may_have_a_branch():
    yard = a_yard()
    yard.submit(1)
    run = yard.run_of(1)
    yard.cancel(1)
    assert yard.outstanding(t.DeleteBranch) == (t.DeleteBranch(run=run.id),)


def test_a_run_that_is_stopped_while_it_waits_for_another_has_no_branch():
    yard = a_yard()
    yard.submit(1, 2)
    run = yard.run_of(2)
    assert [each.id for each in yard.cancel(2).finished] == [run.id]


def test_a_bare_run_is_not_needed_once_its_base_is_out_of_question():
    yard = a_yard(prs=1, proven=False)
    yard.fails(1)
    yard.build()
    bare = yard.run_of()
    yard.cancel(1)
    assert yard.queue.runs[bare.id].status is RunStatus.CANCELLED


def test_the_run_of_a_landing_is_needed():
    yard = a_yard(prs=1)
    yard.passes(1)
    assert yard.run_of(1).id in running.needed_runs(replace(yard.queue, line=a_queue().line))


def test_a_decided_run_cannot_be_decided_again():
    yard = a_yard(prs=1)
    yard.passes(1)
    with pytest.raises(IllegalTransition):
        running.decide(yard.queue, yard.run_of(1), RunStatus.FAILED, START)


def test_after_an_illegal_change_nothing_is_changed():
    yard = a_yard(prs=1)
    yard.passes(1)
    before = yard.queue
    with pytest.raises(IllegalTransition):
        running.decide(yard.queue, yard.run_of(1), RunStatus.FAILED, START)
    assert (yard.queue, yard.run_of(1).status) == (before, RunStatus.SUCCEEDED)


def test_a_run_is_known_by_its_name():
    queue = a_queue(prs=1)
    (run,) = queue.runs.values()
    other = replace(run, id=RunId("other"))
    assert running.put(queue, other).runs == {run.id: run, other.id: other}
