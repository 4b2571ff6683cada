"""What operators request: pause, drain, resume, other settings, another mode."""

import pytest

from mergeyard.domain import events as e
from mergeyard.domain.config import Config, Mode
from mergeyard.domain.journal import QueueChanged
from mergeyard.domain.states import CheckState, IllegalTransition, PullRequestState, QueueState, Reason, Refusal
from mergeyard.domain.timestamps import MINUTE
from mergeyard.engine import queue_state
from tests.support.builders import QueueWorld, a_config, a_parallel_world, a_queue, a_world
from tests.support.world.world import START_TIME

PARALLEL = a_config(mode=Mode.PARALLEL)
RUNNING, PAUSED, DRAINING = QueueState.RUNNING, QueueState.PAUSED, QueueState.DRAINING


def request_state(world: QueueWorld, state: QueueState) -> list[QueueChanged]:
    journal = world.apply(e.StateRequested(state=state, actor="ann")).journal
    return [entry for entry in journal if isinstance(entry, QueueChanged)]


def save(world: QueueWorld, config: Config) -> list[QueueChanged]:
    journal = world.apply(e.SettingsSaved(config=config, actor="ann")).journal
    return [entry for entry in journal if isinstance(entry, QueueChanged)]


# States.


@pytest.mark.parametrize("state", [PAUSED, DRAINING])
def test_a_queue_takes_the_state_that_is_asked_for(state: QueueState):
    world = a_world()
    request_state(world, state)
    assert world.queue.state is state


def test_asking_for_the_present_state_changes_nothing():
    world = a_world()
    before = world.queue
    request_state(world, RUNNING)
    assert world.queue is before


def test_a_change_of_state_is_reported():
    world = a_world()
    assert request_state(world, PAUSED) == [
        QueueChanged(at=world.now, source=RUNNING, to=PAUSED, reason=Reason.STATE_REQUESTED, actor="ann")
    ]


def test_the_reason_that_a_user_gives_is_kept_and_reported():
    world = a_world()
    journal = world.apply(e.StateRequested(state=PAUSED, actor="ann", state_reason="Release 2.1")).journal
    assert world.queue.state_reason == "Release 2.1"
    assert journal == (
        QueueChanged(
            at=world.now,
            source=RUNNING,
            to=PAUSED,
            reason=Reason.STATE_REQUESTED,
            actor="ann",
            detail="Release 2.1",
        ),
    )


def test_another_reason_for_the_same_state_replaces_the_former_one_and_is_reported():
    world = a_world()
    world.apply(e.StateRequested(state=DRAINING, state_reason="Release 2.1"))
    (entry,) = world.apply(e.StateRequested(state=DRAINING, actor="bob", state_reason="Release 2.2")).journal
    assert isinstance(entry, QueueChanged)
    assert (entry.source, entry.to, entry.actor, entry.detail) == (DRAINING, DRAINING, "bob", "Release 2.2")
    assert world.queue.state_reason == "Release 2.2"


@pytest.mark.parametrize("state_reason", ["", "Release 2.1"])
def test_no_other_reason_changes_nothing(state_reason: str):
    world = a_world()
    world.apply(e.StateRequested(state=PAUSED, state_reason="Release 2.1"))
    before = world.queue
    world.apply(e.StateRequested(state=PAUSED, state_reason=state_reason))
    assert world.queue is before


def test_a_running_queue_shows_no_reason():
    world = a_world()
    world.apply(e.StateRequested(state=PAUSED, state_reason="Release 2.1"))
    (entry, *_) = world.apply(e.StateRequested(state=RUNNING, state_reason="Released")).journal
    assert isinstance(entry, QueueChanged)
    assert (world.queue.state_reason, entry.detail) == ("", "Released")
    world.apply(e.StateRequested(state=RUNNING, state_reason="Still running"))
    assert world.queue.state_reason == ""


def test_a_paused_queue_knows_since_when():
    world = a_world()
    request_state(world, PAUSED)
    assert world.queue.paused_at == world.now


def test_a_resumed_queue_is_paused_no_longer():
    world = a_world()
    request_state(world, PAUSED)
    request_state(world, RUNNING)
    assert world.queue.paused_at is None


