"""Who may merge without a run: it stands on the very tip, all statuses passed on it, and its lane is empty."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import DirectMergeMode, Mode
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.pulls import HeadExam
from mergeyard.domain.reasons import Reason
from mergeyard.domain.required import Required
from mergeyard.domain.states import CheckState, PrState, QueueState
from mergeyard.domain.targets import named
from mergeyard.engine import directing
from tests.support.builders import Yard, a_config, a_plain_queue, a_submission, a_yard, an_exam

ALWAYS = DirectMergeMode.ALWAYS


def a_direct_yard(*, parallel: bool = False) -> Yard:
    return Yard(a_config(mode=Mode.PARALLEL if parallel else Mode.SINGLE, direct_merge_mode=ALWAYS))


def passed_on_its_head(yard: Yard, number: int) -> None:
    """It is open, and all required statuses passed on it."""
    yard.open(number)
    yard.checks.report(yard.head(number), ("unit",))


def examined(yard: Yard) -> list[int]:
    return [task.number for task in yard.outstanding(t.ExamineHead) if isinstance(task, t.ExamineHead)]


def test_the_head_of_the_first_that_waits_is_examined():
    yard = a_direct_yard()
    yard.submit(1, 2)
    assert examined(yard) == [1]


def test_one_that_passed_on_the_very_tip_merges_without_a_run():
    yard = a_direct_yard()
    passed_on_its_head(yard, 1)
    yard.submit(1)
    yard.perform_all()
    assert (yard.state(1), yard.reason(1), yard.queue.runs) == (PrState.MERGED, Reason.MERGED_DIRECTLY, {})


def test_what_merges_directly_has_the_tree_of_its_head():
    yard = a_direct_yard()
    passed_on_its_head(yard, 1)
    yard.submit(1)
    yard.perform_all()
    commits = yard.repository.commits
    assert commits[yard.host.tip].tree == commits[yard.head(1)].tree


def test_one_that_has_not_passed_on_its_head_is_tested():
    yard = a_direct_yard()
    yard.submit(1)
    yard.perform(t.ExamineHead)
    assert (examined(yard), yard.picture) == ([], "main ← 1…")


def test_one_that_lacks_a_required_status_is_tested():
    yard = a_direct_yard()
    passed_on_its_head(yard, 1)
    yard.tell(
        e.SettingsSaved(config=a_config(direct_merge_mode=ALWAYS, required_statuses=("unit", "lint"))),
        yard.submission(1),
    )
    yard.perform(t.ExamineHead)
    assert yard.picture == "main ← 1…"


def test_one_that_does_not_stand_on_the_tip_is_tested():
    yard = a_direct_yard()
    passed_on_its_head(yard, 1)
    yard.push_to_target({"other": "other"})
    yard.tell(e.TargetTouched())
    yard.perform(t.LookAtTarget)
    yard.submit(1)
    yard.perform(t.ExamineHead)
    assert yard.picture == "main ← 1…"


def test_one_is_examined_again_when_the_target_moved():
    yard = a_direct_yard()
    passed_on_its_head(yard, 1)
    yard.submit(1)
    yard.perform(t.ExamineHead)
    yard.push_to_target({"other": "other"})
    yard.tell(e.TargetTouched())
    yard.perform(t.LookAtTarget)
    assert examined(yard) == [1]


def test_without_the_setting_everybody_is_tested():
    yard = a_yard()
    passed_on_its_head(yard, 1)
    yard.submit(1)
    assert yard.picture == "main ← 1…"


def test_while_something_is_in_the_line_nobody_merges_directly():
    yard = a_direct_yard()
    yard.submit(1)
    yard.perform(t.ExamineHead)
    passed_on_its_head(yard, 2)
    yard.submit(2)
    assert (examined(yard), yard.picture) == ([], "main ← 1… ← 2…")


def test_in_parallel_mode_only_the_own_lane_must_be_empty():
    yard = a_direct_yard(parallel=True)
    yard.submit(1, targets=named("x"))
    yard.perform(t.ExamineHead)
    yard.submit(2, targets=named("y"))
    assert examined(yard) == [2]


def test_in_parallel_mode_the_own_lane_must_be_empty():
    yard = a_direct_yard(parallel=True)
    yard.submit(1, targets=named("x"))
    yard.perform(t.ExamineHead)
    yard.submit(2, targets=named("x"))
    assert examined(yard) == []


def test_a_bisection_is_in_the_way_too():
    yard = Yard(a_config(batch=2, direct_merge_mode=ALWAYS))
    yard.submit(1, 2)
    yard.perform(t.ExamineHead)
    yard.build()
    yard.fails(1, 2)
    yard.submit(3)
    assert examined(yard) == []


def test_one_that_contains_the_commits_of_another_that_is_here_is_tested():
    yard = a_direct_yard()
    yard.open(1)
    yard.open(2, upon=yard.head(1))
    yard.tell(yard.submission(1), yard.submission(2, priority=50))
    assert (examined(yard), yard.picture) == ([], "main ← 1… ← 2…")


def test_one_that_contains_the_commits_of_another_that_is_not_here_is_examined():
    yard = a_direct_yard()
    yard.open(1)
    yard.open(2, upon=yard.head(1))
    yard.submit(2)
    assert examined(yard) == [2]


def test_one_that_changes_nothing_does_not_merge_directly():
    yard = a_direct_yard()
    yard.open(1, {"README": "hello"})
    yard.checks.report(yard.head(1), ("unit",))
    yard.submit(1)
    yard.perform_all()
    assert (yard.state(1), yard.reason(1)) == (PrState.FAILED, Reason.NOTHING_TO_MERGE)


def test_one_that_holds_a_removed_commit_does_not_merge_directly():
    """1 landed and was taken off the target again; 2 is branched from the target as it was with 1."""
    yard = a_direct_yard()
    passed_on_its_head(yard, 1)
    before = yard.host.tip
    yard.submit(1)
    yard.perform_all()
    yard.open(2)
    yard.checks.report(yard.head(2), ("unit",))
    yard.repository.refs["main"] = before
    yard.tell(e.TargetTouched())
    yard.perform_all()
    yard.submit(2)
    yard.perform_all()
    assert (yard.state(2), yard.reason(2)) == (PrState.FAILED, Reason.CONTAINS_REMOVED_COMMIT)


@pytest.mark.parametrize(
    ("exam", "expected"),
    [
        (an_exam(), True),
        (an_exam("another tip"), False),
        (an_exam(contains_tip=False), False),
        (an_exam(changes_something=False), False),
        (an_exam(holds_removed_commit=True), False),
        (an_exam(passed=()), False),
        (None, False),
    ],
    ids=["fit", "another tip", "beside the tip", "nothing changed", "a removed commit", "not passed", "not examined"],
)
def test_one_qualifies_only_when_all_was_found_fit(exam: HeadExam | None, expected: bool):
    assert directing.qualifies(a_plain_queue(), replace(a_submission(1), exam=exam)) is expected


def test_only_in_a_running_queue_one_merges_directly():
    yard = a_direct_yard()
    yard.submit(1)
    yard.tell(e.StateRequested(state=QueueState.DRAINING))
    assert (examined(yard), yard.picture) == ([], "main ← 1…")


def test_without_required_statuses_nobody_merges_directly():
    yard = a_direct_yard()
    passed_on_its_head(yard, 1)
    nothing = e.TargetSeen(tip=yard.host.tip, as_of=yard.queue.counters.turns, required=Required())
    yard.tell(nothing, yard.submission(1))
    yard.perform(t.ExamineHead)
    assert (yard.state(1), yard.reason(1)) == (PrState.FAILED, Reason.NO_REQUIRED_STATUSES)


def test_without_a_target_branch_nobody_is_examined():
    yard = a_direct_yard()
    yard.tell(e.TargetSeen(tip=None, as_of=yard.queue.counters.turns, required=yard.host.required))
    yard.submit(1)
    assert examined(yard) == []


def test_a_direct_landing_without_intent_is_dropped_when_it_qualifies_no_longer():
    yard = a_direct_yard()
    passed_on_its_head(yard, 1)
    yard.submit(1)
    yard.perform(t.ExamineHead)
    yard.cancel(1)
    assert (yard.queue.landing, yard.queue.direct) == (None, None)


def test_one_that_was_pushed_to_before_it_merges_directly_is_cancelled():
    yard = a_direct_yard()
    passed_on_its_head(yard, 1)
    yard.submit(1)
    yard.perform(t.ExamineHead)
    yard.change(1, head=yard.repository.commit((yard.head(1),), {"more": "more"}, "a push"))
    yard.perform(t.ReadPulls)
    assert (yard.state(1), yard.reason(1)) == (PrState.CANCELLED, Reason.PR_PUSHED)


def test_from_intent_to_outcome_the_one_that_merges_directly_stays_the_one():
    yard = a_direct_yard()
    passed_on_its_head(yard, 1)
    yard.submit(1)
    yard.perform(t.ExamineHead)
    yard.intend()
    yard.submit(2, priority=50)
    assert (examined(yard), yard.queue.direct) == ([], yard.queue.tickets[PrNumber(1)])


def pause(yard: Yard) -> None:
    yard.tell(e.StateRequested(state=QueueState.PAUSED))


def resume(yard: Yard) -> None:
    yard.tell(e.StateRequested(state=QueueState.RUNNING))


def test_one_that_waited_meanwhile_is_examined_again():
    """A status that it needs was run once more, and failed."""
    yard = a_direct_yard()
    passed_on_its_head(yard, 1)
    yard.submit(1)
    yard.perform(t.ExamineHead)
    pause(yard)
    yard.checks.results[yard.head(1)] = {"unit": CheckState.FAILED}
    resume(yard)
    yard.perform(t.ExamineHead)
    assert (yard.queue.landing, yard.picture) == (None, "main ← 1…")


def test_one_that_was_not_fit_is_not_examined_again():
    yard = a_direct_yard()
    yard.submit(1)
    yard.perform(t.ExamineHead)
    pause(yard)
    resume(yard)
    assert (examined(yard), yard.picture) == ([], "main ← 1…")


def test_one_is_examined_again_when_something_was_taken_off_the_target():
    yard = a_direct_yard()
    passed_on_its_head(yard, 1)
    yard.submit(1)
    yard.perform(t.ExamineHead)
    gone = frozenset({yard.head(1)})
    seen = e.TargetSeen(tip=yard.host.tip, as_of=yard.queue.counters.turns, required=yard.host.required, removed=gone)
    yard.tell(seen)
    yard.perform_all()
    assert (yard.state(1), yard.reason(1)) == (PrState.FAILED, Reason.CONTAINS_REMOVED_COMMIT)
