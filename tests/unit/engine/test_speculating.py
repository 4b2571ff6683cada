"""Which stacks are bet on, and which bets are given up."""

from mergeyard.domain.config import Mode, Speculation
from mergeyard.domain.states import PrState
from mergeyard.engine.speculating import WORTH_A_RUN, bets
from tests.support.builders import Yard, a_parallel_yard, a_yard, prs_beneath

BEST_FIRST = Speculation.BEST_FIRST


def stacks(yard: Yard, number: int) -> list[tuple[int, ...]]:
    """What the runs of its batch stand upon, in the order in which they began."""
    batch = next(batch for batch in yard.queue.line.batches if yard.ticket(number) in batch.tickets)
    return [prs_beneath(yard.queue.runs[run]) for run in batch.runs]


def a_speculating_yard(prs: int, *, concurrency: int = 20, depth: int | None = None) -> Yard:
    return a_yard(prs=prs, concurrency=concurrency, depth=depth, speculation=BEST_FIRST)


def test_while_nothing_has_failed_everybody_stands_upon_all_ahead():
    yard = a_speculating_yard(4)
    assert [stacks(yard, number) for number in (1, 2, 3, 4)] == [[()], [(1,)], [(1, 2)], [(1, 2, 3)]]


def test_behind_one_that_is_probably_bad_others_are_tested_with_and_without_it():
    yard = a_speculating_yard(3)
    yard.fails(2)
    assert sorted(stacks(yard, 3)) == [(1,), (1, 2), (2,)]


def test_nobody_starts_upon_what_will_hardly_come_true():
    yard = a_speculating_yard(30, concurrency=40)
    idle = [batch for batch in yard.queue.line.batches if not batch.runs]
    assert idle
    assert all(bet.likelihood >= WORTH_A_RUN for bet in bets(yard.queue))
    assert yard.state(30) is PrState.PENDING


def test_free_slots_go_to_the_likeliest_first():
    yard = a_speculating_yard(3, concurrency=4)
    yard.fails(2)
    assert [len(stacks(yard, number)) for number in (1, 2, 3)] == [1, 2, 2]


def test_whoever_has_passed_is_left_out_by_nobody_any_more():
    yard = a_speculating_yard(3)
    yard.fails(2)
    yard.build()
    yard.passes(1)
    assert all(1 in beneath for beneath in stacks(yard, 3))


def test_nobody_is_left_out_whose_commits_another_brings_along():
    yard = a_speculating_yard(1)
    yard.submit(2, upon=1)
    yard.submit(3)
    yard.build()
    yard.fails(2)
    assert (2,) not in stacks(yard, 3)
    assert stacks(yard, 2) == [(1,)]


def test_a_batch_that_passed_or_was_cleared_is_bet_on_no_more():
    yard = a_speculating_yard(2, depth=1)
    yard.passes(2)
    assert bets(yard.queue) == []


def test_in_parallel_mode_only_those_that_share_a_target_are_left_out():
    yard = a_parallel_yard("x", "x", "y", "x", concurrency=20, speculation=BEST_FIRST)
    yard.fails(2)
    assert sorted(stacks(yard, 4)) == [(1,), (1, 2), (2,)]
    assert stacks(yard, 3) == [()]
    assert yard.queue.mode is Mode.PARALLEL


def test_a_chain_bets_on_nothing_but_the_chain():
    yard = a_yard(prs=3, concurrency=20)
    yard.fails(2)
    assert stacks(yard, 3) == [(1, 2)]