def test_switching_modes_cannot_be_requested_as_a_state():
    with pytest.raises(IllegalTransition):
        queue_state.set_queue_state(a_queue(), QueueState.SWITCHING_MODES, Reason.STATE_REQUESTED, START_TIME)


def test_what_failed_while_the_queue_was_paused_is_tested_again():
    world = a_world(prs=1)
    request_state(world, PAUSED)
    world.fails(1)
    request_state(world, RUNNING)
    assert (world.state(1), world.reason(1), world.queue_text) == (
        PullRequestState.PENDING,
        Reason.QUEUE_RESUMED,
        "main ← 1…",
    )


def test_what_failed_before_the_pause_counts():
    world = a_world(prs=2)
    world.fails(2)
    world.advance_time(MINUTE)
    request_state(world, PAUSED)
    request_state(world, RUNNING)
    assert world.queue_text == "main ← 1… ← 2✗"


def test_a_run_that_is_repeated_anyway_keeps_its_count_of_retries():
    world = a_world(prs=1, test_retries=1)
    request_state(world, PAUSED)
    world.fails(1)
    request_state(world, RUNNING)
    assert world.run_of(1).attempt == 1


def test_what_passed_while_the_queue_was_paused_merges_on_resume():
    world = a_world(prs=1)
    request_state(world, PAUSED)
    world.passes(1)
    request_state(world, RUNNING)
    world.perform_pending_tasks()
    assert world.state(1) is PullRequestState.MERGED


# Settings.


def test_the_same_settings_change_nothing():
    world = a_world()
    before = world.queue
    save(world, a_config())
    assert world.queue is before


def test_a_change_of_settings_is_in_the_journal_with_its_changes():
    world = a_world()
    (entry,) = save(world, a_config(concurrency=7))
    assert isinstance(entry, QueueChanged)
    assert (entry.source, entry.to, entry.reason, entry.actor) == (RUNNING, RUNNING, Reason.SETTINGS_CHANGED, "ann")
    assert entry.detail == f"concurrency {a_config().concurrency} → 7"


def test_lowering_concurrency_stops_no_running_test():
    world = a_world(prs=3)
    save(world, a_config(concurrency=1))
    assert world.queue_text == "main ← 1… ← 2… ← 3…"


def test_with_nothing_under_test_the_mode_changes_at_once():
    world = a_world()
    save(world, PARALLEL)
    assert (world.queue.mode, world.queue.state) == (Mode.PARALLEL, RUNNING)


def test_with_something_under_test_the_queue_switches():
    world = a_world(prs=1)
    save(world, PARALLEL)
    assert (world.queue.mode, world.queue.state) == (Mode.SINGLE, QueueState.SWITCHING_MODES)


def test_with_a_bisection_under_way_the_queue_switches():
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    world.build()
    save(world, PARALLEL)
    assert world.queue.state is QueueState.SWITCHING_MODES


def test_switching_is_reported():
    world = a_world(prs=1)
    assert [(entry.to, entry.reason) for entry in save(world, PARALLEL)] == [
        (RUNNING, Reason.SETTINGS_CHANGED),
        (QueueState.SWITCHING_MODES, Reason.MODE_CHANGED),
    ]


def test_while_modes_switch_the_mode_cannot_be_changed():
    world = a_world(prs=1)
    save(world, PARALLEL)
    decision = world.apply(e.SettingsSaved(config=a_config()))
    assert decision.refusals == {0: Refusal.MODE_SWITCH_IN_PROGRESS}


def test_while_modes_switch_other_settings_can_be_changed():
    world = a_world(prs=1)
    save(world, PARALLEL)
    save(world, a_config(mode=Mode.PARALLEL, concurrency=7))
    assert world.queue.config.concurrency == 7


def test_a_switching_queue_can_be_paused():
    world = a_world(prs=1)
    save(world, PARALLEL)
    request_state(world, PAUSED)
    assert world.queue.state is PAUSED


def test_a_resumed_queue_goes_on_switching():
    world = a_world(prs=1)
    save(world, PARALLEL)
    request_state(world, PAUSED)
    request_state(world, RUNNING)
    assert world.queue.state is QueueState.SWITCHING_MODES


def a_switching_world(prs: int = 2) -> QueueWorld:
    world = a_world(prs=prs)
    world.apply(e.SettingsSaved(config=PARALLEL))
    return world


