"""Who is held back out of every stack, and when they may rejoin."""

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import CheckState, Mergeability, PrState
from tests.support.builders import Yard, a_wait, a_yard


def a_conflict(number: int = 2) -> Yard:
    """This one changes what pull request 1, in the line, changes too."""
    yard = a_yard(prs=1)
    yard.open(number, {"file1": "otherwise"})
    yard.submit(number)
    yard.build()
    return yard


def stacked_upon_an_absent_one() -> Yard:
    """2 is branched from 1, which is a draft."""
    yard = a_yard()
    yard.open(1)
    yard.change(1, draft=True)
    yard.submit(1)
    yard.submit(2, upon=1)
    return yard


def a_broken_base() -> Yard:
    """1 is red, and so is the target by itself."""
    yard = a_yard(prs=1, proven=False)
    yard.fails(1)
    yard.build()
    yard.fails()
    return yard


# Conflicts.


def test_one_that_conflicts_with_the_line_waits_outside():
    yard = a_conflict()
    assert (yard.picture, yard.state(2)) == ("main ← 1…", PrState.PENDING)


def test_one_that_conflicts_names_those_ahead():
    assert a_conflict().waits(2) == a_wait(
        Reason.CONFLICTS_WITH_PR_AHEAD,
        1,
    )


def a_conflict_with_one_of_two() -> Yard:
    """3 changes what 1 changes too, and 2 stands between them."""
    yard = a_yard(prs=2)
    yard.open(3, {"file1": "otherwise"})
    yard.submit(3)
    yard.build()
    return yard


def test_one_that_conflicts_names_only_those_that_it_conflicts_with():
    assert a_conflict_with_one_of_two().waits(3) == a_wait(Reason.CONFLICTS_WITH_PR_AHEAD, 1)


def test_one_that_conflicts_rejoins_when_those_that_it_conflicts_with_are_gone():
    yard = a_conflict_with_one_of_two()
    yard.cancel(1)
    assert yard.picture == "main ← 2… ← 3…"


def test_one_that_conflicts_stays_outside_when_others_are_gone():
    yard = a_conflict_with_one_of_two()
    yard.cancel(2)
    assert yard.picture == "main ← 1…"


def test_one_that_conflicts_rejoins_when_those_ahead_failed():
    yard = a_conflict()
    yard.fails(1)
    assert yard.picture == "main ← 2…"


def test_one_that_conflicts_rejoins_when_those_ahead_merged():
    yard = a_conflict()
    yard.passes(1)
    yard.perform_all()
    assert (yard.state(2), yard.reason(2)) == (PrState.FAILED, Reason.MERGE_CONFLICT)


def test_one_that_conflicts_rejoins_at_the_end_of_the_line():
    yard = a_conflict()
    yard.submit(3)
    yard.build()
    yard.fails(1)
    assert yard.picture == "main ← 3… ← 2…"


def test_one_that_conflicts_with_a_batchmate_waits_outside():
    yard = a_yard(batch=2)
    yard.open(1, {"shared": "one"})
    yard.open(2, {"shared": "two"})
    yard.submit(1, 2)
    yard.build()
    assert (yard.picture, yard.waits(2)) == (
        "main ← 1…",
        a_wait(
            Reason.CONFLICTS_WITH_PR_AHEAD,
            1,
        ),
    )


def test_if_two_ahead_disagree_all_that_stands_on_both_waits():
    yard = a_yard()
    yard.open(1, {"shared": "one"})
    yard.open(2, {"shared": "two"})
    yard.submit(1, 2, 3)
    refused = e.RunRefused(run=yard.run_of(3).id, ticket=yard.ticket(2), refusal=e.BuildRefusal.CONFLICTS_WITH_STACK)
    yard.tell(refused)
    assert yard.waits(3) == a_wait(Reason.CONFLICTS_WITH_PR_AHEAD, 1, 2)


def test_one_whose_blockers_left_meanwhile_rejoins_at_once():
    yard = a_yard(prs=1)
    yard.open(2, {"file1": "otherwise"})
    yard.submit(2)
    (build,) = yard.outstanding(t.BuildRun)
    refused = yard.host.perform(build, 0)
    yard.tell(yard.verdict(CheckState.FAILED, 1), refused)
    assert yard.picture == "main ← 2…"


