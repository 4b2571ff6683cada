"""The queue in one line of text."""

from mergeyard.domain import events as e
from mergeyard.domain.states import QueueState
from tests.support.builders import a_config, a_parallel_yard, a_yard


def test_an_empty_queue_is_its_target():
    assert (a_yard().picture, a_parallel_yard().picture) == ("main", "main")


def test_a_batch_under_test_has_dots():
    assert a_yard(prs=2, batch=2).picture == "main ← 1+2…"


def test_a_batch_whose_run_is_being_built_has_dots():
    yard = a_yard()
    yard.submit(1)
    assert yard.picture == "main ← 1…"


def test_a_batch_that_passed_has_a_tick():
    yard = a_yard(prs=2)
    yard.passes(2)
    assert yard.picture == "main ← 1… ← 2✓"


def test_a_batch_that_a_run_behind_cleared_has_a_tick():
    yard = a_yard(prs=2, depth=0)
    yard.passes(2)
    assert yard.picture == "main ← 1✓ ← 2✓"


def test_a_batch_that_waits_to_be_judged_has_a_cross():
    yard = a_yard(prs=2)
    yard.fails(2)
    assert yard.picture == "main ← 1… ← 2✗"


def test_a_batch_without_a_run_has_no_mark():
    yard = a_yard(prs=1, concurrency=1)
    yard.submit(2, priority=0)
    assert yard.picture == "main ← 2… ← 1"


def test_a_batch_that_is_to_be_restarted_has_no_mark():
    yard = a_yard(prs=1)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.restart(1)
    assert yard.picture == "main ← 1"


def test_a_red_batch_that_is_to_be_repeated_has_dots():
    yard = a_yard(prs=2, test_retries=1)
    yard.tell(e.SettingsSaved(config=a_config(test_retries=1, concurrency=1)))
    yard.fails(2)
    assert yard.picture == "main ← 1… ← 2…"


def test_in_parallel_mode_every_batch_says_what_it_stands_on():
    assert a_parallel_yard("x", "y", "xy").picture == "main ← 1… ∥ main ← 2… ∥ 1, 2 ← 3…"


def test_a_bare_run_is_a_question():
    yard = a_yard(prs=1, proven=False)
    yard.fails(1)
    assert yard.picture == "main ← 1✗ ?"


def test_a_bisection_shows_the_prefixes_that_it_tests():
    yard = a_yard(prs=4, batch=4, bisection_concurrency=2)
    yard.fails(1, 2, 3, 4)
    assert yard.picture == "main ⋔ 1+2+3+4 : 1+2… 1+2+3…"


def test_a_bisection_does_not_show_probes_that_failed():
    yard = a_yard(prs=2, batch=2)
    yard.fails(1, 2)
    yard.build()
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.fails(1)
    assert yard.picture == "main ⋔ 1+2"


def test_a_suspect_stands_alone():
    yard = a_yard(prs=2, batch=2)
    yard.fails(1, 2)
    yard.build()
    yard.passes(1)
    assert yard.picture == "main ← 1✓ ⋔ 2"