def test_while_modes_switch_no_pr_is_admitted():
    world = a_switching_world()
    world.submit(3)
    assert world.state(3) is PullRequestState.NOT_READY


def test_while_modes_switch_no_run_starts():
    world = a_world(prs=2, concurrency=1)
    world.apply(e.SettingsSaved(config=a_config(mode=Mode.PARALLEL, concurrency=1)))
    world.passes(1)
    assert world.queue_text == "main ← 1✓"


def test_passed_prs_merge_while_modes_switch():
    world = a_switching_world()
    world.passes(1)
    world.perform_pending_tasks()
    assert (world.state(1), world.queue.state) == (PullRequestState.MERGED, QueueState.SWITCHING_MODES)


def test_when_everything_merged_the_mode_is_switched():
    world = a_switching_world()
    world.apply(world.observe_result(CheckState.PASSED, 1), world.observe_result(CheckState.PASSED, 2))
    world.perform_pending_tasks()
    assert (world.queue.mode, world.queue.state) == (Mode.PARALLEL, QueueState.RUNNING)


def test_a_pr_that_did_not_pass_waits_again_after_the_switch():
    world = a_switching_world(prs=1)
    world.fails(1)
    assert (world.state(1), world.reason(1)) == (PullRequestState.PENDING, Reason.MODE_SWITCHED)


def test_prs_behind_a_failed_pr_wait_again_when_nothing_more_can_land():
    world = a_switching_world()
    world.passes(2)
    world.fails(1)
    assert [world.reason(number) for number in (1, 2)] == [Reason.MODE_SWITCHED, Reason.MODE_SWITCHED]


def test_a_bisection_ends_when_modes_are_switched():
    world = a_world(prs=4, batch=4, bisection_concurrency=1)
    world.fails(1, 2, 3, 4)
    world.build()
    world.apply(e.SettingsSaved(config=a_config(mode=Mode.PARALLEL, batch=4)))
    world.fails(1, 2)
    assert (world.reason(1), world.queue.bisections) == (Reason.MODE_SWITCHED, ())


def test_the_end_of_the_switch_is_reported():
    world = a_switching_world(prs=1)
    changes = [entry for entry in world.fails(1).journal if isinstance(entry, QueueChanged)]
    assert [(entry.source, entry.to, entry.reason) for entry in changes] == [
        (QueueState.SWITCHING_MODES, QueueState.RUNNING, Reason.MODE_SWITCHED)
    ]


def test_after_the_switch_the_queue_has_its_former_state():
    world = a_world(prs=1)
    world.apply(e.StateRequested(state=QueueState.DRAINING))
    world.apply(e.SettingsSaved(config=PARALLEL))
    world.fails(1)
    assert world.queue.state is QueueState.DRAINING


def test_prs_admitted_without_targets_count_as_all():
    world = a_switching_world()
    world.fails(2)
    world.fails(1)
    world.build()
    assert world.queue_text == "main ← 1… ∥ 1 ← 2…"


def test_ready_prs_are_admitted_after_the_switch():
    world = a_parallel_world("x")
    world.apply(e.SettingsSaved(config=a_config()))
    world.submit(2)
    world.fails(1)
    assert world.queue_text == "main ← 1… ← 2…"


def test_in_a_paused_queue_the_switch_waits_for_the_runs():
    world = a_switching_world(prs=1)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    assert world.queue.mode is Mode.SINGLE


@pytest.mark.parametrize("verdict", [CheckState.PASSED, CheckState.FAILED])
def test_in_a_paused_queue_nothing_lands_and_all_prs_wait_again(verdict: CheckState):
    world = a_switching_world(prs=1)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.apply(world.observe_result(verdict, 1))
    assert (world.state(1), world.reason(1), world.queue.mode) == (
        *(PullRequestState.PENDING, Reason.MODE_SWITCHED),
        Mode.PARALLEL,
    )


def test_a_landing_under_way_is_finished_first():
    world = a_world(prs=1)
    world.passes(1)
    world.save_landing_intent()
    world.apply(e.SettingsSaved(config=PARALLEL), e.StateRequested(state=QueueState.PAUSED))
    assert world.queue.mode is Mode.SINGLE
