"""The queue forgets what nothing can depend on any more."""

from msgspec.structs import replace

from mergeyard.domain.ids import Sha
from mergeyard.domain.landing import Landed
from mergeyard.engine import forgetting
from tests.support.builders import ROOT, Yard, a_plain_queue, a_yard


def commits(yard: Yard) -> list[Sha]:
    return [landed.commit for landed in yard.queue.target.history]


def test_history_is_kept_from_the_oldest_base_that_somebody_stands_on():
    yard = a_yard(prs=3)
    base = yard.host.tip
    yard.passes(1)
    yard.perform_all()
    assert commits(yard) == [base, yard.host.tip]


def test_history_beneath_everybody_is_forgotten():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.perform_all()
    yard.submit(2)
    yard.build()
    assert commits(yard) == [yard.host.tip]


def test_proofs_of_commits_that_nobody_stands_on_are_forgotten():
    yard = a_yard(prs=1)
    base = yard.host.tip
    yard.passes(1)
    yard.perform_all()
    yard.submit(2)
    yard.build()
    assert base not in yard.queue.target.proofs


def test_the_base_of_a_bisection_is_kept():
    yard = a_yard(prs=2, batch=2)
    base = yard.host.tip
    yard.fails(1, 2)
    yard.build()
    yard.passes(1)
    yard.perform_all()
    assert base in yard.queue.target.proofs


def test_broken_commits_that_nobody_stands_on_are_forgotten():
    queue = a_plain_queue()
    broken = replace(queue, target=replace(queue.target, broken=frozenset({Sha("elsewhere"), ROOT})))
    assert forgetting.forget(broken).target.broken == {ROOT}


def test_without_a_tip_nothing_of_it_is_kept():
    queue = a_plain_queue()
    gone = replace(queue, target=replace(queue.target, tip=None, proofs={ROOT: (frozenset(),)}))
    assert forgetting.forget(gone).target.proofs == {}


def test_when_there_is_nothing_to_forget_the_very_same_queue_is_given():
    queue = a_plain_queue()
    assert forgetting.forget(queue) is queue


def test_a_history_that_nobody_stands_on_at_all_is_kept():
    queue = a_plain_queue()
    strange = replace(queue, target=replace(queue.target, tip=Sha("tip"), history=(Landed(ROOT, None),)))
    assert forgetting.forget(strange) is strange
