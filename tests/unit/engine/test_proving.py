"""Whether a base is fit to blame anyone on."""

from mergeyard.domain.ids import Sha, Ticket
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.engine import proving, running
from mergeyard.engine.proving import BY_ITSELF, BaseVerdict
from tests.support.builders import ROOT, a_plain_queue, a_run, a_yard

ONE, TWO = Ticket(1), Ticket(2)
RED = a_run(1, status=RunStatus.FAILED)
UNSEEN = a_plain_queue()


def proofs(queue: Queue) -> tuple[frozenset[Ticket], ...]:
    return queue.target.proofs.get(ROOT, ())


def test_a_base_that_nobody_saw_is_unknown():
    assert proving.base_verdict(UNSEEN, RED, (ONE,)) is BaseVerdict.UNKNOWN


def test_a_base_that_was_green_by_itself_is_proven():
    assert proving.base_verdict(proving.prove(UNSEEN, ROOT, BY_ITSELF), RED, (ONE,)) is BaseVerdict.PROVEN


def test_a_base_upon_which_others_were_green_is_proven():
    queue = proving.prove(UNSEEN, ROOT, frozenset({TWO}))
    assert proving.base_verdict(queue, RED, (ONE,)) is BaseVerdict.PROVEN


def test_a_base_upon_which_the_accused_was_green_with_others_is_not_proven_against_it():
    queue = proving.prove(UNSEEN, ROOT, frozenset({ONE, TWO}))
    assert proving.base_verdict(queue, RED, (ONE,)) is BaseVerdict.UNKNOWN


def test_what_merged_beneath_the_accused_proves_as_well():
    queue = proving.prove(UNSEEN, Sha("1"), BY_ITSELF)
    assert proving.base_verdict(queue, a_run(1, 2, status=RunStatus.FAILED), (TWO,)) is BaseVerdict.PROVEN


def test_a_base_that_was_red_by_itself_is_broken():
    assert proving.base_verdict(proving.record_broken(UNSEEN, ROOT), RED, (ONE,)) is BaseVerdict.BROKEN


def test_a_base_that_was_seen_green_and_red_by_itself_is_proven():
    queue = proving.record_broken(proving.prove(UNSEEN, ROOT, BY_ITSELF), ROOT)
    assert proving.base_verdict(queue, RED, (ONE,)) is BaseVerdict.PROVEN


def test_a_base_that_was_red_by_itself_is_broken_also_when_others_were_green_upon_it():
    queue = proving.record_broken(proving.prove(UNSEEN, ROOT, frozenset({TWO})), ROOT)
    assert proving.base_verdict(queue, RED, (ONE,)) is BaseVerdict.BROKEN


def test_a_green_run_proves_its_base():
    queue = proving.record_green(UNSEEN, a_run(1, 2, status=RunStatus.SUCCEEDED))
    assert proofs(queue) == ({ONE, TWO},)


def test_a_proof_by_fewer_replaces_those_by_more():
    queue = proving.prove(proving.prove(UNSEEN, ROOT, frozenset({ONE, TWO})), ROOT, frozenset({ONE}))
    assert proofs(queue) == ({ONE},)


def test_a_proof_by_others_is_kept_beside():
    queue = proving.prove(proving.prove(UNSEEN, ROOT, frozenset({ONE})), ROOT, frozenset({TWO}))
    assert proofs(queue) == ({ONE}, {TWO})


def test_a_proof_by_more_adds_nothing():
    queue = proving.prove(UNSEEN, ROOT, frozenset({ONE}))
    assert proving.prove(queue, ROOT, frozenset({ONE, TWO})) is queue


def test_a_run_under_way_without_the_accused_may_prove_the_base():
    queue = running.put(UNSEEN, a_run(2))
    assert proving.being_proven(queue, ROOT, (ONE,))


def test_a_run_under_way_with_the_accused_does_not_prove_the_base():
    queue = running.put(UNSEEN, a_run(1, 2))
    assert not proving.being_proven(queue, ROOT, (ONE,))


def test_a_run_that_is_over_does_not_prove_the_base_any_more():
    queue = running.put(UNSEEN, a_run(2, status=RunStatus.FAILED))
    assert not proving.being_proven(queue, ROOT, (ONE,))


def test_a_run_under_way_upon_another_base_does_not_prove_this_one():
    queue = running.put(UNSEEN, a_run(2, base="elsewhere"))
    assert not proving.being_proven(queue, ROOT, (ONE,))


def test_of_several_bare_runs_upon_a_base_the_latest_counts():
    yard = a_yard(prs=1, proven=False, test_retries=1)
    for _ in range(2):
        yard.fails(1)
        yard.build()
    yard.fails()
    latest = proving.bare_runs(yard.queue)[yard.host.tip]
    assert (latest.kind, latest.attempt) == (RunKind.BARE, 1)


def test_what_landed_as_tested_is_proven():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.perform_all()
    assert yard.queue.target.proofs[yard.host.tip] == (BY_ITSELF,)


def test_one_that_is_red_upon_an_unseen_base_waits_for_a_bare_run():
    yard = a_yard(prs=1, proven=False)
    yard.fails(1)
    assert (yard.state(1), yard.picture) == (PrState.PENDING_FAILURE, "main ← 1✗ ?")


def test_one_that_is_red_upon_a_base_that_a_bare_run_found_green_fails():
    yard = a_yard(prs=1, proven=False)
    yard.fails(1)
    yard.build()
    yard.passes()
    assert yard.state(1) is PrState.FAILED
