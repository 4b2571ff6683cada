"""The whole queue is one value: it shows its state, and survives a JSON round trip."""

import msgspec
import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.config import LandingMethod, Mode
from mergeyard.domain.ids import BatchId, PullRequestNumber, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import ALL_TARGETS, impacted_targets_from_names
from mergeyard.domain.queue import ActiveBatches, Bisection, Landing, LandingPhase, Queue
from mergeyard.domain.states import QueueState
from mergeyard.engine.decide import decide
from mergeyard.engine.tasks import pending_tasks
from tests.support.builders import (
    ROOT,
    QueueWorld,
    a_batch,
    a_config,
    a_member,
    a_plain_queue,
    a_run,
    a_step,
    a_submission,
)

PLAIN = a_plain_queue(a_submission(1))


def a_rich_world() -> QueueWorld:
    """A landing, active batches in two lanes, a bisection, and pull requests waiting, held, not ready, to be read."""
    world = QueueWorld(a_config(mode=Mode.PARALLEL, batch=2, concurrency=3, bisection_concurrency=1))
    world.submit(1, 2, impacted_targets=impacted_targets_from_names("x"))
    world.submit(3, 4, impacted_targets=impacted_targets_from_names("y"))
    world.submit(5, no_batch=True, impacted_targets=impacted_targets_from_names("x", "z"))
    world.build()
    world.submit(6, priority=50, impacted_targets=ALL_TARGETS)
    world.open_pull_request(7, stacked_on=world.head(6))
    world.apply(world.build_submission(7, priority=20, impacted_targets=ALL_TARGETS))
    world.submit(8)
    world.fails(1, 2)
    world.passes(3, 4)
    world.apply(e.PullRequestDirty(number=PullRequestNumber(6)), e.TargetBranchDirty(), e.HostUnreachable())
    return world


def stored(queue: Queue) -> Queue:
    return msgspec.json.decode(msgspec.json.encode(queue), type=Queue)


@pytest.fixture(scope="module")
def rich() -> Queue:
    return a_rich_world().queue


def test_the_rich_queue_is_rich(rich: Queue):
    parts = (
        rich.active.batches,
        rich.bisections,
        rich.waiting,
        rich.held,
        rich.not_ready,
        rich.refresh_requested,
        rich.runs,
    )
    assert all(parts)


def test_a_queue_is_the_same_after_a_json_round_trip(rich: Queue):
    assert stored(rich) == rich


def test_a_queue_has_the_same_pending_tasks_after_a_json_round_trip(rich: Queue):
    assert pending_tasks(stored(rich)) == pending_tasks(rich)


def test_a_queue_decides_the_same_after_a_json_round_trip(rich: Queue):
    events = [e.HostReachable(), e.TargetBranchObserved(tip=None, observed_at_revision=rich.counters.revision)]
    now = a_rich_world().now
    assert decide(stored(rich), events, now) == decide(rich, events, now)


def test_a_landing_is_the_same_after_a_json_round_trip():
    world = QueueWorld(a_config())
    world.submit(1)
    world.build()
    world.passes(1)
    world.save_landing_intent()
    assert stored(world.queue) == world.queue


def test_a_queue_is_in_the_requested_state():
    assert replace(PLAIN, requested_state=QueueState.DRAINING).state is QueueState.DRAINING


def test_a_queue_whose_active_batches_have_another_mode_than_its_settings_is_switching():
    assert replace(PLAIN, config=a_config(mode=Mode.PARALLEL)).state is QueueState.SWITCHING_MODES


def test_a_paused_queue_is_paused_even_while_it_switches():
    switching = replace(PLAIN, config=a_config(mode=Mode.PARALLEL))
    assert replace(switching, requested_state=QueueState.PAUSED).state is QueueState.PAUSED


@pytest.mark.parametrize("state", [QueueState.RUNNING, QueueState.DRAINING])
def test_a_running_and_a_draining_queue_may_start_tests(state: QueueState):
    assert replace(PLAIN, requested_state=state).can_start_runs


def test_a_paused_queue_starts_nothing():
    assert not replace(PLAIN, requested_state=QueueState.PAUSED).can_start_runs


def test_a_switching_queue_starts_nothing():
    assert not replace(PLAIN, config=a_config(mode=Mode.PARALLEL)).can_start_runs


def test_a_pull_request_is_found_by_its_number():
    assert PLAIN.submission_of(PullRequestNumber(1)) == a_submission(1)


def test_a_pull_request_that_is_not_queued_is_not_found():
    assert PLAIN.submission_of(PullRequestNumber(2)) is None


FAILED = a_run(1, 2, 3, 4, 5, tests=4)


def a_bisection(*, passed: int, failed: int) -> Bisection:
    """Of 2, 3, 4 and 5, on top of 1."""
    return Bisection(
        id=BatchId(1),
        submission_ids=(SubmissionId(2), SubmissionId(3), SubmissionId(4), SubmissionId(5)),
        impacted_targets=ALL_TARGETS,
        batch_run=FAILED,
        passed_prefix=passed,
        failed_prefix=failed,
        failed_run=FAILED,
    )


def test_the_submission_ids_of_active_batches_are_ordered_by_batch():
    assert ActiveBatches(batches=(a_batch(1, 5, 3), a_batch(2, 4))).submission_ids == (5, 3, 4)


def test_the_base_of_a_bisection_is_the_commit_under_its_batch():
    assert a_bisection(passed=0, failed=4).base == "1"


def test_the_steps_of_a_bisection_are_those_of_its_own_members():
    assert [step.commit for step in a_bisection(passed=0, failed=4).steps] == ["1+2", "1+2+3", "1+2+3+4", "1+2+3+4+5"]


def test_a_bisection_searches_while_several_prs_can_be_the_culprit():
    assert a_bisection(passed=1, failed=3).is_searching


def test_a_bisection_has_found_the_culprit_when_a_failed_prefix_directly_follows_a_passed_one():
    assert not a_bisection(passed=2, failed=3).is_searching


def test_the_suspect_is_the_last_of_the_shortest_failed_prefix():
    assert a_bisection(passed=2, failed=3).suspect == 4


def test_the_prefix_of_a_suspect_contains_the_prs_before_it():
    assert a_bisection(passed=2, failed=3).prefix == (2, 3)


def test_prs_of_the_passed_prefix_and_behind_the_failed_prefix_are_no_longer_members():
    assert a_bisection(passed=1, failed=3).members == (3, 4)


def a_landing(phase: LandingPhase) -> Landing:
    return Landing(
        number=1,
        phase=phase,
        run=RunId("run"),
        members=(a_member(4), a_member(7)),
        expected_tip=ROOT,
        base=ROOT,
        tested_steps=(a_step("4"), a_step("4+7")),
        landing_method=LandingMethod.TESTED_COMMIT,
        test_branch_tip=Sha("4+7"),
    )


def test_the_submission_ids_of_a_landing_are_those_of_its_members():
    assert a_landing(LandingPhase.READING).submission_ids == (4, 7)


@pytest.mark.parametrize("phase", [LandingPhase.REBASING, LandingPhase.READING])
def test_a_landing_is_not_intended_until_the_intent_is_saved(phase: LandingPhase):
    assert not a_landing(phase).is_intended


def test_a_landing_is_intended_once_the_intent_is_saved():
    assert a_landing(LandingPhase.INTENDED).is_intended
