"""What operators order: pause, drain, resume, other settings, another mode."""

import pytest

from mergeyard.domain import events as e
from mergeyard.domain.config import Config, Mode
from mergeyard.domain.instants import MINUTE
from mergeyard.domain.journal import QueueChanged
from mergeyard.domain.reasons import Reason, Refusal
from mergeyard.domain.states import PrState, QueueState
from mergeyard.domain.transitions import IllegalTransition
from mergeyard.engine import operating
from mergeyard.sim.world import START
from tests.support.builders import Yard, a_config, a_queue, a_yard

PARALLEL = a_config(mode=Mode.PARALLEL)
RUNNING, PAUSED, DRAINING = QueueState.RUNNING, QueueState.PAUSED, QueueState.DRAINING


def order(yard: Yard, state: QueueState) -> list[QueueChanged]:
    journal = yard.tell(e.StateRequested(state=state, actor="ann")).journal
    return [entry for entry in journal if isinstance(entry, QueueChanged)]


def save(yard: Yard, config: Config) -> list[QueueChanged]:
    journal = yard.tell(e.SettingsSaved(config=config, actor="ann")).journal
    return [entry for entry in journal if isinstance(entry, QueueChanged)]


# States.


@pytest.mark.parametrize("state", [PAUSED, DRAINING])
def test_a_queue_takes_the_state_that_is_asked_for(state: QueueState):
    yard = a_yard()
    order(yard, state)
    assert yard.queue.state is state


def test_asking_for_the_present_state_changes_nothing():
    yard = a_yard()
    before = yard.queue
    order(yard, RUNNING)
    assert yard.queue is before


def test_a_change_of_state_is_told():
    yard = a_yard()
    assert order(yard, PAUSED) == [
        QueueChanged(at=yard.now, source=RUNNING, to=PAUSED, reason=Reason.STATE_REQUESTED, actor="ann")
    ]


def test_a_paused_queue_knows_since_when():
    yard = a_yard()
    order(yard, PAUSED)
    assert yard.queue.paused_at == yard.now


def test_a_resumed_queue_is_paused_no_longer():
    yard = a_yard()
    order(yard, PAUSED)
    order(yard, RUNNING)
    assert yard.queue.paused_at is None


def test_nobody_can_ask_a_queue_to_switch_modes():
    with pytest.raises(IllegalTransition):
        operating.set_state(a_queue(), QueueState.SWITCHING_MODES, Reason.STATE_REQUESTED, START)


def test_what_went_red_while_the_queue_was_paused_is_tested_again():
    yard = a_yard(prs=1)
    order(yard, PAUSED)
    yard.fails(1)
    order(yard, RUNNING)
    assert (yard.state(1), yard.reason(1), yard.picture) == (PrState.PENDING, Reason.QUEUE_RESUMED, "main ← 1…")


def test_what_went_red_before_the_pause_is_judged_by_that():
    yard = a_yard(prs=2)
    yard.fails(2)
    yard.pass_time(MINUTE)
    order(yard, PAUSED)
    order(yard, RUNNING)
    assert yard.picture == "main ← 1… ← 2✗"


def test_what_will_be_run_again_anyway_keeps_its_count_of_retries():
    yard = a_yard(prs=1, test_retries=1)
    order(yard, PAUSED)
    yard.fails(1)
    order(yard, RUNNING)
    assert yard.run_of(1).attempt == 1


def test_what_passed_while_the_queue_was_paused_merges_on_resume():
    yard = a_yard(prs=1)
    order(yard, PAUSED)
    yard.passes(1)
    order(yard, RUNNING)
    yard.perform_all()
    assert yard.state(1) is PrState.MERGED


# Settings.


def test_the_same_settings_change_nothing():
    yard = a_yard()
    before = yard.queue
    save(yard, a_config())
    assert yard.queue is before


def test_a_change_of_settings_is_told_with_what_it_changes():
    yard = a_yard()
    (told,) = save(yard, a_config(concurrency=7))
    assert isinstance(told, QueueChanged)
    assert (told.source, told.to, told.reason, told.actor) == (RUNNING, RUNNING, Reason.SETTINGS_CHANGED, "ann")
    assert told.words == f"concurrency {a_config().concurrency} → 7"


def test_lowering_concurrency_stops_no_running_test():
    yard = a_yard(prs=3)
    save(yard, a_config(concurrency=1))
    assert yard.picture == "main ← 1… ← 2… ← 3…"


def test_with_nothing_under_test_the_mode_changes_at_once():
    yard = a_yard()
    save(yard, PARALLEL)
    assert (yard.queue.mode, yard.queue.state) == (Mode.PARALLEL, RUNNING)


def test_with_something_under_test_the_queue_switches():
    yard = a_yard(prs=1)
    save(yard, PARALLEL)
    assert (yard.queue.mode, yard.queue.state) == (Mode.SINGLE, QueueState.SWITCHING_MODES)


def test_with_a_bisection_under_way_the_queue_switches():
    yard = a_yard(prs=2, batch=2)
    yard.fails(1, 2)
    yard.build()
    save(yard, PARALLEL)
    assert yard.queue.state is QueueState.SWITCHING_MODES


def test_switching_is_told():
    yard = a_yard(prs=1)
    assert [(entry.to, entry.reason) for entry in save(yard, PARALLEL)] == [
        (RUNNING, Reason.SETTINGS_CHANGED),
        (QueueState.SWITCHING_MODES, Reason.MODE_CHANGED),
    ]


def test_while_modes_switch_the_mode_cannot_be_changed():
    yard = a_yard(prs=1)
    save(yard, PARALLEL)
    decision = yard.tell(e.SettingsSaved(config=a_config()))
    assert decision.refusals == {0: Refusal.MODE_SWITCH_IN_PROGRESS}


def test_while_modes_switch_other_settings_can_be_changed():
    yard = a_yard(prs=1)
    save(yard, PARALLEL)
    save(yard, a_config(mode=Mode.PARALLEL, concurrency=7))
    assert yard.queue.config.concurrency == 7


def test_a_switching_queue_can_be_paused():
    yard = a_yard(prs=1)
    save(yard, PARALLEL)
    order(yard, PAUSED)
    assert yard.queue.state is PAUSED


def test_a_resumed_queue_goes_on_switching():
    yard = a_yard(prs=1)
    save(yard, PARALLEL)
    order(yard, PAUSED)
    order(yard, RUNNING)
    assert yard.queue.state is QueueState.SWITCHING_MODES
