"""A change of mode ends when all runs are over and nothing more can land."""

import pytest

from mergeyard.domain import events as e
from mergeyard.domain.config import Mode
from mergeyard.domain.journal import QueueChanged
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import CheckState, PrState, QueueState
from tests.support.builders import Yard, a_config, a_parallel_yard, a_yard

PARALLEL = a_config(mode=Mode.PARALLEL)


def a_switching_yard(prs: int = 2) -> Yard:
    yard = a_yard(prs=prs)
    yard.tell(e.SettingsSaved(config=PARALLEL))
    return yard


def test_while_modes_switch_nothing_enters():
    yard = a_switching_yard()
    yard.submit(3)
    assert yard.state(3) is PrState.NOT_READY


def test_while_modes_switch_no_run_starts():
    yard = a_yard(prs=2, concurrency=1)
    yard.tell(e.SettingsSaved(config=a_config(mode=Mode.PARALLEL, concurrency=1)))
    yard.passes(1)
    assert yard.picture == "main ← 1✓"


def test_what_passed_merges():
    yard = a_switching_yard()
    yard.passes(1)
    yard.perform_all()
    assert (yard.state(1), yard.queue.state) == (PrState.MERGED, QueueState.SWITCHING_MODES)


def test_when_everything_merged_the_mode_is_switched():
    yard = a_switching_yard()
    yard.tell(yard.verdict(CheckState.PASSED, 1), yard.verdict(CheckState.PASSED, 2))
    yard.perform_all()
    assert (yard.queue.mode, yard.queue.state) == (Mode.PARALLEL, QueueState.RUNNING)


def test_the_rest_goes_back():
    yard = a_switching_yard(prs=1)
    yard.fails(1)
    assert (yard.state(1), yard.reason(1)) == (PrState.PENDING, Reason.MODE_SWITCHED)


def test_those_behind_a_red_one_go_back_when_nothing_more_can_land():
    yard = a_switching_yard()
    yard.passes(2)
    yard.fails(1)
    assert [yard.reason(number) for number in (1, 2)] == [Reason.MODE_SWITCHED, Reason.MODE_SWITCHED]


def test_a_bisection_ends_with_the_switch():
    yard = a_yard(prs=4, batch=4, bisection_concurrency=1)
    yard.fails(1, 2, 3, 4)
    yard.build()
    yard.tell(e.SettingsSaved(config=a_config(mode=Mode.PARALLEL, batch=4)))
    yard.fails(1, 2)
    assert (yard.reason(1), yard.queue.bisections) == (Reason.MODE_SWITCHED, ())


def test_the_end_of_the_switch_is_told():
    yard = a_switching_yard(prs=1)
    told = [entry for entry in yard.fails(1).journal if isinstance(entry, QueueChanged)]
    assert [(entry.source, entry.to, entry.reason) for entry in told] == [
        (QueueState.SWITCHING_MODES, QueueState.RUNNING, Reason.MODE_SWITCHED)
    ]


def test_after_the_switch_the_former_state_returns():
    yard = a_yard(prs=1)
    yard.tell(e.StateRequested(state=QueueState.DRAINING))
    yard.tell(e.SettingsSaved(config=PARALLEL))
    yard.fails(1)
    assert yard.queue.state is QueueState.DRAINING


def test_those_admitted_without_targets_count_as_all():
    yard = a_switching_yard()
    yard.fails(2)
    yard.fails(1)
    yard.build()
    assert yard.picture == "main ← 1… ∥ 1 ← 2…"


def test_those_that_were_ready_come_in_after_the_switch():
    yard = a_parallel_yard("x")
    yard.tell(e.SettingsSaved(config=a_config()))
    yard.submit(2)
    yard.fails(1)
    assert yard.picture == "main ← 1… ← 2…"


def test_in_a_paused_queue_the_switch_waits_for_the_runs():
    yard = a_switching_yard(prs=1)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    assert yard.queue.mode is Mode.SINGLE


@pytest.mark.parametrize("verdict", [CheckState.PASSED, CheckState.FAILED])
def test_in_a_paused_queue_nothing_lands_and_all_goes_back(verdict: CheckState):
    yard = a_switching_yard(prs=1)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.tell(yard.verdict(verdict, 1))
    assert (yard.state(1), yard.reason(1), yard.queue.mode) == (
        *(PrState.PENDING, Reason.MODE_SWITCHED),
        Mode.PARALLEL,
    )


def test_a_landing_under_way_is_finished_first():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.intend()
    yard.tell(e.SettingsSaved(config=PARALLEL), e.StateRequested(state=QueueState.PAUSED))
    assert yard.queue.mode is Mode.SINGLE
