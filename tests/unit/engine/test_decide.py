"""`decide` takes events and the time and returns the new queue, journal entries and refusals; old bases are dropped."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.ids import PullRequestNumber, RunId, Sha, SubmissionId
from mergeyard.domain.journal import PullRequestChanged
from mergeyard.domain.queue import DecisionOutput, LandedCommit, Obstacle
from mergeyard.domain.states import PullRequestState, Reason, Refusal, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.engine.decide import (
    STEPS,
    STEPS_ON_TESTED_STATE,
    DecisionNotSettled,
    decide,
    prune_target_branch,
    record_event,
)
from tests.model.planted import BUGS, planted
from tests.support.builders import (
    ROOT,
    QueueWorld,
    a_config,
    a_failed_prefix_on_an_untested_tip,
    a_parallel_world,
    a_plain_queue,
    a_pull_request,
    a_queue,
    a_step,
    a_world,
)
from tests.support.world.world import REQUIRED_STATUSES, START_TIME


def test_deciding_again_without_events_returns_the_same_queue():
    queue = a_queue(prs=3)
    assert decide(queue, (), START_TIME).queue is queue


def test_an_event_that_changes_nothing_returns_the_same_queue():
    queue = a_queue(prs=3)
    assert decide(queue, [e.PullRequestDirty(number=PullRequestNumber(99))], START_TIME).queue is queue


def test_a_decision_that_changed_something_increments_the_revision():
    queue = a_queue()
    assert decide(queue, [e.TargetBranchDirty()], START_TIME).queue.counters.revision == queue.counters.revision + 1


def test_the_events_of_one_decision_are_applied_in_their_order():
    world = a_world()
    world.open_pull_request(1)
    world.apply(world.build_submission(1), e.CancelRequested(number=PullRequestNumber(1)))
    assert world.state(1) is PullRequestState.CANCELLED


def test_a_refused_request_is_reported_by_its_index():
    refused = e.CancelRequested(number=PullRequestNumber(99))
    assert decide(a_queue(), [e.TargetBranchDirty(), refused], START_TIME).refusals == {1: Refusal.PR_NOT_SUBMITTED}


def test_a_refused_request_does_not_stop_the_other_events():
    refused = e.CancelRequested(number=PullRequestNumber(99))
    assert decide(a_queue(), [refused, e.TargetBranchDirty()], START_TIME).queue.target_branch.refresh_requested


def test_every_change_is_in_the_journal():
    world = a_world()
    world.open_pull_request(1)
    reasons = [entry.reason for entry in world.apply(world.build_submission(1)).journal]
    assert reasons == [Reason.SUBMITTED, Reason.READY]


def test_a_journal_entry_contains_time_actor_and_run():
    world = a_world(prs=1)
    run = world.run_of(1)
    (entry,) = world.passes(1).journal
    assert entry == PullRequestChanged(
        at=world.now,
        submission_id=world.submission_id(1),
        number=PullRequestNumber(1),
        source=PullRequestState.TESTING,
        to=PullRequestState.TESTS_PASSED,
        reason=Reason.TEST_RUN_PASSED,
        run=run.id,
    )


def test_a_concluded_submission_is_returned_and_dropped():
    world = a_world(prs=1)
    decision = world.cancel(1)
    assert ([each.number for each in decision.concluded_submissions], len(decision.queue.submissions)) == ([1], 0)


def test_a_run_that_nothing_depends_on_is_returned_and_dropped():
    world = a_world(prs=1)
    run = world.run_of(1)
    world.cancel(1)
    decision = world.apply(e.BranchDeleted(run=run.id))
    assert ([(each.id, each.status) for each in decision.finished_runs], decision.queue.runs) == (
        [(run.id, RunStatus.CANCELLED)],
        {},
    )


def test_between_decisions_the_output_of_the_queue_is_empty():
    assert a_queue(prs=3).output == DecisionOutput()


def test_one_decision_applies_steps_until_nothing_changes():
    """1 leaves because it failed, so the run of 2 is no longer valid and starts again, in one decision."""
    world = a_world(prs=2)
    world.fails(1)
    assert world.queue_text == "main ← 2…"


# Steps that are skipped.


def in_active_batches() -> QueueWorld:
    return a_world(prs=3, concurrency=2)


def failed_behind_others() -> QueueWorld:
    world = a_world(prs=3)
    world.fails(2)
    return world


def cleared() -> QueueWorld:
    world = a_world(prs=2, depth=1)
    world.fails(1)
    world.passes(2)
    return world


def about_to_land() -> QueueWorld:
    world = a_parallel_world("x", "y")
    world.passes(1)
    world.save_landing_intent()
    return world


def in_a_bisection() -> QueueWorld:
    world = a_world(prs=4, batch=4, bisection_concurrency=1)
    world.fails(1, 2, 3, 4)
    world.build()
    return world


def test_only_known_steps_are_skipped():
    assert set(STEPS) > STEPS_ON_TESTED_STATE


@pytest.mark.parametrize(
    "build_world",
    [
        in_active_batches,
        failed_behind_others,
        cleared,
        about_to_land,
        in_a_bisection,
        a_failed_prefix_on_an_untested_tip,
    ],
)
def test_after_an_event_about_waiting_prs_no_skipped_step_would_change_the_queue(build_world: Callable[[], QueueWorld]):
    world = build_world()
    world.open_pull_request(99)
    world.change(99, draft=True)
    world.submit(99)
    world.apply(e.PullRequestDirty(number=PullRequestNumber(99)))
    world.cancel(99)
    assert [step for step in STEPS if step(world.queue, world.now) is not world.queue] == []


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (e.SettingsSaved(config=a_config(required_statuses=("unit", "lint"))), Reason.REQUIRED_STATUSES_CHANGED),
        (
            e.TargetBranchObserved(tip=Sha("moved"), observed_at_revision=99, required_statuses=REQUIRED_STATUSES),
            Reason.TARGET_BRANCH_MOVED,
        ),
        (e.CancelRequested(number=PullRequestNumber(1)), Reason.PREREQUISITE_REMOVED),
    ],
    ids=["settings", "target branch", "active batches"],
)
def test_an_event_about_a_pr_under_test_takes_effect_in_the_same_decision(event: e.Event, reason: Reason):
    world = a_world(prs=2)
    before = world.run_of(2)
    world.apply(event)
    assert (world.reason(2), world.run_of(2).id != before.id) == (reason, True)


def test_a_decision_that_does_not_settle_raises():
    (endless,) = [bug for bug in BUGS if bug.bug == "a step that is never done"]
    with planted(endless), pytest.raises(DecisionNotSettled, match="still changing"):
        a_world(prs=1)


UNKNOWN = RunId("an unknown run")
OF_A_RUN: list[e.Event] = [
    e.RunBuilt(run=UNKNOWN, steps=(a_step("1"),)),
    e.BaseCommitMissing(run=UNKNOWN),
    e.RunBuildRefused(run=UNKNOWN, submission_id=SubmissionId(1), refusal=e.BuildRefusal.REFUSED),
    e.RunStartRefused(run=UNKNOWN, detail="no"),
    e.BranchDeleted(run=UNKNOWN),
    e.ChecksObserved(run=UNKNOWN, checks={}, observed_at_revision=99),
]
OF_A_LANDING: list[e.Event] = [
    e.LandingRebased(landing=99, steps=(a_step("1"),)),
    e.LandingRebaseRefused(landing=99),
    e.LandingPullRequestsRead(landing=99, pull_requests=(a_pull_request(1),), observed_at_revision=99),
    e.LandingSucceeded(landing=99, steps=(a_step("1"),)),
    e.LandingMissed(landing=99),
    e.LandingRefused(landing=99, detail="no"),
    e.LandingOutcomeUnknown(landing=99),
]


def names(event: e.Event) -> str:
    return type(event).__name__


def a_world_with_an_intended_landing() -> QueueWorld:
    world = a_world(prs=1)
    world.passes(1)
    world.save_landing_intent()
    return world


@pytest.mark.parametrize("event", OF_A_RUN, ids=names)
def test_an_event_about_an_unknown_run_changes_nothing(event: e.Event):
    queue = a_queue(prs=1)
    assert record_event(queue, event, START_TIME) is queue


@pytest.mark.parametrize("event", OF_A_LANDING, ids=names)
def test_an_event_about_another_landing_changes_nothing(event: e.Event):
    queue = a_world_with_an_intended_landing().queue
    assert record_event(queue, event, START_TIME) is queue


@pytest.mark.parametrize("event", OF_A_LANDING, ids=names)
def test_an_event_about_a_landing_changes_nothing_when_there_is_none(event: e.Event):
    queue = a_queue(prs=1)
    assert record_event(queue, event, START_TIME) is queue


def test_the_first_time_that_the_host_is_unreachable_counts():
    world = a_world()
    world.apply(e.HostUnreachable())
    unreachable_at = world.now
    world.advance_time(1000)
    world.apply(e.HostUnreachable())
    assert world.queue.obstacle == Obstacle(reason=Reason.PROVIDER_UNAVAILABLE, since=unreachable_at)


def test_the_first_text_of_a_refusal_is_kept_so_that_retries_change_nothing():
    world = a_world()
    world.apply(e.HostRefusing(detail="403 (request 1)"))
    before = world.queue
    world.advance_time(1000)
    world.apply(e.HostRefusing(detail="403 (request 2)"))
    assert world.queue is before
    assert before.obstacle is not None
    assert before.obstacle.detail == "403 (request 1)"


def test_a_refusal_after_an_outage_is_shown_as_a_refusal():
    world = a_world()
    world.apply(e.HostUnreachable())
    world.advance_time(1000)
    world.apply(e.HostRefusing(detail="403"))
    assert world.queue.obstacle == Obstacle(reason=Reason.PROVIDER_REFUSED, since=world.now, detail="403")
    world.apply(e.ServerFailing())
    assert world.queue.obstacle == Obstacle(reason=Reason.SERVER_FAILURE, since=world.now)


def test_a_second_pr_that_is_refused_shows_that_the_whole_queue_is_concerned():
    world = a_world(prs=3)
    world.apply(e.HostRefusing(detail="403", number=PullRequestNumber(1)))
    assert not world.queue.is_obstructed
    before = world.queue
    world.apply(e.HostRefusing(detail="403", number=PullRequestNumber(1)))
    assert world.queue is before
    world.apply(e.HostRefusing(detail="403", number=PullRequestNumber(2)))
    assert world.queue.is_obstructed
    before = world.queue
    world.apply(e.HostRefusing(detail="403", number=PullRequestNumber(3)))
    assert world.queue is before


def test_a_refused_pr_does_not_hide_what_keeps_the_whole_queue_from_working():
    world = a_world(prs=1)
    world.apply(e.HostUnreachable())
    before = world.queue
    world.apply(e.HostRefusing(detail="403", number=PullRequestNumber(1)))
    assert world.queue is before


def test_a_limit_has_the_time_at_which_it_ends_and_retries_change_nothing():
    world = a_world()
    world.apply(e.HostLimiting(until=Instant(7)))
    before = world.queue
    assert before.obstacle == Obstacle(reason=Reason.RATE_LIMITED, since=world.now, until=Instant(7))
    world.advance_time(1000)
    world.apply(e.HostLimiting(until=Instant(7)))
    assert world.queue is before
    world.apply(e.HostLimiting(until=Instant(8)))
    assert world.queue.obstacle == Obstacle(reason=Reason.RATE_LIMITED, since=world.now, until=Instant(8))


def test_a_limit_of_reads_that_wait_obstructs_the_queue_only_when_it_becomes_one_of_all():
    world = a_world(prs=1)
    world.apply(e.HostLimiting(until=Instant(7), only_waiting=True))
    assert not world.queue.is_obstructed
    world.apply(e.HostLimiting(until=Instant(7)))
    assert world.queue.is_obstructed


def test_a_host_that_answers_is_reachable():
    world = a_world()
    world.apply(e.HostUnreachable())
    world.apply(e.HostReachable())
    assert world.queue.obstacle is None


def commits(world: QueueWorld) -> list[Sha]:
    return [landed.commit for landed in world.queue.target_branch.history]


def test_history_is_kept_from_the_oldest_base_in_use():
    world = a_world(prs=3)
    base = world.host.tip
    world.passes(1)
    world.perform_pending_tasks()
    assert commits(world) == [base, world.host.tip]


def test_history_before_the_oldest_base_in_use_is_dropped():
    world = a_world(prs=1)
    world.passes(1)
    world.perform_pending_tasks()
    world.submit(2)
    world.build()
    assert commits(world) == [world.host.tip]


def test_passes_of_commits_that_are_not_in_use_are_dropped():
    world = a_world(prs=1)
    base = world.host.tip
    world.passes(1)
    world.perform_pending_tasks()
    world.submit(2)
    world.build()
    assert base not in world.queue.target_branch.passed_bases


def test_a_base_of_a_bisection_is_kept():
    world = a_world(prs=2, batch=2)
    base = world.host.tip
    world.fails(1, 2)
    world.build()
    world.passes(1)
    world.perform_pending_tasks()
    assert base in world.queue.target_branch.passed_bases


def test_broken_commits_that_are_not_in_use_are_dropped():
    queue = a_plain_queue()
    broken = replace(
        queue, target_branch=replace(queue.target_branch, broken_bases=frozenset({Sha("elsewhere"), ROOT}))
    )
    assert prune_target_branch(broken).target_branch.broken_bases == {ROOT}


def test_without_a_tip_no_base_is_kept():
    queue = a_plain_queue()
    gone = replace(queue, target_branch=replace(queue.target_branch, tip=None, passed_bases=frozenset({ROOT})))
    assert prune_target_branch(gone).target_branch.passed_bases == frozenset()


def test_when_there_is_nothing_to_drop_the_same_queue_is_returned():
    queue = a_plain_queue()
    assert prune_target_branch(queue) is queue


def test_a_history_without_any_base_in_use_is_kept():
    queue = a_plain_queue()
    unrelated = replace(
        queue, target_branch=replace(queue.target_branch, tip=Sha("tip"), history=(LandedCommit(ROOT, None),))
    )
    assert prune_target_branch(unrelated) is unrelated
