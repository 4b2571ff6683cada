"""Of a stored run, what is counted is remembered."""

from msgspec.structs import replace

from mergeyard.domain.ids import BatchId, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import CheckState, RunStatus
from mergeyard.service.history.past import PastRun
from mergeyard.service.history.reading import remembered
from mergeyard.service.shelving import encode
from tests.support.builders import a_run
from tests.support.pasts import QUEUE


def a_decided_run(*stack: int, tests: int = 1, kind: RunKind = RunKind.LINE) -> Run:
    checks = {"unit": CheckState.PASSED, "e2e": CheckState.FAILED, "slow": CheckState.PENDING}
    run = a_run(*stack, tests=tests, status=RunStatus.FAILED, kind=kind)
    return replace(run, batch=BatchId(7), started_at=Instant(10), decided_at=Instant(40), checks=checks)


def the_past_of(run: Run) -> PastRun:
    (past,) = remembered(QUEUE, [encode(run)])
    return past


def test_a_run_is_remembered_with_its_time_and_its_checks():
    past = the_past_of(a_decided_run(1, 2, tests=2))
    assert (past.queue, past.id, past.kind, past.status) == (QUEUE, "run of 1+2", RunKind.LINE, RunStatus.FAILED)
    assert (past.tests, past.length, past.decided_at) == (2, 30, 40)
    assert (past.red, past.green) == (("e2e",), ("unit",))


def test_a_run_stood_in_the_line_if_it_was_that_of_a_batch():
    bisection = a_decided_run(1, kind=RunKind.BISECTION)
    assert the_past_of(bisection).in_line
    assert not the_past_of(replace(bisection, batch=None)).in_line


def test_the_same_stack_is_the_same_heads_upon_the_same_base():
    stack = the_past_of(a_decided_run(1, 2)).stack
    assert stack == the_past_of(replace(a_decided_run(1, 2), status=RunStatus.SUCCEEDED, chain=())).stack
    assert stack != the_past_of(a_decided_run(1)).stack
    assert stack != the_past_of(replace(a_decided_run(1, 2), base=Sha("elsewhere"))).stack
    first, second = a_decided_run(1, 2).stack
    pushed = replace(a_decided_run(1, 2), stack=(first, replace(second, head=Sha("pushed"))))
    assert stack != the_past_of(pushed).stack
