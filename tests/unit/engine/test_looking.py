"""What was seen of the world is recorded; what may be outdated is looked at again."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import MINUTE
from mergeyard.domain.reasons import Reason
from mergeyard.domain.required import Required
from mergeyard.domain.sorted_map import SortedMap
from mergeyard.domain.states import CheckState, Mergeability, PrState, QueueState, RunStatus
from mergeyard.domain.targets import named
from mergeyard.engine import looking, running
from mergeyard.engine.work import work
from mergeyard.sim.world import REQUIRED, START
from tests.support.builders import Yard, a_parallel_yard, a_plain_queue, a_run, a_submission, a_yard

PASSED, FAILED, PENDING = CheckState.PASSED, CheckState.FAILED, CheckState.PENDING


def looks_at(yard: Yard, number: int) -> bool:
    return t.LookAtPull(number=PrNumber(number)) in work(yard.queue)


def a_yard_with_one_not_ready() -> Yard:
    yard = a_yard()
    yard.open(1)
    yard.change(1, mergeability=Mergeability.UNKNOWN)
    yard.submit(1)
    return yard


def push(yard: Yard, number: int) -> None:
    yard.change(number, head=yard.repository.commit((yard.head(number),), {"more": "more"}, "a push"))


# Pull requests.


def test_a_touched_pr_is_looked_at():
    yard = a_yard(prs=1)
    yard.tell(e.PullTouched(number=PrNumber(1)))
    assert looks_at(yard, 1)


def test_a_pr_that_was_looked_at_is_not_looked_at_again():
    yard = a_yard(prs=1)
    yard.tell(e.PullTouched(number=PrNumber(1)))
    yard.tell(yard.pull_seen(1))
    assert not looks_at(yard, 1)


def test_a_second_touch_in_the_same_turn_changes_nothing():
    yard, again = a_yard(prs=1), a_yard(prs=1)
    yard.tell(e.PullTouched(number=PrNumber(1)))
    again.tell(e.PullTouched(number=PrNumber(1)), e.PullTouched(number=PrNumber(1)))
    assert again.queue == yard.queue


def test_a_touch_during_a_look_asks_for_another_one():
    yard = a_yard(prs=1)
    yard.tell(e.PullTouched(number=PrNumber(1)))
    begun_before = yard.pull_seen(1)
    yard.tell(e.PullTouched(number=PrNumber(1)))
    yard.tell(begun_before)
    assert looks_at(yard, 1)
    yard.tell(yard.pull_seen(1))
    assert not looks_at(yard, 1)


def test_a_look_at_a_pr_that_is_not_here_changes_nothing():
    yard = a_yard(prs=1)
    yard.open(2)
    before = yard.queue
    yard.tell(yard.pull_seen(2))
    assert yard.queue is before


def test_a_look_that_began_before_the_last_one_was_recorded_is_not_believed():
    yard = a_yard_with_one_not_ready()
    outdated = yard.pull_seen(1)
    yard.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    yard.tell(yard.pull_seen(1))
    yard.tell(outdated)
    assert yard.stay(1).pull.mergeability is Mergeability.NOT_MERGEABLE


def test_a_look_that_may_be_outdated_is_asked_for_again():
    yard = a_yard_with_one_not_ready()
    outdated = yard.pull_seen(1)
    yard.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    yard.tell(yard.pull_seen(1))
    yard.tell(outdated)
    assert looks_at(yard, 1)


def test_a_closed_pr_is_cancelled():
    yard = a_yard(prs=1)
    yard.change(1, is_open=False)
    yard.tell(yard.pull_seen(1))
    assert (yard.state(1), yard.reason(1)) == (PrState.CANCELLED, Reason.PR_CLOSED)


def test_a_closed_pr_is_cancelled_also_before_it_is_ready():
    yard = a_yard_with_one_not_ready()
    yard.change(1, is_open=False)
    yard.tell(yard.pull_seen(1))
    assert (yard.state(1), yard.reason(1)) == (PrState.CANCELLED, Reason.PR_CLOSED)


def test_a_pr_merged_into_another_branch_is_closed():
    yard = a_yard(prs=1)
    yard.change(1, is_open=False, merged_into="elsewhere")
    yard.tell(yard.pull_seen(1))
    assert (yard.state(1), yard.reason(1)) == (PrState.CANCELLED, Reason.PR_CLOSED)


def test_a_pr_merged_into_the_target_by_hand_is_merged():
    yard = a_yard(prs=1)
    yard.change(1, is_open=False, merged_into="main")
    yard.tell(yard.pull_seen(1))
    assert (yard.state(1), yard.reason(1)) == (PrState.MERGED, Reason.MERGED_MANUALLY)


def test_a_pr_whose_head_the_target_contains_is_merged_whoever_brought_it():
    yard = a_yard(prs=1)
    yard.repository.refs["main"] = yard.head(1)
    yard.tell(yard.pull_seen(1))
    assert (yard.state(1), yard.reason(1)) == (PrState.MERGED, Reason.MERGED_MANUALLY)


def test_the_target_is_looked_at_when_somebody_merged_by_hand():
    yard = a_yard(prs=1)
    yard.change(1, is_open=False, merged_into="main")
    yard.tell(yard.pull_seen(1))
    assert yard.queue.target.look


def test_an_admitted_pr_with_new_commits_is_cancelled():
    yard = a_yard(prs=1)
    push(yard, 1)
    yard.tell(yard.pull_seen(1))
    assert (yard.state(1), yard.reason(1)) == (PrState.CANCELLED, Reason.PR_PUSHED)


def test_an_admitted_pr_that_points_elsewhere_is_cancelled():
    yard = a_yard(prs=1)
    yard.change(1, base="elsewhere")
    yard.tell(yard.pull_seen(1))
    assert (yard.state(1), yard.reason(1)) == (PrState.CANCELLED, Reason.PR_BASE_CHANGED)


def test_an_admitted_pr_that_becomes_a_draft_is_cancelled():
    yard = a_yard(prs=1)
    yard.change(1, draft=True)
    yard.tell(yard.pull_seen(1))
    assert (yard.state(1), yard.reason(1)) == (PrState.CANCELLED, Reason.PR_CONVERTED_TO_DRAFT)


def test_a_pr_that_is_not_ready_takes_new_commits():
    yard = a_yard_with_one_not_ready()
    push(yard, 1)
    yard.tell(yard.pull_seen(1))
    assert (yard.state(1), yard.stay(1).pull.head) == (PrState.NOT_READY, yard.head(1))


def test_a_pr_of_a_fork_that_is_not_ready_is_cancelled_by_a_push():
    yard = a_yard_with_one_not_ready()
    yard.change(1, fork=True)
    push(yard, 1)
    yard.tell(yard.pull_seen(1))
    assert (yard.state(1), yard.reason(1)) == (PrState.CANCELLED, Reason.PR_PUSHED)


def test_a_pr_submitted_by_its_head_is_cancelled_by_a_push_also_before_it_is_ready():
    yard = a_yard()
    yard.open(1)
    yard.change(1, mergeability=Mergeability.UNKNOWN)
    yard.tell(replace(yard.submission(1), pinned=True))
    push(yard, 1)
    yard.tell(yard.pull_seen(1))
    assert (yard.state(1), yard.reason(1)) == (PrState.CANCELLED, Reason.PR_PUSHED)


@pytest.mark.parametrize("news", [{"base": "elsewhere"}, {"draft": True}])
def test_a_pr_that_is_not_ready_just_takes_the_news(news: dict[str, object]):
    yard = a_yard_with_one_not_ready()
    yard.change(1, **news)
    yard.tell(yard.pull_seen(1))
    assert yard.state(1) is PrState.NOT_READY


def test_a_pr_that_became_mergeable_is_admitted():
    yard = a_yard_with_one_not_ready()
    yard.change(1, mergeability=Mergeability.MERGEABLE)
    yard.tell(yard.pull_seen(1))
    assert yard.state(1) is PrState.PENDING


def test_targets_of_an_earlier_head_count_no_longer():
    yard = a_parallel_yard()
    yard.open(1)
    yard.change(1, mergeability=Mergeability.UNKNOWN)
    yard.tell(yard.submission(1, targets=named("x")))
    push(yard, 1)
    yard.tell(yard.pull_seen(1))
    assert yard.stay(1).targets is None


def test_targets_seen_with_a_new_head_count():
    yard = a_parallel_yard()
    yard.open(1)
    yard.change(1, mergeability=Mergeability.UNKNOWN)
    yard.tell(yard.submission(1, targets=named("x")))
    push(yard, 1)
    yard.tell(replace(yard.pull_seen(1), targets=named("y")))
    assert yard.stay(1).targets == named("y")


def test_from_intent_to_outcome_news_of_a_pr_waits():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.intend()
    yard.change(1, is_open=False)
    yard.tell(yard.pull_seen(1))
    assert yard.state(1) is PrState.TESTS_PASSED


def test_news_that_waited_is_looked_for_after_the_landing():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.intend()
    yard.change(1, is_open=False)
    yard.tell(yard.pull_seen(1))
    yard.tell(e.LandingMissed(landing=1))
    assert looks_at(yard, 1)


# The target.


def test_a_touched_target_is_looked_at():
    yard = a_yard()
    yard.tell(e.TargetTouched())
    assert t.LookAtTarget(known_tip=yard.host.tip, removed=frozenset()) in work(yard.queue)


def test_a_second_touch_of_the_target_changes_nothing():
    yard = a_yard()
    yard.tell(e.TargetTouched())
    before = yard.queue
    yard.tell(e.TargetTouched())
    assert yard.queue is before


def test_a_target_that_is_as_we_know_it_changes_nothing():
    yard = a_yard()
    before = yard.queue
    yard.tell(e.TargetSeen(tip=yard.host.tip, as_of=before.counters.turns, required=before.target.required))
    assert yard.queue is before


def test_a_target_that_somebody_moved_is_recorded():
    yard = a_yard()
    commit = yard.push_to_target({"other": "other"})
    yard.tell(e.TargetTouched())
    yard.perform_all()
    assert (yard.queue.target.tip, [landed.commit for landed in yard.queue.target.history]) == (commit, [commit])


def test_a_target_that_is_gone_is_recorded():
    yard = a_yard()
    yard.tell(e.TargetSeen(tip=None, as_of=yard.queue.counters.turns))
    assert (yard.queue.target.tip, yard.queue.target.history) == (None, ())


def test_other_required_statuses_are_recorded():
    yard = a_yard()
    yard.tell(e.TargetSeen(tip=yard.host.tip, as_of=yard.queue.counters.turns, required=Required(("lint",))))
    assert yard.queue.target.required.statuses == ("lint",)


def test_commits_taken_off_the_target_are_remembered():
    yard = a_yard()
    for gone in "one", "two":
        yard.tell(e.TargetSeen(tip=yard.host.tip, as_of=yard.queue.counters.turns, removed=frozenset({Sha(gone)})))
    assert yard.queue.target.removed == {"one", "two"}


def test_commits_put_back_are_forgotten():
    yard = a_yard()
    gone = frozenset({Sha("one"), Sha("two")})
    yard.tell(e.TargetSeen(tip=yard.host.tip, as_of=yard.queue.counters.turns, removed=gone))
    restored = frozenset({Sha("one")})
    yard.tell(e.TargetSeen(tip=yard.host.tip, as_of=yard.queue.counters.turns, restored=restored))
    assert yard.queue.target.removed == {"two"}


def test_a_look_at_the_target_that_began_before_a_landing_is_not_believed():
    yard = a_yard(prs=1)
    outdated = e.TargetSeen(tip=yard.host.tip, as_of=yard.queue.counters.turns, required=yard.queue.target.required)
    yard.passes(1)
    yard.perform_all()
    yard.tell(outdated)
    assert (yard.queue.target.tip, yard.queue.target.look) == (yard.host.tip, True)


def test_from_intent_to_outcome_news_of_the_target_waits():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.intend()
    yard.tell(e.TargetSeen(tip=Sha("elsewhere"), as_of=yard.queue.counters.turns))
    assert (yard.queue.target.tip, yard.queue.target.look) == (yard.host.tip, True)


# Checks.


def see(yard: Yard, checks: dict[str, CheckState], *, turns_ago: int = 0) -> None:
    seen = yard.checks_seen(yard.run_of(1), checks)
    yard.tell(replace(seen, as_of=seen.as_of - turns_ago))


def a_yard_with_two_statuses() -> Yard:
    return a_yard(prs=1, required_statuses=("lint", "unit"))


@pytest.mark.parametrize("unit", [PENDING, None])
def test_a_run_goes_on_while_a_required_status_has_not_reported(unit: CheckState | None):
    yard = a_yard_with_two_statuses()
    see(yard, {"lint": PASSED} | ({} if unit is None else {"unit": unit}))
    assert yard.run_of(1).status is RunStatus.IN_PROGRESS


def test_a_run_passes_when_all_required_statuses_passed():
    yard = a_yard_with_two_statuses()
    see(yard, {"lint": PASSED, "unit": PASSED})
    assert yard.run_of(1).status is RunStatus.SUCCEEDED


def test_a_run_that_requires_nothing_never_passes():
    run = replace(a_run(1), required=())
    queue = running.put(a_plain_queue(a_submission(1)), run)
    seen = e.ChecksSeen(run=run.id, checks={"unit": PASSED}, as_of=0)
    assert looking.see_checks(queue, seen, START).runs[run.id].status is RunStatus.IN_PROGRESS


def test_a_run_fails_as_soon_as_one_required_status_failed():
    yard = a_yard_with_two_statuses()
    see(yard, {"lint": FAILED})
    assert yard.run_of(1).status is RunStatus.FAILED


def test_statuses_that_are_not_required_do_not_count():
    yard = a_yard_with_two_statuses()
    see(yard, {"lint": PASSED, "unit": PASSED, "weather": FAILED})
    assert yard.run_of(1).status is RunStatus.SUCCEEDED


def test_what_was_seen_is_remembered():
    yard = a_yard_with_two_statuses()
    see(yard, {"lint": PASSED})
    assert yard.run_of(1).checks == {"lint": PASSED}


def test_the_same_checks_again_change_nothing():
    yard = a_yard_with_two_statuses()
    see(yard, {"lint": PASSED})
    before = yard.queue
    see(yard, {"lint": PASSED})
    assert yard.queue is before


def test_checks_seen_before_the_last_ones_were_recorded_are_not_believed():
    yard = a_yard_with_two_statuses()
    see(yard, {"lint": PASSED})
    see(yard, {"lint": FAILED}, turns_ago=1)
    assert yard.run_of(1).status is RunStatus.IN_PROGRESS


def test_a_decided_run_never_changes():
    yard = a_yard(prs=2)
    run = yard.run_of(2)
    yard.passes(2)
    before = yard.queue
    yard.tell(yard.checks_seen(run, {"unit": FAILED}))
    assert yard.queue is before


def test_checks_of_a_run_that_is_not_built_are_not_believed():
    yard = a_yard()
    yard.submit(1)
    run = yard.run_of(1)
    yard.tell(e.ChecksSeen(run=run.id, checks={"unit": PASSED}, as_of=yard.queue.counters.turns))
    assert yard.run_of(1) == run


def test_a_run_past_its_time_is_judged_by_a_fresh_look():
    yard = a_yard(prs=1, testing_timeout_minutes=10)
    yard.pass_time(10 * MINUTE)
    see(yard, {})
    assert (yard.state(1), yard.reason(1)) == (PrState.FAILED, Reason.TEST_RUN_TIMEOUT)


def test_a_run_past_its_time_is_not_judged_by_a_look_that_began_before():
    yard = a_yard(prs=1, testing_timeout_minutes=10)
    yard.pass_time(10 * MINUTE)
    see(yard, {}, turns_ago=1)
    assert yard.state(1) is PrState.TESTING


def test_a_run_past_its_time_that_passed_after_all_passes():
    yard = a_yard(prs=1, testing_timeout_minutes=10)
    yard.pass_time(10 * MINUTE)
    see(yard, {"unit": PASSED})
    assert yard.state(1) is PrState.TESTS_PASSED


def test_a_run_past_its_time_that_is_red_failed_by_its_tests():
    yard = a_yard(prs=1, testing_timeout_minutes=10)
    yard.pass_time(10 * MINUTE)
    see(yard, {"unit": FAILED})
    assert yard.reason(1) is Reason.TEST_RUN_FAILED


def test_a_red_bare_run_shows_that_its_base_is_broken():
    yard = a_yard(prs=1, proven=False)
    yard.fails(1)
    yard.build()
    yard.fails()
    assert yard.queue.target.broken == {yard.host.tip}


def test_a_red_bare_run_that_is_repeated_shows_nothing_yet():
    yard = a_yard(prs=1, proven=False, test_retries=1)
    for _ in range(2):
        yard.fails(1)
        yard.build()
    yard.fails()
    assert yard.queue.target.broken == frozenset()


def test_a_bare_run_that_goes_red_in_a_paused_queue_is_not_believed():
    yard = a_yard(prs=1, proven=False)
    yard.fails(1)
    yard.build()
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.fails()
    assert yard.queue.target.broken == frozenset()


def test_a_bare_run_that_went_red_in_a_paused_queue_is_run_again():
    yard = a_yard(prs=1, proven=False)
    yard.fails(1)
    yard.build()
    red = yard.run_of()
    yard.pass_time(MINUTE)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.fails()
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    assert (yard.picture, yard.run_of().id != red.id) == ("main ← 1✗ ?", True)


def test_a_red_run_of_the_line_does_not_show_that_its_base_is_broken():
    yard = a_yard(prs=1, proven=False)
    yard.fails(1)
    assert yard.queue.target.broken == frozenset()


def test_when_something_was_taken_off_the_target_every_run_starts_again():
    yard = a_yard(prs=1)
    before = yard.run_of(1).id
    seen = e.TargetSeen(
        tip=yard.host.tip, as_of=yard.queue.counters.turns, required=REQUIRED, removed=frozenset({Sha("gone")})
    )
    yard.tell(seen)
    assert yard.queue.runs[before].status is RunStatus.CANCELLED


def test_when_something_was_taken_off_the_target_a_bisection_goes_on():
    yard = a_yard(prs=2, batch=2)
    yard.fails(1, 2)
    yard.build()
    probe = yard.run_of(1).id
    seen = e.TargetSeen(
        tip=yard.host.tip, as_of=yard.queue.counters.turns, required=REQUIRED, removed=frozenset({Sha("gone")})
    )
    yard.tell(seen)
    assert yard.queue.runs[probe].status is RunStatus.IN_PROGRESS


def test_what_was_taken_off_is_found_from_the_last_tip_that_there_was():
    yard = a_yard()
    before = yard.host.tip
    for _ in range(2):
        yard.tell(e.TargetSeen(tip=None, as_of=yard.queue.counters.turns))
    yard.tell(e.TargetTouched())
    assert t.LookAtTarget(known_tip=before, removed=frozenset()) in work(yard.queue)
    yard.tell(e.TargetSeen(tip=Sha("new"), as_of=yard.queue.counters.turns))
    assert (yard.queue.target.lost, yard.queue.target.last_tip) == (None, "new")


def test_only_who_asked_for_the_latest_may_call_a_run_overdue():
    yard = a_yard(prs=1, testing_timeout_minutes=10)
    yard.pass_time(10 * MINUTE)
    yard.tell(replace(yard.checks_seen(yard.run_of(1), {"lint": PENDING}), told=True))
    assert yard.state(1) is PrState.TESTING
    yard.perform(t.LookAtChecks)
    assert (yard.state(1), yard.reason(1)) == (PrState.FAILED, Reason.TEST_RUN_TIMEOUT)


def test_who_begins_to_work_for_a_queue_looks_at_those_of_whom_it_is_not_known_whether_they_can_be_merged():
    yard = a_yard()
    for number, known in enumerate((Mergeability.CHECKING, Mergeability.UNKNOWN), 1):
        yard.open(number)
        yard.change(number, mergeability=known)
        yard.submit(number)
    yard.queue = replace(yard.queue, looks=SortedMap())
    yard.tell(e.WatchBegan())
    assert yard.outstanding(t.LookAtPull) == (t.LookAtPull(number=PrNumber(1)),)
