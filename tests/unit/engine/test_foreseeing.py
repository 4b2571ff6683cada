"""Who is foreseen to merge, by what runs have shown so far."""

import pytest

from mergeyard.domain.config import Speculation
from mergeyard.engine.foreseeing import MOST_SUSPECTS, SEEN_GREEN, foresee, likelihood
from mergeyard.engine.learning import chance
from tests.support.builders import Yard, a_yard

USUAL = 0.9


def foreseen(yard: Yard) -> list[float]:
    """How likely each batch of the line is to merge."""
    known = foresee(yard.queue)
    ids = (batch.id for batch in yard.queue.line.batches)
    return [sum(share for leaving, share in known[batch].outcomes.items() if batch not in leaving) for batch in ids]


def test_before_a_run_has_told_anything_everybody_is_as_good_as_usual():
    yard = a_yard(prs=2)
    usual = chance(yard.queue, yard.stay(1))
    assert foreseen(yard) == [pytest.approx(usual), pytest.approx(usual)]
    assert usual == pytest.approx(USUAL, abs=0.01)


def test_a_batch_is_as_good_as_all_its_members():
    yard = a_yard(prs=2, batch=2)
    assert foreseen(yard) == [pytest.approx(USUAL**2, abs=0.02)]


def test_a_green_run_speaks_for_all_that_it_holds():
    yard = a_yard(prs=2)
    yard.passes(2)
    assert foreseen(yard) == [pytest.approx(SEEN_GREEN), pytest.approx(SEEN_GREEN)]


def test_a_red_run_makes_everybody_in_it_suspect():
    yard = a_yard(prs=3)
    yard.fails(2)
    first, second, third = foreseen(yard)
    assert first == second == pytest.approx(0.52, abs=0.02)
    assert third == pytest.approx(USUAL, abs=0.01)


def test_of_a_red_stack_hardly_all_are_good_and_hardly_all_are_bad():
    yard = a_yard(prs=2)
    yard.fails(2)
    first, second = (batch.id for batch in yard.queue.line.batches)
    together = foresee(yard.queue)[first]
    assert together.outcomes[frozenset()] < 0.1
    assert together.outcomes[frozenset({first, second})] < 0.1
    assert together.outcomes[frozenset({first})] == pytest.approx(together.outcomes[frozenset({second})])


def test_who_was_seen_green_is_not_suspected_for_a_red_run_with_others():
    yard = a_yard(prs=3)
    yard.passes(1)
    yard.fails(3)
    first, second, third = foreseen(yard)
    assert first == pytest.approx(SEEN_GREEN)
    assert second == third < 0.6


def test_who_is_red_alone_is_hardly_good():
    yard = a_yard(prs=1, proven=False)
    yard.fails(1)
    assert foreseen(yard)[0] < 0.2


def test_of_many_in_a_red_stack_only_the_nearest_are_weighed_against_each_other():
    yard = a_yard(prs=MOST_SUSPECTS + 2, concurrency=20)
    yard.fails(MOST_SUSPECTS + 2)
    each = foreseen(yard)
    assert each[0] == pytest.approx(USUAL, abs=0.01)
    assert each[-1] < each[0]


def test_a_red_run_that_may_be_repeated_tells_nothing_yet():
    yard = a_yard(prs=1, proven=False, test_retries=1)
    yard.fails(1)
    assert foreseen(yard) == [pytest.approx(USUAL, abs=0.01)]


def test_everybody_is_foreseen_however_many_are_bound_together():
    yard = a_yard(prs=2 * MOST_SUSPECTS + 2, concurrency=20)
    yard.fails(MOST_SUSPECTS + 2)
    yard.fails(2 * MOST_SUSPECTS + 2)
    assert len(foreseen(yard)) == 2 * MOST_SUSPECTS + 2


def test_a_run_is_as_likely_to_be_needed_as_those_ahead_end_as_it_assumes():
    yard = a_yard(prs=3, concurrency=9, speculation=Speculation.BEST_FIRST)
    yard.fails(2)
    known, third = foresee(yard.queue), yard.queue.line.batches[2]
    runs = [yard.queue.runs[run] for run in third.runs]
    assert len(runs) == 3
    assert sum(likelihood(yard.queue, third, run, known) for run in runs) == pytest.approx(0.95, abs=0.02)