# Stacked pull requests.


def test_one_branched_from_another_that_is_not_in_the_line_waits_for_it():
    yard = stacked_upon_an_absent_one()
    assert (yard.picture, yard.waits(2)) == (
        "main",
        a_wait(
            Reason.WAITING_FOR_PRS_AHEAD,
            1,
        ),
    )


def test_one_branched_from_another_rejoins_when_that_one_is_in_the_line():
    yard = stacked_upon_an_absent_one()
    yard.change(1, draft=False)
    yard.tell(yard.pull_seen(1))
    assert yard.picture == "main ← 1… ← 2…"


def test_one_branched_from_another_rejoins_when_that_one_left():
    yard = stacked_upon_an_absent_one()
    yard.cancel(1)
    assert yard.picture == "main ← 2…"


def test_one_branched_from_another_that_stands_before_it_in_the_batch_joins_it():
    yard = a_yard(batch=2)
    yard.open(1)
    yard.open(2, upon=yard.head(1))
    yard.submit(1, 2)
    assert yard.picture == "main ← 1+2…"


def test_one_branched_from_another_that_stands_after_it_waits():
    yard = a_yard(batch=2)
    yard.open(1)
    yard.open(2, upon=yard.head(1))
    yard.submit(1)
    yard.submit(2, priority=50)
    assert yard.waits(2) == a_wait(
        Reason.WAITING_FOR_PRS_AHEAD,
        1,
    )


def test_one_branched_from_a_member_of_a_bisection_leaves_the_line_with_it():
    yard = a_yard(prs=2, batch=2)
    yard.submit(3, upon=1, no_batch=True)
    yard.build()
    yard.fails(1, 2)
    assert (yard.picture, yard.reason(3), yard.waits(3)) == (
        *("main ⋔ 1+2 : 1…", Reason.PREREQUISITE_REMOVED),
        a_wait(Reason.WAITING_FOR_PRS_AHEAD, 1),
    )


def test_one_branched_from_another_leaves_the_line_when_that_one_is_no_longer_mergeable():
    yard = a_yard(prs=1)
    yard.submit(2, upon=1)
    yard.build()
    yard.passes(1)
    yard.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    yard.perform(t.ReadPulls)
    assert (yard.picture, yard.waits(2)) == ("main", a_wait(Reason.WAITING_FOR_PRS_AHEAD, 1))


def test_one_branched_from_another_stays_in_the_line_when_that_one_failed():
    yard = a_yard(prs=1)
    yard.submit(2, upon=1)
    yard.build()
    yard.fails(1)
    assert yard.picture == "main ← 2…"


# A broken base.


def test_one_that_was_red_on_a_broken_base_steps_aside():
    yard = a_broken_base()
    assert (yard.picture, yard.state(1), yard.waits(1)) == ("main", PrState.PENDING, a_wait(Reason.BASE_BROKEN))


def test_one_that_was_red_on_a_broken_base_is_not_tested_again_on_this_tip():
    yard = a_broken_base()
    yard.pass_time(3_600_000)
    assert yard.picture == "main"


def test_one_that_was_red_on_a_broken_base_rejoins_when_the_target_moved():
    yard = a_broken_base()
    yard.push_to_target({"repair": "repair"})
    yard.tell(e.TargetTouched())
    yard.perform(t.LookAtTarget)
    assert yard.picture == "main ← 1…"


def test_others_are_tested_on_a_broken_base_since_one_may_be_the_repair():
    yard = a_broken_base()
    yard.submit(2)
    assert yard.picture == "main ← 2…"


def test_one_branched_from_another_that_waits_for_a_repair_is_tested_since_it_may_be_the_repair():
    yard = a_broken_base()
    yard.submit(2, upon=1)
    assert yard.picture == "main ← 2…"


def test_one_branched_from_another_stays_in_the_line_when_that_one_was_red_on_a_broken_base():
    yard = a_yard(prs=1, proven=False)
    yard.submit(2, upon=1)
    yard.build()
    yard.fails(1)
    yard.build()
    yard.fails()
    assert yard.picture == "main ← 2…"
