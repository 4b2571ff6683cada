"""What was seen of a base counts for what was required then."""

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.reasons import Reason
from mergeyard.domain.required import Required
from mergeyard.domain.states import CheckState, PrState
from mergeyard.engine import proving
from mergeyard.engine.proving import BaseVerdict
from tests.support.builders import Yard, a_config, a_yard

BOTH, UNIT = ("unit", "lint"), ("unit",)


def require(yard: Yard, *statuses: str) -> None:
    yard.host.required = Required(statuses)
    yard.tell(e.TargetTouched())
    yard.perform(t.LookAtTarget)
    yard.build()


def lint_fails(yard: Yard, *numbers: int) -> None:
    run = yard.run_of(*numbers)
    yard.tell(yard.checks_seen(run, {"unit": CheckState.PASSED, "lint": CheckState.FAILED}))
    yard.build()


def test_nobody_is_blamed_for_a_status_that_the_base_never_passed():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.perform_all()
    require(yard, *BOTH)
    yard.submit(2)
    yard.build()
    lint_fails(yard, 2)
    assert yard.state(2) is PrState.PENDING_FAILURE
    lint_fails(yard)
    assert (yard.state(2), yard.waits(2).reason) == (PrState.PENDING, Reason.BASE_BROKEN)


def test_the_queue_s_own_statuses_count_as_well():
    yard = a_yard(prs=1)
    yard.tell(e.SettingsSaved(config=a_config(required_statuses=BOTH)))
    assert proving.base_verdict(yard.queue, yard.run_of(1), ()) is BaseVerdict.UNKNOWN


def test_who_passed_more_has_passed_less():
    yard = a_yard(prs=1, required_statuses=BOTH)
    yard.tell(e.SettingsSaved(config=a_config(required_statuses=UNIT)))
    assert proving.base_verdict(yard.queue, yard.run_of(1), ()) is BaseVerdict.PROVEN


def test_those_that_a_broken_base_held_back_are_tested_again():
    yard = a_yard(prs=1)
    require(yard, *BOTH)
    lint_fails(yard, 1)
    lint_fails(yard)
    assert yard.waits(1).reason is Reason.BASE_BROKEN
    require(yard, *UNIT)
    assert yard.picture == "main ← 1…"


def test_a_run_for_fewer_statuses_proves_nothing():
    yard = a_yard(prs=1, proven=False)
    run = yard.run_of(1)
    require(yard, *BOTH)
    assert proving.record_green(yard.queue, run) is yard.queue


def test_what_lands_for_fewer_statuses_is_no_proven_base():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.intend()
    yard.tell(e.SettingsSaved(config=a_config(required_statuses=BOTH)))
    yard.perform_all()
    assert yard.state(1) is PrState.MERGED
    assert yard.queue.target.proofs == {}
